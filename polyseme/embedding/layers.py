"""Layer choice, layer mixing and pooling: functions on arrays (layers, words, dim)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polyseme.errors import ConfigError, nearest

# The six ways of the BERT paper (its table 7) to make features: the layers that each takes. Layer 0 is no hidden layer.
STRATEGIES = {
    "embeddings": slice(0, 1),
    "second-to-last": slice(-2, -1),
    "last": slice(-1, None),
    "weighted-sum-last-four": slice(-4, None),
    "concat-last-four": slice(-4, None),
    "weighted-sum-all": slice(1, None),
}
NAMES = ("all", "top", "average", *STRATEGIES)
POOLINGS = ("mean", "max")


@dataclass(frozen=True)
class Mix:
    """A fitted layer mixture: γ · Σ weights[j] · layer j, with normalised weights."""

    weights: tuple[float, ...]
    gamma: float = 1.0

    def __post_init__(self) -> None:
        if not self.weights or not np.isfinite([*self.weights, self.gamma]).all():
            raise ConfigError(f"a mix needs weights, and finite ones; got {self.weights} and gamma {self.gamma}")

    def __str__(self) -> str:
        """The mixture as `parse_choice` reads it."""
        weights = ",".join(f"{weight:g}" for weight in self.weights)
        return weights if self.gamma == 1 else f"{weights} times {self.gamma:g}"

    @classmethod
    def from_scores(cls, scores: Sequence[float], gamma: float = 1.0) -> Mix:
        """From weights before the softmax, as `ScalarMix` and AllenNLP's ``scalar_mix_parameters`` hold them."""
        powers = np.exp(np.asarray(scores, dtype=np.float64) - max(scores, default=0))
        return cls(tuple(float(power) for power in powers / powers.sum()), float(gamma))


LayerChoice = str | int | Mix


def choose(vectors: np.ndarray, choice: LayerChoice) -> np.ndarray:
    """Choose layers: ``all`` gives (layers, words, dim); ``top``, ``average``, a number or a `Mix` give (words, dim).

    So do the names in `STRATEGIES`, but ``concat-last-four``, which gives (words, 4 · dim). A weighted sum has even
    weights here; a task learns them, by a `ScalarMix` over the layers in `layers_of`.
    """
    layers = vectors.shape[0]
    if isinstance(choice, Mix):
        if len(choice.weights) != layers:
            raise ConfigError(f"the mix has {len(choice.weights)} weights, but there are {layers} layers")
        weights = np.asarray(choice.weights, dtype=np.float32) * np.float32(choice.gamma)
        return np.tensordot(weights, vectors.astype(np.float32), axes=1).astype(vectors.dtype)
    if isinstance(choice, int | np.integer) and not isinstance(choice, bool):
        if not 0 <= choice < layers:
            raise ConfigError(f"there is no layer {choice}: the layers are 0 to {layers - 1}; 'top' is the last")
        return vectors[int(choice)]
    if choice == "all":
        return vectors
    if choice == "top":
        return vectors[-1]
    if choice == "average":
        return _average(vectors)
    if isinstance(choice, str) and choice in STRATEGIES:
        taken = vectors[layers_of(choice, layers)]
        return np.concatenate(taken, axis=-1) if choice == "concat-last-four" else _average(taken)
    raise ConfigError(
        f"layers must be one of {', '.join(NAMES)}, a number or a mix, not {choice!r}.{nearest(str(choice), NAMES)}"
    )


def layers_of(strategy: str, num_layers: int) -> slice:
    """The layers that one of the `STRATEGIES` takes of a model with so many, layer 0 among them."""
    if strategy not in STRATEGIES:
        known = ", ".join(STRATEGIES)
        raise ConfigError(f"the strategies are {known}; there is no {strategy!r}.{nearest(strategy, STRATEGIES)}")
    first, end, _ = STRATEGIES[strategy].indices(num_layers)
    if first >= end or (first == 0 and strategy not in ("embeddings", "last")):
        raise ConfigError(
            f"{strategy!r} needs more layers than this model's {num_layers}, and layer 0 is no hidden one"
        )
    return slice(first, end)


def check_vectors(vectors: np.ndarray, words: Sequence[str]) -> np.ndarray:
    """Check that there is one vector for each word, as a model with boundary vectors does not give."""
    if vectors.shape[1] != len(words):
        raise ConfigError(
            f"the model gave {vectors.shape[1]} vectors for {len(words)} words; load it without boundaries"
        )
    return vectors


def needed_layers(layer: LayerChoice, num_layers: int) -> tuple[int, ...]:
    """The numbers of the layers that a layer choice needs."""
    if layer == "all":
        return tuple(range(num_layers))
    return tuple(int(number) for number in np.flatnonzero(_weights(layer, num_layers)))


def layer_weights(layer: LayerChoice, num_layers: int) -> np.ndarray:
    """The weight of each layer in a choice that gives one vector per word; refuses ``all``."""
    if layer == "all":
        raise ConfigError("expected one layer, not all: give a number, top, average or a mix")
    return _weights(layer, num_layers)


def pool(vectors: np.ndarray, how: str) -> np.ndarray:
    """Pooling: one vector for a sentence, over its words: ``mean`` or ``max``; zeros for a sentence without words."""
    if how not in POOLINGS:
        raise ConfigError(f"pooling must be 'mean' or 'max', not {how!r}.{nearest(str(how), POOLINGS)}")
    if vectors.shape[-2] == 0:
        return np.zeros((*vectors.shape[:-2], vectors.shape[-1]), dtype=vectors.dtype)
    if how == "max":
        return vectors.max(axis=-2)
    return vectors.mean(axis=-2, dtype=np.float32).astype(vectors.dtype)


def parse_choice(text: str, gamma: float = 1.0) -> LayerChoice:
    """A layer choice as typed: a name (``all``, ``last``), a number, or the weights of a mix, ``0.2,0.5,0.3``."""
    if text in NAMES:
        return text
    try:
        weights = tuple(float(part) for part in text.split(",")) if "," in text else None
        number = int(text) if weights is None else 0
    except ValueError:
        known = f"{', '.join(NAMES)}, a layer's number, or weights like 0.2,0.5,0.3"
        raise ConfigError(f"layers must be {known}; got {text!r}.{nearest(text, NAMES)}") from None
    return number if weights is None else Mix(weights, gamma)


def _average(vectors: np.ndarray) -> np.ndarray:
    return vectors.astype(np.float32).mean(axis=0).astype(vectors.dtype)


def _weights(layer: LayerChoice, num_layers: int) -> np.ndarray:
    """The weights of a layer choice: what it makes of layers that are the unit vectors."""
    weights = choose(np.eye(num_layers, dtype=np.float32)[:, None], layer)[0]
    if len(weights) != num_layers:
        raise ConfigError(f"{layer!r} concatenates layers; give a number, top, average or a mix")
    return weights
