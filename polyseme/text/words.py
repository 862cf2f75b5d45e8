"""Words to what a model reads: a spelling, a number in a vocabulary, or both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from polyseme.text.characters import Characters
from polyseme.text.vocabulary import Vocabulary

OPENING, CLOSING = 0, 1  # rows of the sentence boundaries among encoded words; the words of a text follow
BOUNDARIES = 2  # words that open and close a sentence


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
