"""Base class of classifiers and pair models: fitting, prediction and evaluation of whole sentences."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

import numpy as np

from polyseme.errors import InputError
from polyseme.tasks.features.reader import SentenceVectors, answer_in_order
from polyseme.tasks.fitting.loop import DevScore, FitReport
from polyseme.tasks.model import S, TaskModel
from polyseme.tasks.sentences.data import (
    Example,
    Examples,
    ExampleSet,
    collate_examples,
    stream_examples,
)
from polyseme.tasks.sentences.objective import ExampleNetwork, ExampleSource, ExampleTask, outputs_of
from polyseme.tasks.sentences.targets import Target


class TaskScores(Protocol):
    """Evaluation scores of any kind of target."""

    @property
    def main(self) -> DevScore:
        """The main score, which early stopping watches."""
        ...


T = TypeVar("T", bound=Target)
R = TypeVar("R", bound=TaskScores)


class ExampleModel(TaskModel[S, ExampleNetwork], Generic[S, T, R]):
    """A model whose examples are sentences or pairs of them; what it predicts of each is its target.

    Attributes:
        target_: The labels that it knows, or the scale of the numbers, after `fit`.
    """

    width: ClassVar[int]  # sentences of an example
    target_: T

    @abstractmethod
    def _check(self, examples: Iterable[Any]) -> Iterator[Example]:
        """Check examples as the user gives them, and make them tuples of word lists."""

    @abstractmethod
    def _target_kind(self, settings: S) -> type[T]:
        """The kind of target, labels or numbers, by the settings."""

    def fitting(
        self,
        examples: Iterable[Any],
        answers: Iterable[Any],
        dev: tuple[Iterable[Any], Iterable[Any]] | None = None,
        checkpoint: str | Path | None = None,
    ) -> Iterator[FitReport]:
        """Learn as `fit` does, and give a report of every step."""
        kind = self._target_kind(self._resolved("settings"))
        sets = [self._set(examples, answers, kind, "training").without_empty()]
        target = cast("T", kind.learn(sets[0].answers))
        if dev:
            sets.append(self._set(*dev, kind, "dev").without_empty())
            if not len(sets[1]):
                raise InputError("the dev set is empty: nothing in it has words; leave it out to do without")
            target.check(sets[1].answers, "dev")
        self._begin()
        self.target_ = target
        self._build()
        readable = [(self._readable(each.examples), each) for each in sets]
        self._measure_training_set(readable[0][0])
        task = ExampleTask(self.network_, self.reader_, target, readable, self.fit_settings_)
        yield from self._run(task, [(each.examples, each.answers) for each in sets], checkpoint)

    def outputs(self, examples: Iterable[Any]) -> Iterator[np.ndarray]:
        """Stream the network's outputs for each example, in order and in constant memory."""
        return self._outputs(self._check(examples))

    def predict(self, examples: Iterable[Any]) -> list[Any]:
        """Predict a label or number for each example; an empty sentence gets the commonest label, or the mean."""
        return [answer for output in self.outputs(examples) for answer in self.target_.decode(output[None])]

    def evaluate(self, examples: Iterable[Any], answers: Iterable[Any]) -> R:
        """Evaluate predictions against the true answers: all scores."""
        target = self.target_
        gold = self._set(examples, answers, type(target), "test")
        target.check(gold.answers, "test")
        outputs = list(self._outputs(gold.examples))
        predicted: list[Any] = target.decode(np.stack(outputs)) if outputs else []
        return cast("R", target.compare(gold.answers, predicted))

    def score(self, examples: Iterable[Any], answers: Iterable[Any]) -> float:
        """Accuracy of labels, or Pearson's correlation of numbers."""
        return self.evaluate(examples, answers).main.value

    def _outputs(self, examples: Iterable[Example]) -> Iterator[np.ndarray]:
        network, reader = self.network_, self.reader_

        def answer(some: list[tuple[SentenceVectors, ...]]) -> list[np.ndarray]:
            return list(outputs_of(network, collate_examples(reader, some)))

        return answer_in_order(stream_examples(reader, examples, self.width), _words, answer, self.target_.blank)

    def _set(self, examples: Iterable[Any], answers: Iterable[Any], kind: type[Target], which: str) -> Examples:
        whole = Examples.of(self._check(examples), answers, which)
        return Examples(whole.examples, kind.read(whole.answers, which))

    def _readable(self, examples: Sequence[Example]) -> ExampleSource:
        return ExampleSet(self.reader_, examples)

    def _measure_training_set(self, train: ExampleSource) -> None:
        """Measure the training set before training, as for standardisation."""

    def _learned(self) -> dict[str, Any]:
        return dict(vars(self.target_))

    def _take_learned(self, learned: Any) -> None:  # noqa: ANN401 - whatever a file says
        self.target_ = cast("T", self._target_kind(self.settings_).restore(learned))


def _words(items: Sequence[SentenceVectors]) -> int:
    """Number of words of an example; 0 where one of its sentences is empty."""
    return sum(len(item.words) for item in items) if all(item.words for item in items) else 0
