"""Targets of sentence tasks: classification into labels, or regression to a number.

A target encodes answers for training, decodes the network's outputs to answers, and scores them. For an empty sentence
``blank`` stands in for the network's outputs.

Shapes: B examples, K outputs of the network for each.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from polyseme.errors import FormatError, InputError
from polyseme.tasks.metrics import ClassScores, NumberScores, score_classes, score_numbers

MAX_LABELS = 1000  # more labels than any set has are another column
Label = str | int | float | bool


@dataclass(frozen=True)
class LabelTarget:
    """Classification target: one of the labels of the training set.

    Attributes:
        names: The labels, in order of their numbers.
        shares: Relative frequency of each in training; an empty sentence gets these as probabilities.
    """

    names: tuple[Label, ...]
    shares: tuple[float, ...]

    @classmethod
    def read(cls, answers: Iterable[Any], which: str) -> list[Label]:
        """The labels of a set, strings or numbers as they were given; none may be missing."""
        labels = [_read_label(label, f"the {which} set's example {number}") for number, label in enumerate(answers)]
        kinds = {type(label) for label in labels}
        if kinds == {int, float}:
            return [float(label) for label in labels]
        if len(kinds) > 1:
            shown = " and ".join(sorted(repr(next(label for label in labels if type(label) is kind)) for kind in kinds))
            raise InputError(f"the {which} set's labels should be all strings or all numbers, but there are {shown}")
        return labels

    @classmethod
    def learn(cls, labels: Sequence[Label]) -> LabelTarget:
        """Learn the labels of a training set and their frequencies."""
        kinds = Counter(labels)
        if not kinds:
            raise InputError("the training set is empty: there is nothing with words and a label in it")
        if len(kinds) == 1:
            raise InputError(f"all labels in training are {next(iter(kinds))!r}; give at least two different labels")
        if len(kinds) > MAX_LABELS:
            shown = ", ".join(f"{label!s:.20}" for label, _ in kinds.most_common(4))
            raise InputError(
                f"training has {len(kinds):,} different labels ({shown}, ...), more than the limit of "
                f"{MAX_LABELS:,}; is this the column of the labels?"
            )
        names = sorted(kinds)
        return cls(tuple(names), tuple(kinds[name] / len(labels) for name in names))

    @classmethod
    def restore(cls, learned: Any) -> LabelTarget:  # noqa: ANN401 - whatever a file says
        """Restore the labels from config.json."""
        names, shares = (learned.get(key) if isinstance(learned, dict) else None for key in ("names", "shares"))
        if not isinstance(names, list) or not isinstance(shares, list) or len(names) != len(shares):
            raise FormatError(f"config.json should list the labels and their frequencies, not {learned!r:.60}")
        return cls(tuple(_read_label(name, "a label of config.json") for name in names), tuple(map(float, shares)))

    @property
    def classes(self) -> np.ndarray:
        """The labels as scikit-learn's ``classes_``: numbers as numbers, strings as objects."""
        return np.array(self.names, dtype=object if isinstance(self.names[0], str) else None)

    @property
    def size(self) -> int:
        """Outputs of the network: one for each label."""
        return len(self.names)

    @property
    def blank(self) -> np.ndarray:
        """Outputs for an empty sentence: log frequencies of the labels."""
        return np.log(np.array(self.shares, dtype=np.float32))

    def encode(self, answers: Sequence[Label]) -> Tensor:
        """The numbers of labels, all of which occurred in training."""
        numbers = {name: number for number, name in enumerate(self.names)}
        return torch.tensor([numbers[answer] for answer in answers])

    def loss(self, outputs: Tensor, truth: Tensor) -> Tensor:
        """Cross-entropy of the true labels."""
        return F.cross_entropy(outputs, truth)

    def probabilities(self, outputs: np.ndarray) -> np.ndarray:
        """The softmax probability of each label (B, K)."""
        powers = np.exp(outputs - outputs.max(axis=-1, keepdims=True))
        return powers / powers.sum(axis=-1, keepdims=True)

    def decode(self, outputs: np.ndarray) -> list[Label]:
        """The most probable label of each example."""
        return [self.names[number] for number in outputs.argmax(axis=-1)]

    def check(self, answers: Sequence[Label], which: str) -> None:
        """Refuse a set that has none of the known labels."""
        if answers and not set(answers) & set(self.names):
            known = ", ".join(map(repr, self.names[:5]))
            raise InputError(
                f"the {which} set has none of the labels that were learned ({known}, ...), "
                f"but {answers[0]!r:.40} and such; is it another column?"
            )

    def compare(self, gold: Sequence[Label], predicted: Sequence[Label]) -> ClassScores:
        """Accuracy and F1; labels that did not occur in training count as wrong."""
        return score_classes(gold, predicted, self.names)


