"""Uses of a word side by side: how alike they are, layer by layer, and a map of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyseme.embedding.layers import choose
from polyseme.embedding.similarity import unit


def compare(uses: Sequence[np.ndarray], layer: str | int) -> list[dict[str, Any]]:
    """For each layer asked for, the cosines (uses, uses) and places on a map (uses, 2).

    Args:
        uses: For each use its vectors (layers, dim).
        layer: A number, ``average``, or ``all``: every layer by itself, then the average.
    """
    stacked = np.stack(uses, axis=1).astype(np.float32)  # (layers, uses, dim)
    choices = [*range(len(stacked)), "average"] if layer == "all" else [layer]
    return [
        {
            "layer": "mean" if choice == "average" else choice,
            "cosines": _cosines(choose(stacked, choice)),
            "map": flat_map(choose(stacked, choice)),
        }
        for choice in choices
    ]


def flat_map(vectors: np.ndarray) -> np.ndarray:
    """The two directions in which vectors (N, dim) differ most, as places (N, 2); the same for the same vectors.

    Each axis points to where its largest component is positive, so that no point jumps to the other side by chance.
    """
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    left, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    places = np.zeros((len(vectors), 2), np.float64)
    for number in range(min(2, len(sizes))):
        axis = axes[number]
        sign = 1.0 if axis[np.abs(axis).argmax()] >= 0 else -1.0
        places[:, number] = sign * sizes[number] * left[:, number]
    return np.ascontiguousarray(places.astype(np.float32))


def _cosines(vectors: np.ndarray) -> np.ndarray:
    units = unit(vectors)
    return np.ascontiguousarray((units @ units.T).clip(-1, 1))
