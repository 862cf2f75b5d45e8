"""A classifier on top of any encoder: sentiment, kinds of questions, topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from polyseme.tasks.features.reader import Reader
from polyseme.tasks.fitting.loop import FitSettings
from polyseme.tasks.metrics import ClassScores
from polyseme.tasks.sentences.classifier_network import AttentionNetwork, ClassifierSettings, LinearNetwork, PooledSet
from polyseme.tasks.sentences.data import Example, ExampleSet, check_single
from polyseme.tasks.sentences.model import ExampleModel
from polyseme.tasks.sentences.objective import ExampleNetwork, Readable
from polyseme.tasks.sentences.targets import Classes, as_labels


class Classifier(ExampleModel[ClassifierSettings, Classes, ClassScores]):
    """A label for each sentence, learned from labelled sentences; its arguments are those of `TaskModel`.

    Attributes:
        goal_: The labels that it knows, after `fit`.
    """

    task = "classifier"
    settings_kind = ClassifierSettings
    default_fit = FitSettings(rate=2e-3)
    width = 1

    @property
    def classes_(self) -> tuple[str, ...]:
        """The labels in the order of `predict_proba`."""
        assert self.network
        return self.goal_.names

    def predict_proba(self, examples: Iterable[Sequence[str]]) -> np.ndarray:
        """How likely each label is, (sentences, labels)."""
        nothing = np.zeros((0, len(self.classes_)), dtype=np.float32)
        outputs = list(self.outputs(examples))
        return self.goal_.probabilities(np.stack(outputs)) if outputs else nothing

    def _check(self, examples: Iterable[Any]) -> Iterator[Example]:
        return check_single(examples)

    def _answers(self, answers: Sequence[Any], which: str) -> list[str]:
        return as_labels(answers, which)

    def _learn_goal(self, answers: Sequence[str]) -> Classes:
        return Classes.learn(answers)

    def _make_network(self, reader: Reader) -> ExampleNetwork:
        kind = LinearNetwork if self.settings.kind == "linear" else AttentionNetwork
        return kind(self.settings, reader, self.goal_.size)

    def _readable(self, examples: Sequence[Example]) -> Readable:
        data = ExampleSet(self.reader, examples)
        return PooledSet(data) if self.settings.kind == "linear" else data

    def _prepare(self, train: Readable) -> None:
        if isinstance(self.network, LinearNetwork) and isinstance(train, PooledSet):
            self.network.measure(train.pooled)

    def _take_learned(self, learned: Any) -> None:  # noqa: ANN401 - whatever a file says
        self.goal_ = Classes.restore(learned)
