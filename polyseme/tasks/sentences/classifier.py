"""A classifier on top of any encoder: sentiment, kinds of questions, topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from polyseme.tasks.features.reader import FeatureReader
from polyseme.tasks.fitting.loop import FitSettings
from polyseme.tasks.metrics import ClassScores
from polyseme.tasks.sentences.data import Example, ExampleSet, check_single
from polyseme.tasks.sentences.model import ExampleModel
from polyseme.tasks.sentences.networks import AttentionNetwork, ClassifierSettings, LinearNetwork, PooledSet
from polyseme.tasks.sentences.objective import ExampleNetwork, ExampleSource
from polyseme.tasks.sentences.targets import LabelTarget


class Classifier(ExampleModel[ClassifierSettings, LabelTarget, ClassScores]):
    """A label for each text, learned from labelled texts (raw strings or word lists).

    Its arguments are those of `TaskModel`.
    """

    task = "classifier"
    settings_kind = ClassifierSettings
    default_fit = FitSettings(rate=2e-3)
    width = 1

    @property
    def _estimator_type(self) -> Literal["classifier"]:
        return "classifier"

    @property
    def classes_(self) -> np.ndarray:
        """The labels in the order of `predict_proba`."""
        return self.target_.classes

    def predict_proba(self, examples: Iterable[str | Sequence[str]]) -> np.ndarray:
        """The probability of each label, (sentences, labels)."""
        target, outputs = self.target_, list(self.outputs(examples))
        return target.probabilities(np.stack(outputs) if outputs else np.zeros((0, target.size), dtype=np.float32))

    def _check(self, examples: Iterable[Any]) -> Iterator[Example]:
        return check_single(examples)

    def _target_kind(self, settings: ClassifierSettings) -> type[LabelTarget]:
        return LabelTarget

    def _make_network(self, reader: FeatureReader) -> ExampleNetwork:
        kind = LinearNetwork if self.settings_.kind == "linear" else AttentionNetwork
        return kind(self.settings_, reader, self.target_.size)

    def _readable(self, examples: Sequence[Example]) -> ExampleSource:
        data = ExampleSet(self.reader_, examples)
        return PooledSet(data) if self.settings_.kind == "linear" else data

    def _measure_training_set(self, train: ExampleSource) -> None:
        if isinstance(self.network_, LinearNetwork) and isinstance(train, PooledSet):
            self.network_.measure(train.pooled)
