"""Linear probes on words that are embedded once, whatever is asked about them and of whichever numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from polyseme.analysis.layer_vectors import temporary_array
from polyseme.analysis.layers.logistic_regression import LinearProblem
from polyseme.backends.elmo.encoder import ElmoEncoder
from polyseme.corpus.uses import check_vectors
from polyseme.embedding.encoder import Encoder
from polyseme.embedding.layers import STRATEGIES, choose
from polyseme.errors import PolysemeError
from polyseme.text.conll import LabelledSentence

JOINED, FORWARD, BACKWARD, BOTH, HALF = "joined", "forward", "backward", "both", "half of both"
MOST = 1_600  # numbers of a vector up to which layers are joined: beyond, a fit takes minutes

FeatureView = Callable[[np.ndarray], np.ndarray]  # (layers, words, dim) to features (words, ...)
Labels = Sequence[Sequence[str | None]]


@dataclass(frozen=True, eq=False)
class EmbeddedWords:
    """All words of some sentences, one after the other, with their vectors (layers, words, dim)."""

    sentences: Sequence[Sequence[str]]
    layers: np.ndarray

    def __len__(self) -> int:
        return self.layers.shape[1]

    def owners(self) -> np.ndarray:
        """For each word, the number of its sentence."""
        return np.repeat(np.arange(len(self.sentences)), [len(words) for words in self.sentences])


def embed_words(encoder: Encoder, sentences: Sequence[Sequence[str]]) -> EmbeddedWords:
    """Embed sentences, each by itself."""
    return gather(encoder, sentences, encoder.embed(sentences))


def gather(encoder: Encoder, sentences: Sequence[Sequence[str]], vectors: object) -> EmbeddedWords:
    """Vectors of sentences, as they come, side by side in one array; a large one lies in a file."""
    total = sum(map(len, sentences))
    layers = temporary_array(encoder.num_layers * total, encoder.dim).reshape(encoder.num_layers, total, encoder.dim)
    done = 0
    for words, array in zip(sentences, vectors, strict=True):  # pyright: ignore[reportArgumentType]
        layers[:, done : done + len(words)] = check_vectors(array, words)
        done += len(words)
    return EmbeddedWords(sentences, layers)


def layer_views(encoder: Encoder) -> dict[str, FeatureView]:
    """Each layer by itself, and all joined where that is not too much."""
    views: dict[str, FeatureView] = {str(number): single(number) for number in range(encoder.num_layers)}
    if encoder.num_layers > 1 and encoder.num_layers * encoder.dim <= MOST:
        views[JOINED] = join
    return views


def direction_views(encoder: Encoder) -> dict[str, FeatureView]:
    """Of an ELMo, what one direction knows by itself, and both; without layer 0, which has no direction.

    ``half of both`` is every other number of both, so that it is as many as one direction has.
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
    """The BERT paper's ways of making features; of a model with too few layers for them, none."""
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


def fit_and_answer(
    train: tuple[EmbeddedWords, Labels], test: tuple[EmbeddedWords, Labels], view: FeatureView
) -> list[str | None]:
    """The label that a logistic regression gives each word of the test; None for words that have none there."""
    given, asked = (list(chain.from_iterable(labels)) for _, labels in (train, test))
    names = sorted({label for label in given if label is not None})
    number = {name: place for place, name in enumerate(names)}
    learnt = np.array([place for place, label in enumerate(given) if label is not None])
    features = view(train[0].layers[:, learnt] if len(learnt) < len(given) else train[0].layers)
    classes = np.array([number[given[place]] for place in learnt])  # pyright: ignore[reportArgumentType]
    answers = LinearProblem(features).fit(classes).predict(view(test[0].layers))
    return [names[answer] if label is not None else None for answer, label in zip(answers, asked, strict=True)]


def columns(sentences: Sequence[LabelledSentence]) -> tuple[list[list[str]], list[list[str | None]]]:
    """Words and labels of labelled sentences apart."""
    return [sentence.words for sentence in sentences], [sentence.labels for sentence in sentences]


def right(answers: Sequence[str | None], labels: Labels) -> np.ndarray:
    """For each word that has a label, whether the answer is that."""
    flat = chain.from_iterable(labels)
    return np.array([answer == label for answer, label in zip(answers, flat, strict=True) if label is not None])


def single(number: int) -> FeatureView:
    """One layer."""
    return lambda layers: layers[number]


def _strategy(name: str) -> FeatureView:
    return lambda layers: choose(layers, name)


def join(layers: np.ndarray) -> np.ndarray:
    """All layers end to end."""
    return np.concatenate(list(layers), axis=-1)
