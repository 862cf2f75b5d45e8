"""What models that say something of whole sentences share: fitting, predicting, comparing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

import numpy as np

from polyseme.errors import InputError
from polyseme.tasks.features.reader import Item
from polyseme.tasks.fitting.loop import Report, Score
from polyseme.tasks.model import S, TaskModel
from polyseme.tasks.sentences.data import (
    Example,
    Examples,
    ExampleSet,
    answer_in_order,
    collate_examples,
    stream_examples,
)
from polyseme.tasks.sentences.objective import ExampleNetwork, ExampleTask, Readable, outputs_of
from polyseme.tasks.sentences.targets import Goal


class Scores(Protocol):
    """How good answers are."""

    @property
    def main(self) -> Score:
        """The one number."""
        ...


G = TypeVar("G", bound=Goal)
R = TypeVar("R", bound=Scores)
M = TypeVar("M", bound="ExampleModel[Any, Any, Any]")


class ExampleModel(TaskModel[S, ExampleNetwork], Generic[S, G, R]):
    """A model whose examples are sentences or pairs of them; what it says of each is its goal."""

    width: ClassVar[int]  # sentences of an example
    goal_: G

    @abstractmethod
    def _check(self, examples: Iterable[Any]) -> Iterator[Example]:
        """Examples as people hand them in, made tuples of sentences."""

    @abstractmethod
    def _answers(self, answers: Sequence[Any], which: str) -> list[Any]:
        """Answers as people hand them in, made what the goal knows."""

    @abstractmethod
    def _learn_goal(self, answers: Sequence[Any]) -> G:
        """What is to be said, out of the answers of a training set."""

    def fit(
        self: M,
        examples: Iterable[Any],
        answers: Iterable[Any],
        dev: tuple[Iterable[Any], Iterable[Any]] | None = None,
        checkpoint: str | Path | None = None,
    ) -> M:
        """Learn from examples and an answer for each; `fitting` does the same and reports every step."""
        for _ in self.fitting(examples, answers, dev, checkpoint):
            pass
        return self

    def fitting(
        self,
        examples: Iterable[Any],
        answers: Iterable[Any],
        dev: tuple[Iterable[Any], Iterable[Any]] | None = None,
        checkpoint: str | Path | None = None,
    ) -> Iterator[Report]:
        """Learn, and give a report of every step.

        Args:
            examples: Word lists, or pairs of them.
            answers: One for each.
            dev: The same to judge by: the loop ends when it stops getting better, and the best is kept. Without it, all
                epochs are run and the last is kept.
            checkpoint: A folder in which every epoch is saved, and from which a killed run goes on.
        """
        sets = [self._set(examples, answers, "training").without_empty()]
        goal = self._learn_goal(sets[0].answers)
        if dev:
            sets.append(self._set(*dev, "dev").without_empty())
            if not len(sets[1]):
                raise InputError("the dev set is empty: nothing in it has words; leave it out to do without")
            goal.check(sets[1].answers, "dev")
        self.goal_ = goal
        self._build()
        readable = [(self._readable(each.examples), each) for each in sets]
        self._prepare(readable[0][0])
        task = ExampleTask(self.network, self.reader, goal, readable, self.fit_settings)
        yield from self._run(task, [(each.examples, each.answers) for each in sets], checkpoint)

    def outputs(self, examples: Iterable[Any]) -> Iterator[np.ndarray]:
        """The network's numbers for each example, in order, while examples come; memory is constant."""
        return self._outputs(self._check(examples))

    def predict(self, examples: Iterable[Any]) -> list[Any]:
        """The answer for each example; an empty sentence is given the commonest label, or the mean."""
        return [answer for output in self.outputs(examples) for answer in self.goal_.decode(output[None])]

    def evaluate(self, examples: Iterable[Any], answers: Iterable[Any]) -> R:
        """Compare predictions with true answers."""
        goal = self._known()
        gold = self._set(examples, answers, "test")
        goal.check(gold.answers, "test")
        outputs = list(self._outputs(gold.examples))
        predicted: list[Any] = goal.decode(np.stack(outputs)) if outputs else []
        return cast("R", goal.compare(gold.answers, predicted))

    def score(self, examples: Iterable[Any], answers: Iterable[Any]) -> float:
        """Accuracy of labels, or Pearson's correlation of numbers."""
        return self.evaluate(examples, answers).main.value

    def _outputs(self, examples: Iterable[Example]) -> Iterator[np.ndarray]:
        network, reader = self.network, self.reader

        def answer(some: list[tuple[Item, ...]]) -> list[np.ndarray]:
            return list(outputs_of(network, collate_examples(reader, some)))

        return answer_in_order(stream_examples(reader, examples, self.width), _words, answer, self.goal_.blank)

    def _known(self) -> G:
        assert self.network
        return self.goal_

    def _set(self, examples: Iterable[Any], answers: Iterable[Any], which: str) -> Examples:
        whole = Examples.of(self._check(examples), answers, which)
        return Examples(whole.examples, self._answers(whole.answers, which))

    def _readable(self, examples: Sequence[Example]) -> Readable:
        return ExampleSet(self.reader, examples)

    def _prepare(self, train: Readable) -> None:
        """What the network takes from the training set before it learns."""

    def _learned(self) -> dict[str, Any]:
        return dict(vars(self.goal_))


def _words(items: Sequence[Item]) -> int:
    """Words of an example; 0 where a sentence of it has none, for then there is nothing to say."""
    return sum(len(item.words) for item in items) if all(item.words for item in items) else 0