@dataclass(frozen=True)
class NumberTarget:
    """Regression target: a number, as relatedness from 1 to 5; an empty sentence gets the mean.

    Attributes:
        mean: Mean of the training numbers.
        deviation: Standard deviation of the training numbers; the network learns standardised numbers.
        least: Minimum of the training numbers; nothing below it is predicted.
        most: Maximum of the training numbers; nothing above it is predicted.
    """

    mean: float
    deviation: float
    least: float
    most: float

    size = 1

    @classmethod
    def read(cls, answers: Iterable[Any], which: str) -> list[float]:
        """The answers of a set as finite numbers."""
        numbers: list[float] = []
        for number, answer in enumerate(answers):
            try:
                numbers.append(float(answer))
            except (TypeError, ValueError):
                numbers.append(math.nan)
            if not math.isfinite(numbers[-1]):
                raise InputError(f"the {which} set's example {number} should have a number, not {answer!r:.40}")
        return numbers

    @classmethod
    def learn(cls, numbers: Sequence[float]) -> NumberTarget:
        """Learn mean, deviation and range of the training numbers."""
        if not numbers:
            raise InputError("the training set is empty: there is nothing with words and a number in it")
        least, most = min(numbers), max(numbers)
        if least == most:
            raise InputError(f"all numbers in training are {least:g}; give at least two different numbers")
        return cls(float(np.mean(numbers)), float(np.std(numbers)), least, most)

    @classmethod
    def restore(cls, learned: Any) -> NumberTarget:  # noqa: ANN401 - whatever a file says
        """Restore the scale from config.json."""
        try:
            return cls(*(float(learned[name]) for name in ("mean", "deviation", "least", "most")))
        except (TypeError, KeyError, ValueError) as error:
            raise FormatError(f"config.json should hold the scale of the numbers, not {learned!r:.60}") from error

    @property
    def blank(self) -> np.ndarray:
        """Output for an empty sentence: the mean of training."""
        return np.zeros(1, dtype=np.float32)

    def encode(self, answers: Sequence[float]) -> Tensor:
        """Standardised numbers, as the network learns them."""
        return ((torch.tensor(answers, dtype=torch.float64) - self.mean) / self.deviation).float()

    def loss(self, outputs: Tensor, truth: Tensor) -> Tensor:
        """Mean squared error of standardised numbers."""
        return F.mse_loss(outputs.squeeze(1), truth)

    def decode(self, outputs: np.ndarray) -> list[float]:
        """Predicted numbers, clipped to the range of training."""
        return np.clip(outputs[..., 0] * self.deviation + self.mean, self.least, self.most).astype(float).tolist()

    def check(self, answers: Sequence[float], which: str) -> None:
        """Accept any numbers: there is nothing to refuse."""

    def compare(self, gold: Sequence[float], predicted: Sequence[float]) -> NumberScores:
        """Pearson and Spearman correlation, and squared error."""
        return score_numbers(gold, predicted)


def _read_label(label: Any, where: str) -> Label:  # noqa: ANN401 - whatever was given
    """One label as a Python string or number; NumPy's become Python's, other objects their text."""
    if isinstance(label, list | tuple | set | dict | np.ndarray):
        raise InputError(
            f"{where} should have one label, not {label!r:.40}; labels are strings or numbers, in one list"
        )
    if label is None or label != label:
        raise InputError(f"{where} has no label")
    plain = label.item() if isinstance(label, np.generic) else label
    return plain if type(plain) in (str, int, float, bool) else str(plain)


Target = LabelTarget | NumberTarget
