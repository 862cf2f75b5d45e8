"""Comparison of uses of a word: cosine similarities layer by layer, and a two-dimensional map (PCA)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyseme.embedding.layers import choose
from polyseme.embedding.similarity import unit


def compare(uses: Sequence[np.ndarray], layer: str | int) -> list[dict[str, Any]]:
    """Cosine similarities (uses, uses) and map coordinates (uses, 2), for each requested layer.

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
            "map": pca_map(choose(stacked, choice)),
        }
        for choice in choices
    ]


def pca_map(vectors: np.ndarray) -> np.ndarray:
    """Coordinates (N, 2) of vectors (N, dim) on their first two principal components (PCA), deterministic.

    The sign of each axis makes its largest component positive, so that no map is mirrored by chance.
    """
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    left, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    coordinates = np.zeros((len(vectors), 2), np.float64)
    for component in range(min(2, len(sizes))):
        axis = axes[component]
        sign = 1.0 if axis[np.abs(axis).argmax()] >= 0 else -1.0
        coordinates[:, component] = sign * sizes[component] * left[:, component]
    return np.ascontiguousarray(coordinates.astype(np.float32))


def _cosines(vectors: np.ndarray) -> np.ndarray:
    units = unit(vectors)
    return np.ascontiguousarray((units @ units.T).clip(-1, 1))
