"""The uses of a word most alike in context, beside the words most alike for a vector that knows no context."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from polyseme.backends.static import StaticEncoder
from polyseme.corpus.uses import Use, Uses, embed_uses
from polyseme.embedding.interfaces import Embedder
from polyseme.embedding.layers import LayerChoice
from polyseme.embedding.similarity import unit
from polyseme.errors import ConfigError, InputError
from polyseme.loading import load

_ROWS = 1 << 14  # vectors that are compared at a time


@dataclass(frozen=True)
class Neighbour:
    """A use, and how alike it is."""

    use: Use
    cosine: float


@dataclass(frozen=True)
class Neighbours:
    """The uses most like one use.

    Attributes:
        model: The name of the model.
        layer: Whose vectors were compared.
        use: What was asked about.
        compared: How many uses were looked at.
        found: The most alike, the nearest first; a sentence that occurs several times is shown once.
    """

    model: str
    layer: LayerChoice
    use: Use
    compared: int
    found: tuple[Neighbour, ...]


@dataclass(frozen=True)
class StaticNeighbour:
    """A word, and how alike its static vector is."""

    word: str
    cosine: float


@dataclass(frozen=True)
class StaticNeighbours:
    """The words most like one for static vectors, the same in every sentence."""

    name: str
    word: str
    found: tuple[StaticNeighbour, ...]


def nearest_uses(embedder: Embedder, use: Use, among: Uses, layer: LayerChoice = "top", top: int = 10) -> Neighbours:
    """The uses most like one; the very same sentence is not its own neighbour."""
    if top < 1:
        raise ConfigError(f"the number of neighbours must be 1 or more, not {top}")
    query = embed_uses(embedder, [use], layer).vectors(layer)[0]
    if not query.any():
        raise InputError(f"{embedder.name} has no vector for {use.word!r}: it is all zeros; choose another word")
    cosines = _cosines(query, among, layer)
    found: list[Neighbour] = []
    seen = {use}
    for number in np.argsort(-cosines, kind="stable"):
        other = among[int(number)]
        if other not in seen:
            seen.add(other)
            found.append(Neighbour(other, float(cosines[number])))
        if len(found) == top:
            break
    return Neighbours(embedder.name, layer, use, len(among), tuple(found))


def static_neighbours(path: str | Path, word: str, top: int = 10) -> StaticNeighbours:
    """The words that a file of static vectors has nearest to a word."""
    static = load(path)
    if not isinstance(static, StaticEncoder):
        raise ConfigError(f"{path} is no file of static vectors; the neighbours of a word need one, such as GloVe's")
    found = static.nearest(word, top)
    return StaticNeighbours(static.name, word, tuple(StaticNeighbour(*each) for each in found))


def _cosines(query: np.ndarray, among: Uses, layer: LayerChoice) -> np.ndarray:
    """Of one vector with each of many, a piece at a time."""
    query = unit(query)
    pieces = [unit(among.vectors(layer, slice(first, first + _ROWS))) @ query for first in range(0, len(among), _ROWS)]
    return np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.float32)
