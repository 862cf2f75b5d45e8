"""Datasets of sentences or pairs of sentences with their answers.

Inside, an example is a tuple of one or two sentences, so that both kinds of task are read the same way. A batch of B
examples is `FeatureBatch` of all first sentences and then all second ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from polyseme.errors import InputError
from polyseme.tasks.features.reader import FeatureBatch, FeatureReader, SentenceVectors, as_word_lists

Example = tuple[list[str], ...]


def check_single(texts: Iterable[str | Sequence[str]]) -> Iterator[Example]:
    """Raw strings or word lists as examples of one sentence each."""
    return ((words,) for words in as_word_lists(texts))


def check_pairs(pairs: Iterable[Any]) -> Iterator[Example]:
    """Pairs of raw strings or word lists as examples of two sentences each."""
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        raise InputError(f"a list of pairs of texts or word lists was expected, not {pairs!r:.60}")
    return (_check_pair(pair, number) for number, pair in enumerate(pairs))


def _check_pair(pair: Any, number: int) -> Example:  # noqa: ANN401 - a list, a tuple, a row of an array
    if isinstance(pair, str) or not isinstance(pair, Sequence | np.ndarray) or len(pair) != 2:
        raise InputError(f"pair {number} should be two texts or two lists of words, not {pair!r:.60}")
    try:
        return tuple(as_word_lists(pair))
    except InputError as error:
        raise InputError(f"pair {number}: {error}") from error


@dataclass(frozen=True)
class Examples:
    """A labelled set: examples, and as many answers."""

    examples: list[Example]
    answers: list[Any]

    @classmethod
    def of(cls, examples: Iterable[Example], answers: Iterable[Any], which: str) -> Examples:
        """A labelled set, after checking that there is an answer for each example."""
        if isinstance(answers, str):
            raise InputError(f"the {which} set's answers should be a list, one for each example, not a bare string")
        if getattr(answers, "ndim", 1) != 1:
            shape = getattr(answers, "shape", "")
            raise InputError(
                f"the {which} set's answers should be one-dimensional, one per example, but have the shape {shape};"
                " give one column"
            )
        things, given = list(examples), list(answers)
        if len(things) != len(given):
            raise InputError(f"the {which} set has {len(things):,} examples, but {len(given):,} answers")
        return cls(things, given)

    def without_empty(self) -> Examples:
        """The labelled set without examples that have an empty sentence."""
        filled = [pair for pair in zip(self.examples, self.answers, strict=True) if all(pair[0])]
        return Examples([example for example, _ in filled], [answer for _, answer in filled])

    def __len__(self) -> int:
        return len(self.examples)


class ExampleSet:
    """A training dataset of examples by number; each distinct sentence is embedded once."""

    def __init__(self, reader: FeatureReader, examples: Sequence[Example]) -> None:
        distinct: dict[tuple[str, ...], int] = {}
        rows = [[distinct.setdefault(tuple(words), len(distinct)) for words in example] for example in examples]
        self._sentences = np.array(rows)  # (examples, 1 or 2) numbers of distinct sentences
        self._data = reader.dataset([list(words) for words in distinct])
        self.lengths = self._data.lengths[self._sentences].sum(axis=1)

    def __len__(self) -> int:
        return len(self.lengths)

    def batch(self, numbers: Sequence[int] | np.ndarray) -> FeatureBatch:
        """The batch of these numbers: all first sentences, then all second ones."""
        return self._data.batch(self._sentences[np.asarray(numbers)].T.reshape(-1))


def collate_examples(reader: FeatureReader, examples: Sequence[Sequence[SentenceVectors]]) -> FeatureBatch:
    """Collate examples to one batch: all first sentences, then all second ones."""
    return reader.collate([item for place in zip(*examples, strict=True) for item in place])


def stream_examples(
    reader: FeatureReader, examples: Iterable[Example], width: int
) -> Iterator[tuple[SentenceVectors, ...]]:
    """Embed a stream of examples, in order and in constant memory."""
    items = reader.stream(chain.from_iterable(examples))
    return zip(*[items] * width, strict=True)
