"""Words and their numbers.

A file holds one word a line, as bilm-tf wrote it: ``<S>``, ``</S>``, ``<UNK>``, then words by descending frequency (the
sampled softmax relies on that order). Only the line end is taken off, so a word may hold a no-break space. The special
words may stand at any place, since published files differ; other toolkits' names for them are settings.
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
_MAX_TERM_ID = "!!!MAXTERMID"  # a line of old files that is no word
RESERVED = frozenset((BOS, EOS, UNK, _MAX_TERM_ID))  # what cannot be a word of a text in a vocabulary of ours


class Vocabulary:
    """Words in order, immutable; ``id`` and ``word`` are the two ways through it.

    Attributes:
        bos: The word that opens a sentence.
        eos: The word that closes it.
        unk: The word that stands for all unknown ones.
    """

    __slots__ = ("_ids", "_words", "bos", "eos", "unk")

    def __init__(self, words: Iterable[str], bos: str = BOS, eos: str = EOS, unk: str = UNK) -> None:
        ids: dict[str, int] = {}
        for word in words:
            if fault := _fault(word, ids):
                raise InputError(f"found {fault}; expected words that differ, one a line.")
            ids[word] = len(ids)
        for special in (bos, eos, unk):
            if special not in ids:
                raise InputError(
                    f"the words end without {special!r}; expected {bos!r}, {eos!r} and {unk!r} among them."
                )
        self.bos, self.eos, self.unk = bos, eos, unk
        self._ids, self._words = ids, tuple(ids)

    @classmethod
    def load(cls, path: str | os.PathLike[str], bos: str = BOS, eos: str = EOS, unk: str = UNK) -> Vocabulary:
        """Read a file, plain or compressed."""
        come_to = 0  # the line that the constructor is reading

        def words(lines: Iterable[str]) -> Iterator[str]:
            nonlocal come_to
            for line in lines:
                come_to += 1
                if line != _MAX_TERM_ID:
                    yield line

        try:
            with open_text(path) as lines:
                return cls(words(lines), bos, eos, unk)
        except InputError as error:
            text = str(error)
            named = text.startswith(f"{path}: ")
            raise FormatError(text if named else f"{path}: line {come_to}: {text}") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file, gzipped if it is called ``.gz``; whole or not at all."""
        place = Path(path)
        try:
            content = "".join(f"{word}\n" for word in self._words).encode()
        except UnicodeEncodeError as error:
            raise OutputError(f"{path}: a word is not valid Unicode: {error}") from error
        with atomic_write(place) as file:
            file.write(gzip.compress(content, mtime=0) if place.suffix == ".gz" else content)

    def id(self, word: str) -> int:
        """The word's number, or that of the unknown word."""
        number = self._ids.get(word)
        return self._ids[self.unk] if number is None else number

    def word(self, number: int) -> str:
        """The word of a number."""
        if not 0 <= number < len(self._words):
            raise InputError(f"no word has the number {number}; expected 0 to {len(self._words) - 1}.")
        return self._words[number]

    def encode(self, words: Iterable[str]) -> list[int]:
        """Words to numbers."""
        unknown = self._ids[self.unk]
        return [self._ids.get(word, unknown) for word in words]

    def decode(self, numbers: Iterable[int]) -> list[str]:
        """Numbers to words."""
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
        return f"{word!r} a second time"
    if "\n" in word or word.endswith("\r") or word == _MAX_TERM_ID:
        return f"{word!r}, which a vocabulary file cannot hold"
    return None
