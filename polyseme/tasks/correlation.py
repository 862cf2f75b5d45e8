"""How two lists of numbers go together."""

from __future__ import annotations

import numpy as np


def pearson(one: np.ndarray, other: np.ndarray) -> float:
    """Pearson's correlation; NaN where one side never varies, or where there are fewer than two values."""
    if len(one) < 2:
        return float("nan")
    first, second = (values - values.mean() for values in (np.asarray(one, float), np.asarray(other, float)))
    scale = np.sqrt(first @ first) * np.sqrt(second @ second)
    return float(first @ second / scale) if scale else float("nan")


def spearman(one: np.ndarray, other: np.ndarray) -> float:
    """Spearman's rank correlation; equal values share the mean of their ranks. NaN where one side never varies."""
    return pearson(_ranks(one), _ranks(other))


def _ranks(values: np.ndarray) -> np.ndarray:
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[which]
