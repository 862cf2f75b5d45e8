"""Text for a language model: documents of sentences, some thousand words at a time, as numbers of distinct words."""

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
    """Sentences that belong together, and how many characters they were in the raw text, line ends among them."""

    sentences: Iterable[Sequence[str]]
    characters: int


Documents = Iterable[Document | Iterable[Sequence[str]]]


def read_documents(paths: Paths, raw: bool) -> Iterator[Document | Iterator[list[str]]]:
    """Documents of all files in turn; a blank line or the end of a file ends one.

    A document is to be taken before the next one is asked for.

    Args:
        paths: Files, folders, patterns, or ``-`` for standard input; compressed ones too.
        raw: Whether sentences and words are still to be found; if not, a line is a sentence, and its words are apart by
            white space.
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
    """Some documents as numbers of distinct words.

    Attributes:
        words: The distinct words; the first has the number 2, after those of the two boundaries.
        documents: Sentences of each document, as arrays of numbers.
        characters: Of the raw text, where it is known, or of the words with one space or line end after each.
    """

    words: list[str]
    documents: list[list[np.ndarray]]
    characters: int


def number_documents(documents: Documents, limit: int) -> Iterator[NumberedDocuments]:
    """Cut a stream where its words come to a limit, but never inside a document."""
    gathered = _Gathering()
    for document in documents:
        gathered.add(document)
        if gathered.tokens >= limit:
            yield gathered.finish()
            gathered = _Gathering()
    if gathered.documents:
        yield gathered.finish()


class _Gathering:
    """Documents to be, and their words so far."""

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
