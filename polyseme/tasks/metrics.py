"""Metrics: entity F1 as seqeval and conlleval count it, accuracy, macro F1, correlations, the Wilson interval."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyseme.tasks.fitting.loop import DevScore
from polyseme.tasks.tagging.schemes import read_spans

Labels = Sequence[Sequence[str]]

_Z = 1.959964  # standard deviations that hold 95 % of a normal distribution


@dataclass(frozen=True)
class Counts:
    """True positives, predictions and gold items, for precision, recall and F1."""

    correct: int = 0
    predicted: int = 0
    gold: int = 0

    @property
    def precision(self) -> float:
        """The precision: correct of all predicted; 0 where nothing was predicted."""
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """The recall: correct of all gold items; 0 where there are none."""
        return self.correct / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """The F1, harmonic mean of precision and recall; 0 where both are 0."""
        total = self.predicted + self.gold
        return 2 * self.correct / total if total else 0.0


@dataclass(frozen=True)
class EntityScores:
    """Entity precision, recall and F1 over all sentences, and by type."""

    overall: Counts
    types: dict[str, Counts]


def score_entities(gold: Labels, predicted: Labels) -> EntityScores:
    """Count entities whose start, end and type are right; labels in IOB1, IOB2, BIOES."""
    correct, found, there = Counter[str](), Counter[str](), Counter[str]()
    for one, other in zip(gold, predicted, strict=True):
        truth, guess = set(read_spans(one)), set(read_spans(other))
        there.update(span.type for span in truth)
        found.update(span.type for span in guess)
        correct.update(span.type for span in truth & guess)
    types = {kind: Counts(correct[kind], found[kind], there[kind]) for kind in sorted({*there, *found})}
    return EntityScores(Counts(correct.total(), found.total(), there.total()), types)


def accuracy(gold: Labels, predicted: Labels) -> float:
    """Accuracy of word labels; 0 where there are no words."""
    pairs = [pair for sentences in zip(gold, predicted, strict=True) for pair in zip(*sentences, strict=True)]
    return sum(one == other for one, other in pairs) / len(pairs) if pairs else 0.0


@dataclass(frozen=True)
class ClassScores:
    """Classification scores of sentences or pairs: accuracy, macro F1, F1 by label.

    Attributes:
        count: Number of examples.
        accuracy: Fraction of examples whose label is right.
        macro_f1: Mean F1 over the labels that occur or were predicted.
        classes: Counts of each label.
        unseen: Labels that did not occur in training, and how often they occur here; they count as wrong.
    """

    count: int
    accuracy: float
    macro_f1: float
    classes: dict[Any, Counts]
    unseen: dict[Any, int]

    @property
    def main(self) -> DevScore:
        """The main score, which early stopping watches: accuracy."""
        return DevScore(self.accuracy, "accuracy")


def score_classes(gold: Sequence[Any], predicted: Sequence[Any], known: Sequence[Any]) -> ClassScores:
    """Compare predicted labels with gold labels; ``known`` are the labels of the training set."""
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
    """Regression scores: correlations and squared error of predicted numbers.

    Attributes:
        count: Number of examples.
        pearson: Pearson correlation with the gold numbers; NaN where one side never varies.
        spearman: Spearman rank correlation, likewise.
        squared_error: Mean squared error.
    """

    count: int
    pearson: float
    spearman: float
    squared_error: float

    @property
    def main(self) -> DevScore:
        """The main score, which early stopping watches: Pearson's correlation, 0 where it is undefined."""
        return DevScore(self.pearson if math.isfinite(self.pearson) else 0.0, "Pearson")


def score_numbers(gold: Sequence[float], predicted: Sequence[float]) -> NumberScores:
    """Compare predicted numbers with gold numbers."""
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


def wilson_interval(right: int, count: int) -> tuple[float, float]:
    """The 95 % Wilson score interval of a proportion, within 0 and 1, valid for small counts too."""
    share, square = right / count, _Z**2
    middle = (share + square / (2 * count)) / (1 + square / count)
    half = _Z / (1 + square / count) * math.sqrt(share * (1 - share) / count + square / (4 * count**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def _ranks(values: np.ndarray) -> np.ndarray:
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[which]
