"""Spherical k-means: clusters of vectors by cosine similarity, quick enough to run for every word of a vocabulary."""

from __future__ import annotations

import numpy as np

from polyseme.embedding.similarity import unit

ITERATIONS = 25  # of Lloyd's algorithm, at most


def spherical_kmeans(vectors: np.ndarray, clusters: int, rng: np.random.Generator, restarts: int = 4) -> np.ndarray:
    """Spherical k-means of vectors (N, dim): for each the number of its cluster, the largest cluster first.

    The best of several restarts counts. There may be fewer clusters than requested, where vectors are too few or too
    similar.
    """
    directions = unit(np.asarray(vectors, dtype=np.float32))
    runs = [_lloyd(directions, _plus_plus(directions, clusters, rng)) for _ in range(restarts if clusters > 1 else 1)]
    labels = max(runs, key=lambda run: run[1])[0]
    sizes = np.bincount(labels, minlength=clusters)
    return np.argsort(np.argsort(-sizes, kind="stable"))[labels]


def _plus_plus(directions: np.ndarray, clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Initial centroids (k-means++): vectors drawn at random, more likely the farther from those already drawn."""
    chosen = [int(rng.integers(len(directions)))]
    distance = np.full(len(directions), np.inf)
    while len(chosen) < clusters:
        distance = np.minimum(distance, np.maximum(1 - directions @ directions[chosen[-1]], 0))
        distance[distance < 1e-6] = 0  # the same vector, but for rounding
        if not distance.any():
            break
        chosen.append(int(rng.choice(len(directions), p=distance / distance.sum())))
    return directions[chosen]


def _lloyd(directions: np.ndarray, centroids: np.ndarray) -> tuple[np.ndarray, float]:
    """Lloyd's algorithm: the label of each vector, and the sum of cosines with the centroids."""
    labels = np.full(len(directions), -1)
    for _ in range(ITERATIONS):
        before, labels = labels, (directions @ centroids.T).argmax(axis=1)
        if (labels == before).all():
            break
        centroids = unit(np.stack([directions[labels == number].sum(axis=0) for number in range(len(centroids))]))
    return labels, float((directions * centroids[labels]).sum())
