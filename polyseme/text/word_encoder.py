"""Words to character ids, as the published models were taught them.

Two ways of spelling exist. bilm-tf, AllenNLP and our own models spell a word by its UTF-8 bytes; ELMoForManyLangs looks
Unicode characters up in a dictionary. Either way a word becomes ``[begin, spelling..., end]``, cropped to a limit that
belongs to the model, and a sentence boundary is a word whose spelling is a single id of its own.

Ids here count from 0 and name rows of the character table. The published *prediction* convention, in which every id is
one higher and a row of zeros stands for "no word here", is made by `published_ids`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from polyseme.errors import FormatError
from polyseme.text.vocabulary import BOS, EOS, Vocabulary

OPENING, CLOSING = 0, 1  # rows of the sentence boundaries among encoded words; the words of a text follow
BOUNDARIES = 2  # words that open and close a sentence


class Spellings(NamedTuple):
    """Words as arrays."""

    ids: np.ndarray  # (words, characters), padded
    lengths: np.ndarray  # (words,) ids before padding


@dataclass(frozen=True)
class ByteCharacters:
    """UTF-8 bytes: ids 0-255 are bytes, then the two sentence boundaries, begin and end of word, and padding.

    Attributes:
        max_characters: Longest spelling, begin and end included.
        whole_characters: Crop between characters. Published models crop between bytes, which may halve a character.
        literal_boundaries: A word ``<S>`` or ``</S>`` in the text is the boundary, as the published toolkits have it.
    """

    max_characters: int = 50
    whole_characters: bool = True
    literal_boundaries: bool = False

    size = 261
    bos, eos, begin, end, padding = range(256, 261)

    def crops(self, word: str) -> bool:
        """Whether the word is too long to be spelt out."""
        limit = self.max_characters - 2
        return len(word) * 4 > limit and len(word.encode("utf-8", "ignore")) > limit

    def encode(self, word: str) -> list[int]:
        """Spell one word."""
        if self.literal_boundaries and word in (BOS, EOS):
            return self.encode_boundary(opening=word == BOS)
        spelling = word.encode("utf-8", "ignore")
        limit = self.max_characters - 2
        if len(spelling) > limit:
            spelling = spelling[:limit]
            if self.whole_characters:
                spelling = spelling.decode("utf-8", "ignore").encode("utf-8")
        return [self.begin, *spelling, self.end]

    def encode_all(self, words: Sequence[str]) -> Spellings:
        """Spell many words at once; quicker than one by one."""
        if self.literal_boundaries and not {BOS, EOS}.isdisjoint(words):
            return _pad([self.encode(word) for word in words], self.max_characters, self.padding)
        spellings = [word.encode("utf-8", "ignore") for word in words]
        limit = self.max_characters - 2
        lengths = np.fromiter(map(len, spellings), np.int64, len(spellings))
        for number, word in enumerate(words) if (lengths > limit).any() else ():
            if lengths[number] > limit:
                spellings[number] = bytes(self.encode(word)[1:-1])
                lengths[number] = len(spellings[number])
        inside = np.frombuffer(b"".join(spellings), np.uint8)
        ids = np.full((len(words), self.max_characters), self.padding, np.int64)
        ids[:, 0] = self.begin
        columns = np.arange(len(inside)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        ids[np.repeat(np.arange(len(words)), lengths), columns + 1] = inside
        ids[np.arange(len(words)), lengths + 1] = self.end
        return Spellings(ids, lengths + 2)

    def encode_boundary(self, opening: bool) -> list[int]:
        """Spell the word that opens or closes a sentence."""
        return [self.begin, self.bos if opening else self.eos, self.end]


@dataclass(frozen=True)
class DictionaryCharacters:
    """Unicode characters by their place in a dictionary that also lists the special marks.

    Attributes:
        characters: The dictionary, in order of id.
        max_characters: Longest spelling, begin and end included.
        swapped: Spell the beginning with ``<eow>`` and the end with ``<bow>``, as ELMoForManyLangs always has.
    """

    characters: tuple[str, ...]
    max_characters: int = 50
    swapped: bool = False

    def __post_init__(self) -> None:
        missing = [mark for mark in ("<bos>", "<eos>", "<oov>", "<pad>", "<bow>", "<eow>") if mark not in self._ids]
        if missing:
            raise FormatError(f"the character dictionary lacks {', '.join(missing)}; is it complete?")

    @cached_property
    def _ids(self) -> Mapping[str, int]:
        return {character: number for number, character in enumerate(self.characters)}

    @property
    def size(self) -> int:
        """Number of ids."""
        return len(self.characters)

    @property
    def padding(self) -> int:
        """The id that fills a spelling up."""
        return self._ids["<pad>"]

    def crops(self, word: str) -> bool:
        """Whether the word is too long to be spelt out."""
        return len(word) > self.max_characters - 2

    def encode(self, word: str) -> list[int]:
        """Spell one word; ``<bos>`` and ``<eos>`` are the boundaries wherever they stand."""
        word = word[: self.max_characters - 2]
        if word in ("<bos>", "<eos>"):
            return self.encode_boundary(opening=word == "<bos>")
        unknown = self._ids["<oov>"]
        return self._enclose([self._ids.get(character, unknown) for character in word])

    def encode_all(self, words: Sequence[str]) -> Spellings:
        """Spell many words."""
        return _pad([self.encode(word) for word in words], self.max_characters, self.padding)

    def encode_boundary(self, opening: bool) -> list[int]:
        """Spell the word that opens or closes a sentence."""
        return self._enclose([self._ids["<bos>" if opening else "<eos>"]])

    def _enclose(self, spelling: list[int]) -> list[int]:
        begin, end = ("<eow>", "<bow>") if self.swapped else ("<bow>", "<eow>")
        return [self._ids[begin], *spelling, self._ids[end]]


Characters = ByteCharacters | DictionaryCharacters


class EncodedWords(NamedTuple):
    """Distinct words as arrays, the two sentence boundaries first.

    Attributes:
        characters: Spellings (words, characters), or None for a model that reads word numbers only.
        lengths: Number of ids in each spelling before padding.
        ids: Numbers in the vocabulary, or None for a model that reads spellings only.
    """

    characters: np.ndarray | None
    lengths: np.ndarray | None
    ids: np.ndarray | None


@dataclass(frozen=True)
class WordEncoder:
    """How one model reads words. At least one of the two parts is there.

    Attributes:
        characters: How it spells.
        vocabulary: How it numbers.
        longest: Characters of a word by which it is looked up; ELMoForManyLangs crops words before that.
    """

    characters: Characters | None = None
    vocabulary: Vocabulary | None = None
    longest: int | None = None

    def encode(self, words: Sequence[str]) -> EncodedWords:
        """Encode the opening boundary, the closing boundary, and then the given words."""
        characters = lengths = ids = None
        if self.characters:
            characters, lengths = self.characters.encode_all(["", "", *words])
            for row, opening in enumerate((True, False)):
                spelling = self.characters.encode_boundary(opening)
                characters[row, : len(spelling)] = spelling
                lengths[row] = len(spelling)
        if self.vocabulary:
            known = [self.vocabulary.bos, self.vocabulary.eos, *(word[: self.longest] for word in words)]
            ids = np.array([self.vocabulary.id(word) for word in known])
        return EncodedWords(characters, lengths, ids)

    def crops(self, word: str) -> bool:
        """Whether the word is longer than the model reads."""
        return self.characters is not None and self.characters.crops(word)


def published_ids(sentences: Sequence[Sequence[str]], max_characters: int = 50) -> np.ndarray:
    """AllenNLP's ``batch_to_ids``: (sentences, words, characters), ids from 1, zeros where there is no word."""
    characters = ByteCharacters(max_characters, whole_characters=False, literal_boundaries=True)
    ids = np.zeros((len(sentences), max(map(len, sentences), default=0), max_characters), dtype=np.int64)
    for row, words in enumerate(sentences):
        ids[row, : len(words)] = characters.encode_all(words).ids + 1
    return ids


def _pad(spellings: Sequence[Sequence[int]], width: int, padding: int) -> Spellings:
    padded = np.full((len(spellings), width), padding, dtype=np.int64)
    for row, spelling in enumerate(spellings):
        padded[row, : len(spelling)] = spelling
    return Spellings(padded, np.array([len(spelling) for spelling in spellings], dtype=np.int64))
