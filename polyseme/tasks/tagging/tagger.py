"""A tagger on top of any encoder (named entities, parts of speech, chunks): a BiLSTM-CRF, its training, its scores.

Shapes: B sentences, T words of the longest, K labels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from polyseme.embedding.batching import batches
from polyseme.errors import FormatError, InputError
from polyseme.tasks.features.bilstm import BiLstmNetwork, BiLstmSettings, learning_layers
from polyseme.tasks.features.reader import (
    WORD_BUDGET,
    Dataset,
    FeatureBatch,
    FeatureReader,
    SentenceVectors,
    answer_in_order,
    as_word_lists,
)
from polyseme.tasks.fitting.loop import DevScore, FitReport, FitSettings, length_batches
from polyseme.tasks.metrics import EntityScores, accuracy, score_entities
from polyseme.tasks.model import TaskModel
from polyseme.tasks.tagging.crf import Crf
from polyseme.tasks.tagging.labels import LabelledSentences, LabelSet
from polyseme.tasks.tagging.schemes import Constraints

Sentences = Iterable[str | Sequence[str]]
Labels = Iterable[Sequence[str | None]]
Result = TypeVar("Result")


@dataclass(frozen=True)
class TaggerSettings(BiLstmSettings):
    """Architecture of a tagger: the settings of its BiLSTM."""

    cells: int = 128
    layers: int = 1


class TaggerNetwork(BiLstmNetwork):
    """BiLSTM-CRF network: a `FeatureBatch` to scores of labels."""

    def __init__(self, settings: TaggerSettings, reader: FeatureReader, constraints: Constraints) -> None:
        super().__init__(settings, reader)
        self.output = nn.Linear(self.dim, len(constraints.start))
        self.crf = Crf(constraints)

    def forward(self, inputs: FeatureBatch) -> Tensor:
        """The emission scores (B, T, K) of each word's labels."""
        return self.output(self.read(inputs))

    def loss(self, inputs: FeatureBatch, labels: Tensor) -> Tensor:
        """The mean CRF loss (negative log-likelihood) of labels (B, T), with the penalty on mixing weights."""
        return self.crf.loss(self(inputs), labels, inputs.mask).mean() + self.penalty()


@dataclass(frozen=True)
class TagScores:
    """Tagging scores: accuracy; for entities precision, recall and F1.

    Attributes:
        words: Number of words.
        accuracy: Fraction of words whose label is right.
        entities: Precision, recall and F1, where the labels are of entities.
        unseen: Labels or entity types that did not occur in training, and how often they occur here; they count as
            wrong.
    """

    words: int
    accuracy: float
    entities: EntityScores | None
    unseen: dict[str, int]

    @property
    def main(self) -> DevScore:
        """The main score, which early stopping watches: entity F1, or accuracy where there are none."""
        if self.entities is None or not self.entities.overall.gold:
            return DevScore(self.accuracy, "accuracy")
        return DevScore(self.entities.overall.f1, "F1")


def score_tags(gold: LabelledSentences, predicted: Sequence[Sequence[str]], labels: LabelSet, which: str) -> TagScores:
    """Score predicted labels against those of a labelled set."""
    unseen: Counter[str] = labels.check(gold, which)
    return TagScores(
        words=sum(map(len, gold.sentences)),
        accuracy=accuracy(gold.labels, predicted),
        entities=score_entities(gold.labels, predicted) if labels.has_entities else None,
        unseen=dict(unseen.most_common()),
    )


