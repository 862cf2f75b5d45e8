"""Documents for a language model: sentences as ids of distinct words, a window of some thousand words at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from polyseme.embedding.batching import check_sentences
from polyseme.errors import InputError
from polyseme.text.corpus import Paths, expand, open_text, split_lines
from polyseme.text.word_encoder import CLOSING


class Document(NamedTuple):
    """Document: sentences that belong together, and their length in characters in the raw text, line ends included."""

    sentences: Iterable[Sequence[str]]
    characters: int


Documents = Iterable[Document | Iterable[Sequence[str]]]


def read_documents(paths: Paths, raw: bool) -> Iterator[Document | Iterator[list[str]]]:
    """Read the documents of all files in turn; a blank line or the end of a file ends one.

    Consume a document before requesting the next.

    Args:
        paths: Files, folders, patterns, or ``-`` for standard input; compressed ones too.
        raw: Whether the text is raw and must be tokenised; if not, a line is a sentence, its words separated by white
            space.
    """
    for source in expand(paths):
        with open_text(source) as lines:
            for filled, group in groupby(lines, key=_is_filled):
                if filled and raw:
                    text = list(group)
                    yield Document(split_lines(text, raw=True), sum(map(len, text)) + len(text))
                elif filled:
                    yield split_lines(group, raw=False)


def _is_filled(line: str) -> bool:
    return bool(line) and not line.isspace()


class NumberedDocuments(NamedTuple):
    """Numbered documents: one window of a text, as ids of its distinct words.

    Attributes:
        words: The distinct words; the first has the id 2, after the two boundaries.
        documents: Sentences of each document, as arrays of ids.
        characters: Length of the raw text where it is known, else of the words with one space or line end after each.
    """

    words: list[str]
    documents: list[list[np.ndarray]]
    characters: int


def number_documents(documents: Documents, limit: int) -> Iterator[NumberedDocuments]:
    """Number the words of a stream of documents, in windows of about ``limit`` words that split no document."""
    window = _WindowBuilder()
    for document in documents:
        window.add(document)
        if window.tokens >= limit:
            yield window.finish()
            window = _WindowBuilder()
    if window.documents:
        yield window.finish()


class _WindowBuilder:
    """Builder of one window of numbered documents."""

    def __init__(self) -> None:
        self.documents: list[list[np.ndarray]] = []
        self.tokens = self.characters = 0
        self._numbers: defaultdict[str, int] = defaultdict()
        self._numbers.default_factory = lambda: len(self._numbers) + CLOSING + 1

    def add(self, document: Document | Iterable[Sequence[str]]) -> None:
        if isinstance(document, str):
            raise InputError(f"a document is a list of sentences, each a list of words, not a string: {document!r:.60}")
        sentences, characters = document if isinstance(document, Document) else (document, None)
        numbered = []
        for words in check_sentences(sentences):
            numbered.append(np.fromiter(map(self._numbers.__getitem__, words), np.int64, len(words)))
            self.tokens += len(words) + 1
            if characters is None:
                self.characters += sum(map(len, words)) + max(1, len(words))
        self.characters += characters or 0
        self.documents.append(numbered)

    def finish(self) -> NumberedDocuments:
        return NumberedDocuments(list(self._numbers), self.documents, self.characters)
