"""Cosine similarity, and exact nearest-neighbour search over vectors read in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from polyseme.errors import InputError

QUERIES = 256  # compared with a block at a time

Blocks = Callable[[], Iterable[tuple[int, np.ndarray]]]  # vectors, some at a time, with the number of the first


def search(
    blocks: Blocks, queries: np.ndarray, top: int, without: Sequence[np.ndarray]
) -> list[list[tuple[int, float]]]:
    """Nearest neighbours: for each query (N, dim) the rows and cosines of the best, best first, ties by row.

    Args:
        blocks: All vectors, some at a time.
        queries: Vectors to compare them with.
        top: How many neighbours to return.
        without: For each query, rows to skip.
    """
    directions = unit(queries)
    found: list[list[tuple[int, float]]] = []
    for first in range(0, len(queries), QUERIES):
        some = slice(first, first + QUERIES)
        found += _search(blocks, directions[some], top, without[some])
    return found


def unit(vectors: np.ndarray) -> np.ndarray:
    """L2-normalised vectors, so that dot products are cosines; zeros stay zeros."""
    vectors = np.asarray(vectors, dtype=np.float32)
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)


def as_vectors(candidate: object) -> np.ndarray | None:
    """Vectors (n, dim) from an array, a tensor or lists of numbers; None for texts, which are yet to be embedded."""
    if not isinstance(candidate, Sequence | np.ndarray) and not hasattr(candidate, "numpy"):
        return None
    try:
        array = np.asarray(candidate)
    except (TypeError, ValueError):  # lists of words of unequal length
        return None
    return np.atleast_2d(array.astype(np.float32)) if array.dtype.kind in "fiu" and array.size else None


def cosine_matrix(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Cosine similarity (n, m) of every vector of one array (n, dim) with every vector of another (m, dim)."""
    if first.ndim != 2 or second.ndim != 2 or first.shape[1] != second.shape[1]:
        raise InputError(f"expected vectors (n, dim) and (m, dim) of one dimension; got {first.shape}, {second.shape}")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise InputError("the vectors hold NaN or infinity, which have no cosine; check where they come from")
    return unit(first) @ unit(second).T


def _search(
    blocks: Blocks, directions: np.ndarray, top: int, without: Sequence[np.ndarray]
) -> list[list[tuple[int, float]]]:
    count = len(directions)
    cosines = np.full((count, 0), -np.inf, dtype=np.float32)
    rows = np.zeros((count, 0), dtype=np.int64)
    for first, vectors in blocks():
        block = directions @ unit(vectors).T
        for number, passed in enumerate(without):
            block[number, passed[(passed >= first) & (passed < first + len(vectors))] - first] = -np.inf
        cosines = np.concatenate([cosines, block], axis=1)
        rows = np.concatenate([rows, np.broadcast_to(np.arange(first, first + len(vectors)), block.shape)], axis=1)
        if cosines.shape[1] > top:
            best = np.argpartition(-cosines, top - 1, axis=1)[:, :top]
            cosines, rows = np.take_along_axis(cosines, best, 1), np.take_along_axis(rows, best, 1)
    order = np.lexsort((rows, -cosines), axis=1)
    cosines, rows = np.take_along_axis(cosines, order, 1), np.take_along_axis(rows, order, 1)
    return [
        [(row, cosine) for row, cosine in zip(*pair, strict=True) if cosine > -np.inf]
        for pair in zip(rows.tolist(), cosines.tolist(), strict=True)
    ]
