"""A model of pairs of sentences on top of any encoder: entailment, paraphrase, relatedness."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import numpy as np

from polyseme.errors import ConfigError
from polyseme.tasks.features.reader import FeatureReader
from polyseme.tasks.fitting.loop import FitSettings
from polyseme.tasks.metrics import ClassScores, NumberScores
from polyseme.tasks.sentences.data import Example, check_pairs
from polyseme.tasks.sentences.model import ExampleModel
from polyseme.tasks.sentences.networks import PairsNetwork, PairsSettings
from polyseme.tasks.sentences.targets import LabelTarget, NumberTarget, Target


class Pairs(ExampleModel[PairsSettings, Target, ClassScores | NumberScores]):
    """A label or a number for each pair of texts (raw strings or word lists), learned from labelled pairs.

    Its arguments are those of `TaskModel`.
    """

    task = "pair model"
    settings_kind = PairsSettings
    default_fit = FitSettings(rate=2e-3)
    width = 2

    @property
    def _estimator_type(self) -> Literal["classifier", "regressor"]:
        return "regressor" if self._resolved("settings").answer == "number" else "classifier"

    @property
    def classes_(self) -> np.ndarray:
        """The labels in the order of `predict_proba`."""
        return self._labels().classes

    def predict_proba(self, examples: Iterable[Any]) -> np.ndarray:
        """The probability of each label, (pairs, labels)."""
        labels, outputs = self._labels(), list(self.outputs(examples))
        return labels.probabilities(np.stack(outputs) if outputs else np.zeros((0, labels.size), dtype=np.float32))

    def _labels(self) -> LabelTarget:
        if not isinstance(self.target_, LabelTarget):
            raise ConfigError("this model predicts numbers, which have no probabilities; use predict")
        return self.target_

    def _check(self, examples: Iterable[Any]) -> Iterator[Example]:
        return check_pairs(examples)

    def _target_kind(self, settings: PairsSettings) -> type[Target]:
        return NumberTarget if settings.answer == "number" else LabelTarget

    def _make_network(self, reader: FeatureReader) -> PairsNetwork:
        return PairsNetwork(self.settings_, reader, self.target_.size)
