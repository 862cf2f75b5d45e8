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


@dataclass(frozen=True)
class LabelTarget:
    """Classification target: one of the labels of the training set.

    Attributes:
        names: The labels, in order of their numbers.
        shares: Relative frequency of each in training; an empty sentence gets these as probabilities.
    """

    names: tuple[str, ...]
    shares: tuple[float, ...]

    @classmethod
    def read(cls, answers: Iterable[Any], which: str) -> list[str]:
        """The labels of a set as strings; none may be missing."""
        labels = list(answers)
        missing = next((n for n, label in enumerate(labels) if label is None or label != label), None)
        if missing is not None:
            raise InputError(f"the {which} set's example {missing} has no label")
        return [str(label) for label in labels]

    @classmethod
    def learn(cls, labels: Sequence[str]) -> LabelTarget:
        """Learn the labels of a training set and their frequencies."""
        kinds = Counter(labels)
        if not kinds:
            raise InputError("the training set is empty: there is nothing with words and a label in it")
        if len(kinds) == 1:
            raise InputError(f"all labels in training are {next(iter(kinds))!r}; give at least two different labels")
        if len(kinds) > MAX_LABELS:
            shown = ", ".join(f"{label:.20}" for label, _ in kinds.most_common(4))
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
        return cls(tuple(map(str, names)), tuple(map(float, shares)))

    @property
    def size(self) -> int:
        """Outputs of the network: one for each label."""
        return len(self.names)

    @property
    def blank(self) -> np.ndarray:
        """Outputs for an empty sentence: log frequencies of the labels."""
        return np.log(np.array(self.shares, dtype=np.float32))

    def encode(self, answers: Sequence[str]) -> Tensor:
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

    def decode(self, outputs: np.ndarray) -> list[str]:
        """The most probable label of each example."""
        return [self.names[number] for number in outputs.argmax(axis=-1)]

    def check(self, answers: Sequence[str], which: str) -> None:
        """Refuse a set that has none of the known labels."""
        if answers and not set(answers) & set(self.names):
            raise InputError(
                f"the {which} set has none of the labels that were learned ({', '.join(self.names[:5])}, ...), "
                f"but {answers[0]!r:.40} and such; is it another column?"
            )

    def compare(self, gold: Sequence[str], predicted: Sequence[str]) -> ClassScores:
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


Target = LabelTarget | NumberTarget
