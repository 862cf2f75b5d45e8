"""Nearest neighbours by cosine similarity: of a word in context among uses, and of a static vector among words."""

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

_BLOCK = 1 << 14  # vectors compared at a time


@dataclass(frozen=True)
class Neighbour:
    """A neighbouring use, and its cosine similarity."""

    use: Use
    cosine: float


@dataclass(frozen=True)
class Neighbours:
    """The nearest neighbours of one use of a word.

    Attributes:
        model: The name of the model.
        layer: The layer whose vectors were compared.
        use: The query.
        compared: How many uses it was compared with.
        found: The neighbours, the nearest first; a sentence that occurs several times is shown once.
    """

    model: str
    layer: LayerChoice
    use: Use
    compared: int
    found: tuple[Neighbour, ...]


@dataclass(frozen=True)
class StaticNeighbour:
    """A neighbouring word, and the cosine similarity of its static vector."""

    word: str
    cosine: float


@dataclass(frozen=True)
class StaticNeighbours:
    """The nearest neighbours of a word by static vectors, the same in every sentence."""

    name: str
    word: str
    found: tuple[StaticNeighbour, ...]


def nearest_uses(embedder: Embedder, use: Use, among: Uses, layer: LayerChoice = "top", top: int = 10) -> Neighbours:
    """Find the uses nearest to one by cosine similarity; the same sentence is not its own neighbour."""
    if top < 1:
        raise ConfigError(f"top, the number of neighbours, must be 1 or more, not {top}")
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
    """Find the words nearest to one in a file of static vectors."""
    static = load(path)
    if not isinstance(static, StaticEncoder):
        raise ConfigError(f"{path} does not hold static vectors; give a file of word vectors, such as GloVe's")
    found = static.nearest(word, top)
    return StaticNeighbours(static.name, word, tuple(StaticNeighbour(*each) for each in found))


def _cosines(query: np.ndarray, among: Uses, layer: LayerChoice) -> np.ndarray:
    """The cosine similarity of one vector with each use, a block at a time."""
    query = unit(query)
    blocks = (among.vectors(layer, slice(first, first + _BLOCK)) for first in range(0, len(among), _BLOCK))
    cosines = [unit(block) @ query for block in blocks]
    return np.concatenate(cosines) if cosines else np.zeros(0, dtype=np.float32)
