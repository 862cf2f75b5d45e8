"""Clusters of vectors by cosine: spherical k-means, small and quick enough to run for every word of a vocabulary."""

from __future__ import annotations

import numpy as np

from polyseme.embedding.similarity import unit

STARTS = 4
ROUNDS = 25


def spherical_kmeans(vectors: np.ndarray, clusters: int, rng: np.random.Generator) -> np.ndarray:
    """For each vector (N, dim) the number of its cluster, the largest cluster first; the best of a few starts.

    There may be fewer clusters than asked for, where vectors are too few or too much alike.
    """
    directions = unit(np.asarray(vectors, dtype=np.float32))
    runs = [_run(directions, _start(directions, clusters, rng)) for _ in range(STARTS if clusters > 1 else 1)]
    labels = max(runs, key=lambda run: run[1])[0]
    sizes = np.bincount(labels, minlength=clusters)
    return np.argsort(np.argsort(-sizes, kind="stable"))[labels]


def _start(directions: np.ndarray, clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Centres drawn among the vectors, each the likelier the farther it is from those before (k-means++)."""
    chosen = [int(rng.integers(len(directions)))]
    distance = np.full(len(directions), np.inf)
    while len(chosen) < clusters:
        distance = np.minimum(distance, np.maximum(1 - directions @ directions[chosen[-1]], 0))
        distance[distance < 1e-6] = 0  # the same vector, but for rounding
        if not distance.any():
            break
        chosen.append(int(rng.choice(len(directions), p=distance / distance.sum())))
    return directions[chosen]


def _run(directions: np.ndarray, centres: np.ndarray) -> tuple[np.ndarray, float]:
    """Labels, and the sum of cosines with the centres."""
    labels = np.full(len(directions), -1)
    for _ in range(ROUNDS):
        cosines = directions @ centres.T
        before, labels = labels, cosines.argmax(axis=1)
        if (labels == before).all():
            break
        sums = np.zeros_like(centres)
        np.add.at(sums, labels, directions)
        centres = unit(sums)
    return labels, float((directions * centres[labels]).sum())
