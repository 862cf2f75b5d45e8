"""Vocabulary: words and their ids.

A file holds one word per line, as bilm-tf wrote it: ``<S>``, ``</S>``, ``<UNK>``, then words by descending frequency
(the sampled softmax relies on that order). Only the line end is removed, so a word may hold a no-break space. The
special words may stand anywhere, since published files differ; other toolkits' names for them are settings.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from polyseme.errors import FormatError, InputError, OutputError
from polyseme.files import atomic_write
from polyseme.text.corpus import open_text

BOS, EOS, UNK = "<S>", "</S>", "<UNK>"
_MAX_TERM_ID = "!!!MAXTERMID"  # a line of old files that is not a word
RESERVED = frozenset((BOS, EOS, UNK, _MAX_TERM_ID))  # what cannot be an ordinary word of our own vocabularies


class Vocabulary:
    """Immutable vocabulary: an ordered list of words; ``id`` maps words to ids, ``word`` maps back.

    Attributes:
        bos: The word that begins a sentence.
        eos: The word that ends it.
        unk: The word that stands for all unknown words.
    """

    __slots__ = ("_ids", "_words", "bos", "eos", "unk")

    def __init__(self, words: Iterable[str], bos: str = BOS, eos: str = EOS, unk: str = UNK) -> None:
        ids: dict[str, int] = {}
        for word in words:
            if fault := _fault(word, ids):
                raise InputError(f"found {fault}; expected distinct words, one per line.")
            ids[word] = len(ids)
        for special in (bos, eos, unk):
            if special not in ids:
                raise InputError(f"the words lack {special!r}; expected {bos!r}, {eos!r} and {unk!r} among them.")
        self.bos, self.eos, self.unk = bos, eos, unk
        self._ids, self._words = ids, tuple(ids)

    @classmethod
    def load(cls, path: str | os.PathLike[str], bos: str = BOS, eos: str = EOS, unk: str = UNK) -> Vocabulary:
        """Load a vocabulary file, plain or compressed."""
        line_number = 0  # of the line that the constructor is reading

        def words(lines: Iterable[str]) -> Iterator[str]:
            nonlocal line_number
            for line in lines:
                line_number += 1
                if line != _MAX_TERM_ID:
                    yield line

        try:
            with open_text(path) as lines:
                return cls(words(lines), bos, eos, unk)
        except InputError as error:
            text = str(error)
            named = text.startswith(f"{path}: ")
            raise FormatError(text if named else f"{path}: line {line_number}: {text}") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save a vocabulary file atomically, gzipped if its name ends in ``.gz``."""
        place = Path(path)
        try:
            content = "".join(f"{word}\n" for word in self._words).encode()
        except UnicodeEncodeError as error:
            raise OutputError(f"{path}: a word is not valid Unicode: {error}") from error
        with atomic_write(place) as file:
            file.write(gzip.compress(content, mtime=0) if place.suffix == ".gz" else content)

    def id(self, word: str) -> int:
        """Id of a word, or of the unknown word."""
        number = self._ids.get(word)
        return self._ids[self.unk] if number is None else number

    def word(self, number: int) -> str:
        """Word of an id, the inverse of ``id``."""
        if not 0 <= number < len(self._words):
            raise InputError(f"no word has the id {number}; expected 0 to {len(self._words) - 1}.")
        return self._words[number]

    def encode(self, words: Iterable[str]) -> list[int]:
        """Encode words as a list of their ids."""
        unknown = self._ids[self.unk]
        return [self._ids.get(word, unknown) for word in words]

    def decode(self, numbers: Iterable[int]) -> list[str]:
        """Decode a list of ids to their words."""
        return [self.word(number) for number in numbers]

    def __len__(self) -> int:
        return len(self._words)

    def __contains__(self, word: object) -> bool:
        return word in self._ids

    def __iter__(self) -> Iterator[str]:
        return iter(self._words)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} words)"


def _fault(word: str, ids: dict[str, int]) -> str | None:
    if not word:
        return "an empty word"
    if word in ids:
        return f"{word!r:.60} a second time"
    if "\n" in word or word.endswith("\r") or word == _MAX_TERM_ID:
        return f"{word!r:.60}, which a vocabulary file cannot hold"
    return None
