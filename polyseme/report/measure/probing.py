"""Linear probes (logistic regression) on words that are embedded once, for any labels and any choice of features."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from polyseme.analysis.layer_vectors import temporary_array
from polyseme.analysis.layers.logistic_regression import LinearProblem
from polyseme.backends.elmo.encoder import ElmoEncoder
from polyseme.embedding.encoder import Encoder
from polyseme.embedding.layers import STRATEGIES, check_vectors, choose
from polyseme.errors import PolysemeError
from polyseme.text.conll import LabelledSentence

JOINED, FORWARD, BACKWARD, BOTH, HALF = "joined", "forward", "backward", "both", "half of both"
MAX_FEATURES = 1_600  # with more, a fit takes minutes, so layers are not joined

FeatureView = Callable[[np.ndarray], np.ndarray]  # (layers, words, dim) to features (words, ...)
WordLabels = Sequence[Sequence[str | None]]


@dataclass(frozen=True, eq=False)
class EmbeddedWords:
    """All words of some sentences, one after the other, with their vectors (layers, words, dim)."""

    sentences: Sequence[Sequence[str]]
    layers: np.ndarray

    def __len__(self) -> int:
        return self.layers.shape[1]


def embed_words(encoder: Encoder, sentences: Sequence[Sequence[str]]) -> EmbeddedWords:
    """Embed all words of sentences, each sentence by itself."""
    return gather(encoder, sentences, encoder.embed(sentences))


def gather(encoder: Encoder, sentences: Sequence[Sequence[str]], vectors: Iterable[np.ndarray]) -> EmbeddedWords:
    """Collect a stream of sentences' vectors in one array; a large one is a memory-mapped file."""
    total = sum(map(len, sentences))
    layers = temporary_array(encoder.num_layers * total, encoder.dim).reshape(encoder.num_layers, total, encoder.dim)
    done = 0
    for words, array in zip(sentences, vectors, strict=True):
        layers[:, done : done + len(words)] = check_vectors(array, words)
        done += len(words)
    return EmbeddedWords(sentences, layers)


def layer_views(encoder: Encoder) -> dict[str, FeatureView]:
    """Features of each single layer, and of all layers joined if that is not too many features."""
    views: dict[str, FeatureView] = {str(number): one_layer(number) for number in range(encoder.num_layers)}
    if encoder.num_layers > 1 and encoder.num_layers * encoder.dim <= MAX_FEATURES:
        views[JOINED] = join
    return views


def direction_views(encoder: Encoder) -> dict[str, FeatureView]:
    """Features of an ELMo's forward LSTM, of its backward LSTM, and of both; layer 0 has no direction and is left out.

    ``half of both`` takes every second number of both directions, so that it has as many features as one direction.
    """
    if not isinstance(encoder, ElmoEncoder) or len(encoder.bilm.config.directions) < 2 or encoder.num_layers < 2:
        return {}
    half = encoder.dim // 2
    return {
        FORWARD: lambda layers: join(layers[1:, :, :half]),
        BACKWARD: lambda layers: join(layers[1:, :, half:]),
        BOTH: lambda layers: join(layers[1:]),
        HALF: lambda layers: join(layers[1:, :, ::2]),
    }


def strategy_views(encoder: Encoder) -> dict[str, FeatureView]:
    """The BERT paper's strategies for making features from layers; none for a model with fewer than six layers."""
    if encoder.num_layers < 6:
        return {}
    views: dict[str, FeatureView] = {}
    for name in STRATEGIES:
        try:
            choose(np.zeros((encoder.num_layers, 0, 1), dtype=np.float32), name)
        except PolysemeError:
            continue
        views[name] = _strategy(name)
    return views


def fit_and_predict(
    train: tuple[EmbeddedWords, WordLabels], test: tuple[EmbeddedWords, WordLabels], view: FeatureView
) -> list[str | None]:
    """Labels that a logistic regression predicts for each test word; None for words without a label there."""
    known, expected = (list(chain.from_iterable(labels)) for _, labels in (train, test))
    names = sorted({label for label in known if label is not None})
    number = {name: place for place, name in enumerate(names)}
    labelled = np.array([place for place, label in enumerate(known) if label is not None])
    features = view(train[0].layers[:, labelled] if len(labelled) < len(known) else train[0].layers)
    classes = np.array([number[known[place]] for place in labelled])  # pyright: ignore[reportArgumentType]
    predictions = LinearProblem(features).fit(classes).predict(view(test[0].layers))
    return [names[each] if label is not None else None for each, label in zip(predictions, expected, strict=True)]


def words_and_labels(sentences: Sequence[LabelledSentence]) -> tuple[list[list[str]], list[list[str | None]]]:
    """The words and the labels of labelled sentences as two lists."""
    return [sentence.words for sentence in sentences], [sentence.labels for sentence in sentences]


def is_correct(predictions: Sequence[str | None], labels: WordLabels) -> np.ndarray:
    """Whether the prediction is right, for each word that has a label."""
    flat = chain.from_iterable(labels)
    return np.array([given == label for given, label in zip(predictions, flat, strict=True) if label is not None])


def one_layer(number: int) -> FeatureView:
    """Features of a single layer."""
    return lambda layers: layers[number]


def _strategy(name: str) -> FeatureView:
    return lambda layers: choose(layers, name)


def join(layers: np.ndarray) -> np.ndarray:
    """Features of all layers joined end to end."""
    return np.concatenate(list(layers), axis=-1)
