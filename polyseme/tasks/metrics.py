"""How good predictions are: entities as seqeval and conlleval count them, words, labels of sentences, numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polyseme.tasks.fitting.loop import DevScore
from polyseme.tasks.tagging.schemes import read_spans

Labels = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Counts:
    """Entities that were found, that there are, and that are both."""

    correct: int = 0
    predicted: int = 0
    gold: int = 0

    @property
    def precision(self) -> float:
        """The share of what was found that is right; 0 where nothing was found."""
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """The share of what there is that was found; 0 where there is nothing."""
        return self.correct / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall; 0 where both are."""
        total = self.predicted + self.gold
        return 2 * self.correct / total if total else 0.0


@dataclass(frozen=True)
class EntityScores:
    """Entities over all sentences, and by type."""

    overall: Counts
    types: dict[str, Counts]


def score_entities(gold: Labels, predicted: Labels) -> EntityScores:
    """Count entities whose begin, end and type are right; labels in IOB1, IOB2, BIOES."""
    correct, found, there = Counter[str](), Counter[str](), Counter[str]()
    for one, other in zip(gold, predicted, strict=True):
        truth, guess = set(read_spans(one)), set(read_spans(other))
        there.update(span.type for span in truth)
        found.update(span.type for span in guess)
        correct.update(span.type for span in truth & guess)
    types = {kind: Counts(correct[kind], found[kind], there[kind]) for kind in sorted({*there, *found})}
    return EntityScores(Counts(correct.total(), found.total(), there.total()), types)


def accuracy(gold: Labels, predicted: Labels) -> float:
    """The share of words whose label is right; 0 where there are no words."""
    pairs = [pair for sentences in zip(gold, predicted, strict=True) for pair in zip(*sentences, strict=True)]
    return sum(one == other for one, other in pairs) / len(pairs) if pairs else 0.0


@dataclass(frozen=True)
class ClassScores:
    """How good the labels of sentences or pairs are.

    Attributes:
        count: There are so many.
        accuracy: The share of them whose label is right.
        macro_f1: The mean of the labels' F1, of those that are there or were predicted.
        classes: Each label by itself.
        unseen: Labels that training never showed, and how many there are; they count as wrong.
    """

    count: int
    accuracy: float
    macro_f1: float
    classes: dict[str, Counts]
    unseen: dict[str, int]

    @property
    def main(self) -> DevScore:
        """The one number."""
        return DevScore(self.accuracy, "accuracy")


def score_classes(gold: Sequence[str], predicted: Sequence[str], known: Sequence[str]) -> ClassScores:
    """Compare labels, one for each example; those known are what training showed."""
    there, found = Counter(gold), Counter(predicted)
    correct = Counter(one for one, other in zip(gold, predicted, strict=True) if one == other)
    classes = {name: Counts(correct[name], found[name], there[name]) for name in sorted({*there, *found})}
    return ClassScores(
        count=len(gold),
        accuracy=correct.total() / len(gold) if gold else 0.0,
        macro_f1=sum(each.f1 for each in classes.values()) / len(classes) if classes else 0.0,
        classes=classes,
        unseen={name: count for name, count in there.most_common() if name not in known},
    )


@dataclass(frozen=True)
class NumberScores:
    """How good predicted numbers are.

    Attributes:
        count: There are so many.
        pearson: Their correlation with the true ones; NaN where one side never varies.
        spearman: The correlation of their ranks, likewise.
        squared_error: The mean of the squared differences.
    """

    count: int
    pearson: float
    spearman: float
    squared_error: float

    @property
    def main(self) -> DevScore:
        """The one number; 0 where there is no correlation to speak of."""
        return DevScore(self.pearson if math.isfinite(self.pearson) else 0.0, "Pearson")


def score_numbers(gold: Sequence[float], predicted: Sequence[float]) -> NumberScores:
    """Compare numbers, one for each example."""
    one, other = np.array(gold, dtype=float), np.array(predicted, dtype=float)
    error = float(np.mean((one - other) ** 2)) if len(one) else float("nan")
    return NumberScores(len(one), pearson(one, other), spearman(one, other), error)


def pearson(one: np.ndarray, other: np.ndarray) -> float:
    """Pearson's correlation; NaN where one side never varies, or where there are fewer than two values."""
    if len(one) < 2:
        return float("nan")
    first, second = (values - values.mean() for values in (np.asarray(one, float), np.asarray(other, float)))
    scale = np.sqrt(first @ first) * np.sqrt(second @ second)
    return float(first @ second / scale) if scale else float("nan")


def spearman(one: np.ndarray, other: np.ndarray) -> float:
    """Spearman's rank correlation; equal values share the mean of their ranks. NaN where one side never varies."""
    return pearson(_ranks(one), _ranks(other))


def _ranks(values: np.ndarray) -> np.ndarray:
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[which]
