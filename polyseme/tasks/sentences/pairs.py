"""A model of pairs of sentences on top of any encoder: entailment, paraphrase, relatedness."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from polyseme.errors import ConfigError
from polyseme.tasks.features.reader import Reader
from polyseme.tasks.fitting.loop import FitSettings
from polyseme.tasks.metrics import ClassScores, NumberScores
from polyseme.tasks.sentences.data import Example, check_pairs
from polyseme.tasks.sentences.model import ExampleModel
from polyseme.tasks.sentences.pairs_network import PairsNetwork, PairsSettings
from polyseme.tasks.sentences.targets import Classes, Goal, Scale, as_labels, as_numbers


class Pairs(ExampleModel[PairsSettings, Goal, ClassScores | NumberScores]):
    """A label or a number for each pair of sentences, learned from such; its arguments are those of `TaskModel`.

    Attributes:
        goal_: The labels that it knows, or the scale of the numbers, after `fit`.
    """

    task = "pair model"
    settings_kind = PairsSettings
    default_fit = FitSettings(rate=2e-3)
    width = 2

    @property
    def gives_numbers(self) -> bool:
        """Whether its answers are numbers, and not labels."""
        return self.settings.answer == "number"

    @property
    def classes_(self) -> tuple[str, ...]:
        """The labels in the order of `predict_proba`."""
        return self._labels().names

    def predict_proba(self, examples: Iterable[tuple[Sequence[str], Sequence[str]]]) -> np.ndarray:
        """How likely each label is, (pairs, labels)."""
        labels = self._labels()
        outputs = list(self.outputs(examples))
        return labels.probabilities(np.stack(outputs)) if outputs else np.zeros((0, labels.size), dtype=np.float32)

    def _labels(self) -> Classes:
        assert self.network
        if not isinstance(self.goal_, Classes):
            raise ConfigError("this model gives numbers, which have no probabilities; use predict")
        return self.goal_

    def _check(self, examples: Iterable[Any]) -> Iterator[Example]:
        return check_pairs(examples)

    def _answers(self, answers: Sequence[Any], which: str) -> list[Any]:
        return as_numbers(answers, which) if self.gives_numbers else as_labels(answers, which)

    def _learn_goal(self, answers: Sequence[Any]) -> Goal:
        return Scale.learn(answers) if self.gives_numbers else Classes.learn(answers)

    def _make_network(self, reader: Reader) -> PairsNetwork:
        return PairsNetwork(self.settings, reader, self.goal_.size)

    def _take_learned(self, learned: Any) -> None:  # noqa: ANN401 - whatever a file says
        self.goal_ = Scale.restore(learned) if self.gives_numbers else Classes.restore(learned)
