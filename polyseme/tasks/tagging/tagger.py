"""A tagger on top of any encoder: named entities, parts of speech, chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from polyseme.errors import FormatError, InputError
from polyseme.tasks.features.reader import EmbeddedSentence, FeatureBatch, FeatureReader, answer_in_order, as_word_lists
from polyseme.tasks.fitting.loop import FitReport, FitSettings
from polyseme.tasks.model import TaskModel
from polyseme.tasks.tagging.labels import LabelledSentences, LabelSet
from polyseme.tasks.tagging.network import (
    TaggerNetwork,
    TaggerSettings,
    TaggerTask,
    TagScores,
    decode,
    marginals,
    score_tags,
)

Sentences = Iterable[str | Sequence[str]]
Labels = Iterable[Sequence[str | None]]
Result = TypeVar("Result")


class Tagger(TaskModel[TaggerSettings, TaggerNetwork]):
    """Labels for the words of sentences, learned from labelled sentences; its arguments are those of `TaskModel`.

    Sentences are word lists, or raw strings of one sentence each, which are tokenised.

    Attributes:
        labels_: The labels that it knows, after `fit`.
    """

    task = "tagger"
    settings_kind = TaggerSettings
    default_fit = FitSettings(rate=3e-3)
    labels_: LabelSet

    def fitting(
        self,
        examples: Sentences,
        answers: Labels,
        dev: tuple[Sentences, Labels] | None = None,
        checkpoint: str | Path | None = None,
    ) -> Iterator[FitReport]:
        """Learn as `fit` does, and give a report of every step."""
        train = LabelledSentences.of(examples, answers, "training").without_empty()
        if len(train) and train.labels == train.sentences:
            raise InputError("the labels of the training set are its words; is this the column of the labels?")
        known = LabelSet.learn(train.labels)
        held = LabelledSentences.of(*dev, "dev").without_empty() if dev else None
        if held is not None:
            if not len(held):
                raise InputError("the dev set is empty: no sentence in it has a word; leave it out to do without")
            known.check(held, "dev")
        self._begin()
        self.labels_ = known
        self._build()
        task = TaggerTask(self.network_, self.reader_, known, (train, held), self.fit_settings_)
        data = [(part.sentences, part.labels) for part in (train, held) if part]
        yield from self._run(task, data, checkpoint)

    @property
    def classes_(self) -> np.ndarray:
        """The labels in the order of `predict_proba`; entities in BIOES, whatever scheme the training had."""
        return np.array(self.labels_.names, dtype=object)

    def tag(self, sentences: Sentences) -> Iterator[list[str]]:
        """Tag a stream of sentences, in order and in constant memory."""
        return map(self.labels_.decode, self._each(sentences, decode, []))

    def predict(self, sentences: Sentences) -> list[list[str]]:
        """Predict the labels of each sentence, in the training's scheme; never a sequence that it forbids."""
        return list(self.tag(sentences))

    def predict_proba(self, sentences: Sentences) -> list[np.ndarray]:
        """Marginal probability of each label: an array (words, labels) for each sentence."""
        nothing = np.zeros((0, len(self.classes_)), dtype=np.float32)
        return list(self._each(sentences, marginals, nothing))

    def evaluate(self, sentences: Sentences, labels: Labels) -> TagScores:
        """Evaluate predictions: accuracy, and for entities precision, recall and F1 by type."""
        gold = LabelledSentences.of(sentences, labels, "test")
        self.labels_.check(gold, "test")
        return score_tags(gold, self.predict(gold.sentences), self.labels_, "test")

    def score(self, sentences: Sentences, labels: Labels) -> float:
        """The main score: F1 of entities, or accuracy of other labels."""
        return self.evaluate(sentences, labels).main.value

    def _each(
        self,
        sentences: Sentences,
        answer: Callable[[TaggerNetwork, FeatureBatch], list[Result]],
        nothing: Result,
    ) -> Iterator[Result]:
        """Stream the network's answer for each sentence; sentences of similar length share a batch."""
        network, reader = self.network_, self.reader_

        def ask(items: list[EmbeddedSentence]) -> list[Result]:
            return answer(network, reader.collate(items))

        return answer_in_order(reader.stream(as_word_lists(sentences)), _size, ask, nothing)

    def _make_network(self, reader: FeatureReader) -> TaggerNetwork:
        return TaggerNetwork(self.settings_, reader, self.labels_.constraints)

    def _learned(self) -> dict[str, Any]:
        return {"scheme": self.labels_.scheme, "labels": list(self.labels_.names)}

    def _take_learned(self, learned: Any) -> None:  # noqa: ANN401 - whatever a file says
        if not isinstance(learned, dict) or not isinstance(learned.get("labels"), list):
            raise FormatError(f"a tagger's config.json should say its labels, not {learned!r:.60}")
        self.labels_ = LabelSet(learned.get("scheme", "plain"), tuple(map(str, learned["labels"])))


def _size(item: EmbeddedSentence) -> int:
    return len(item.words)