class TaggerTask:
    """The training task of a tagger: a network, a training set, a dev set."""

    def __init__(
        self,
        network: TaggerNetwork,
        reader: FeatureReader,
        labels: LabelSet,
        sets: tuple[LabelledSentences, LabelledSentences | None],
        settings: FitSettings,
    ) -> None:
        train, dev = sets
        self._network, self.labels, self.settings, self.dev = network, labels, settings, dev
        self.train_set = reader.dataset(train.sentences)
        self.dev_set = reader.dataset(dev.sentences) if dev else None
        self._numbers = [torch.tensor(labels.encode(row)) for row in train.labels]
        self._layers = learning_layers(reader, train.sentences[0])

    @property
    def network(self) -> TaggerNetwork:
        """The network that is trained."""
        return self._network

    def encoder_layers(self) -> list[list[nn.Parameter]]:
        """Weights of fine-tuned encoders, by layer from the bottom up."""
        return self._layers

    def batches(self, rng: np.random.Generator) -> list[np.ndarray]:
        """Batches of numbers of sentences of similar length."""
        return length_batches(self.train_set.lengths, self.settings.batch_size, rng)

    def loss(self, batch: np.ndarray) -> Tensor:
        """The CRF loss of a batch of sentences."""
        inputs = self.train_set.batch(batch)
        padded = nn.utils.rnn.pad_sequence([self._numbers[number] for number in batch], batch_first=True)
        device = self._network.output.weight.device
        return self._network.loss(inputs.to(device), padded.to(device))

    def score(self) -> DevScore | None:
        """F1 of entities on the dev set; accuracy for other labels, and where the dev set has no entities."""
        if self.dev is None or self.dev_set is None:
            return None
        predicted = [self.labels.decode(numbers) for numbers in decode_all(self._network, self.dev_set)]
        return score_tags(self.dev, predicted, self.labels, "dev").main


def decode_all(network: TaggerNetwork, data: Dataset) -> list[list[int]]:
    """The best label sequences of a whole dataset (Viterbi), in order."""
    found: dict[int, list[int]] = {}
    for numbers in batches(data.lengths.tolist(), WORD_BUDGET):
        found.update(zip(numbers, decode(network, data.batch(numbers)), strict=True))
    return [found[number] for number in range(len(data))]


@torch.inference_mode()
def decode(network: TaggerNetwork, inputs: FeatureBatch) -> list[list[int]]:
    """The best label sequences of a batch (Viterbi)."""
    network.eval()
    inputs = inputs.to(network.output.weight.device)
    return network.crf.decode(network(inputs), inputs.mask)


@torch.no_grad()
def marginals(network: TaggerNetwork, inputs: FeatureBatch) -> list[np.ndarray]:
    """The marginal probabilities (words, labels) of each sentence of a batch."""
    network.eval()
    inputs = inputs.to(network.output.weight.device)
    probabilities = network.crf.marginals(network(inputs), inputs.mask).cpu().numpy()
    return [row[:length] for row, length in zip(probabilities, inputs.lengths.tolist(), strict=True)]


class Tagger(TaskModel[TaggerSettings, TaggerNetwork]):
    """Labels for the words of sentences, learned from labelled sentences; its arguments are those of `TaskModel`.

    Sentences are word lists, or raw strings of one sentence each, which are tokenised.

    Attributes:
        labels_: The labels that it knows, after `fit`.

    Examples:
        >>> tagger = polyseme.Tagger("english")  # the encoder: a path, a name, or what polyseme.load gave
        >>> tagger.fit(sentences, labels, dev=(dev_sentences, dev_labels))  # a list of words and of labels for each
        >>> tagger.predict([["Ada", "waits"]])
        [['B-PER', 'O']]
        >>> tagger.save("names")  # polyseme.Tagger.load("names") opens it
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

        def ask(items: list[SentenceVectors]) -> list[Result]:
            return answer(network, reader.collate(items))

        return answer_in_order(reader.stream(as_word_lists(sentences)), _size, ask, nothing)

    def _make_network(self, reader: FeatureReader) -> TaggerNetwork:
        return TaggerNetwork(self.settings_, reader, self.labels_.constraints)

    def _learned(self) -> dict[str, Any]:
        return {"scheme": self.labels_.scheme, "labels": list(self.labels_.names)}

    def _take_learned(self, learned: Any) -> None:  # noqa: ANN401 - whatever a file says
        if not isinstance(learned, dict) or not isinstance(learned.get("labels"), list):
            raise FormatError(f"a tagger's config.json should list its labels, not {learned!r:.60}")
        self.labels_ = LabelSet(learned.get("scheme", "plain"), tuple(map(str, learned["labels"])))


def _size(item: SentenceVectors) -> int:
    return len(item.words)
