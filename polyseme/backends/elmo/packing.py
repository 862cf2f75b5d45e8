"""Sentences of unequal length in the order in which an LSTM reads them side by side, without padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Packing(NamedTuple):
    """Sentences by falling length: the first words of all, the second words of those that have one, and so on."""

    order: np.ndarray  # (B,) sentences by falling length
    sizes: np.ndarray  # (T,) sentences that have a word at step t
    rows: np.ndarray  # (N,) which of the sorted sentences a packed word stands in
    steps: np.ndarray  # (N,) and where in it


def pack(lengths: Sequence[int] | np.ndarray) -> Packing:
    """How sentences of these lengths are packed."""
    given = np.asarray(lengths, dtype=np.int64)
    order = np.argsort(-given, kind="stable")
    falling = given[order]
    longest = int(falling[0]) if len(falling) else 0
    sizes = np.searchsorted(-falling, -np.arange(longest), side="left").astype(np.int32)
    steps = np.repeat(np.arange(longest), sizes)
    rows = np.arange(len(steps)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return Packing(order, sizes, rows, steps)
