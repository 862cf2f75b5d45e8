"""Word encoder: words to the ids that a model reads, character ids, word ids, or both.

Two kinds of character ids exist. bilm-tf, AllenNLP and our own models use a word's UTF-8 bytes; ELMoForManyLangs looks
Unicode characters up in a dictionary. Either way a word becomes ``[begin, characters..., end]``, cropped to a limit
that belongs to the model, and a sentence boundary is a word whose only character is an id of its own.

Ids here count from 0 and are rows of the character embedding. The published *prediction* convention, in which every id
is one higher and a row of zeros stands for "no word here", is made by `published_ids`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from polyseme.errors import FormatError
from polyseme.text.vocabulary import BOS, EOS, Vocabulary

OPENING, CLOSING = 0, 1  # rows of the sentence boundaries in `EncodedWords`; the words of a text follow
BOUNDARIES = 2  # how many words begin and end a sentence


class Spellings(NamedTuple):
    """Character ids of some words, as arrays."""

    ids: np.ndarray  # (words, characters), padded
    lengths: np.ndarray  # (words,) ids before padding


@dataclass(frozen=True)
class ByteCharacters:
    """Character ids by UTF-8 bytes: 0-255 are bytes, then the sentence boundaries, begin and end of word, padding.

    Attributes:
        max_characters: Most ids of a word, begin and end included.
        whole_characters: Crop between characters. Published models crop between bytes, which may halve a character.
        literal_boundaries: A word ``<S>`` or ``</S>`` in the text is the boundary, as in the published toolkits.
    """

    max_characters: int = 50
    whole_characters: bool = True
    literal_boundaries: bool = False

    size = 261
    bos, eos, begin, end, padding = range(256, 261)

    def crops(self, word: str) -> bool:
        """Whether the word is too long, so that its characters are cropped."""
        limit = self.max_characters - 2
        return len(word) * 4 > limit and len(word.encode("utf-8", "ignore")) > limit

    def encode(self, word: str) -> list[int]:
        """Encode one word as character ids."""
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
        """Encode many words as character ids at once; faster than one by one."""
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
        """Encode the boundary word that begins or ends a sentence."""
        return [self.begin, self.bos if opening else self.eos, self.end]


@dataclass(frozen=True)
class DictionaryCharacters:
    """Character ids by Unicode characters' places in a dictionary that also lists the special marks.

    Attributes:
        characters: The dictionary, in order of id.
        max_characters: Most ids of a word, begin and end included.
        swapped: Begin a word with ``<eow>`` and end it with ``<bow>``, as ELMoForManyLangs does.
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
        """Number of different character ids."""
        return len(self.characters)

    @property
    def padding(self) -> int:
        """Padding id, which fills up the character ids."""
        return self._ids["<pad>"]

    def crops(self, word: str) -> bool:
        """Whether the word is too long, so that its characters are cropped."""
        return len(word) > self.max_characters - 2

    def encode(self, word: str) -> list[int]:
        """Encode one word as character ids; ``<bos>`` and ``<eos>`` are the boundaries wherever they stand."""
        word = word[: self.max_characters - 2]
        if word in ("<bos>", "<eos>"):
            return self.encode_boundary(opening=word == "<bos>")
        unknown = self._ids["<oov>"]
        return self._enclose([self._ids.get(character, unknown) for character in word])

    def encode_all(self, words: Sequence[str]) -> Spellings:
        """Encode many words as character ids."""
        return _pad([self.encode(word) for word in words], self.max_characters, self.padding)

    def encode_boundary(self, opening: bool) -> list[int]:
        """Encode the boundary word that begins or ends a sentence."""
        return self._enclose([self._ids["<bos>" if opening else "<eos>"]])

    def _enclose(self, spelling: list[int]) -> list[int]:
        begin, end = ("<eow>", "<bow>") if self.swapped else ("<bow>", "<eow>")
        return [self._ids[begin], *spelling, self._ids[end]]


Characters = ByteCharacters | DictionaryCharacters


class EncodedWords(NamedTuple):
    """Encoded distinct words as arrays, the two sentence boundaries first.

    Attributes:
        characters: Character ids (words, characters), or None for a model that reads word ids only.
        lengths: Number of character ids of each word before padding.
        ids: Word ids in the vocabulary, or None for a model that reads character ids only.
    """

    characters: np.ndarray | None
    lengths: np.ndarray | None
    ids: np.ndarray | None


@dataclass(frozen=True)
class WordEncoder:
    """Word encoder of one model: to character ids, to word ids, or to both.

    Attributes:
        characters: How words become character ids.
        vocabulary: How words become word ids.
        longest: Characters of a word that are looked up in the vocabulary; ELMoForManyLangs crops words before that.
    """

    characters: Characters | None = None
    vocabulary: Vocabulary | None = None
    longest: int | None = None

    def encode(self, words: Sequence[str]) -> EncodedWords:
        """Encode the two sentence boundaries, and then the given words."""
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
        """Whether the word is longer than the model reads, so that it is cropped."""
        return self.characters is not None and self.characters.crops(word)


def published_ids(sentences: Sequence[Sequence[str]], max_characters: int = 50) -> np.ndarray:
    """Character ids as AllenNLP's ``batch_to_ids``: (sentences, words, characters), from 1, zeros without a word."""
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
