"""Packed sequences for an LSTM: sentences of unequal length side by side, without padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from polyseme.text.word_encoder import BOUNDARIES, CLOSING, OPENING


class FlatText(NamedTuple):
    """Sentences end to end, as numbers of distinct words."""

    places: np.ndarray  # (N,) which distinct word stands there
    lengths: np.ndarray  # (B,)


def add_boundaries(text: FlatText) -> FlatText:
    """Put the opening and closing boundary words around each sentence."""
    begins = np.cumsum(text.lengths + BOUNDARIES) - text.lengths - BOUNDARIES
    places = np.empty(len(text.places) + BOUNDARIES * len(text.lengths), text.places.dtype)
    places[begins] = OPENING
    places[begins + text.lengths + 1] = CLOSING
    inner = np.ones(len(places), bool)
    inner[begins] = inner[begins + text.lengths + 1] = False
    places[inner] = text.places
    return FlatText(places, text.lengths + BOUNDARIES)


class Packing(NamedTuple):
    """Packing order: the first words of all sentences, the second words of those that have one, and so on."""

    order: np.ndarray  # (B,) sentences by falling length
    sizes: np.ndarray  # (T,) sentences that have a word at step t
    rows: np.ndarray  # (N,) which of the sorted sentences a packed word stands in
    steps: np.ndarray  # (N,) and where in it


def pack(lengths: Sequence[int] | np.ndarray) -> Packing:
    """The packing order of sentences of these lengths."""
    given = np.asarray(lengths, dtype=np.int64)
    order = np.argsort(-given, kind="stable")
    falling = given[order]
    longest = int(falling[0]) if len(falling) else 0
    sizes = np.searchsorted(-falling, -np.arange(longest), side="left").astype(np.int32)
    steps = np.repeat(np.arange(longest), sizes)
    rows = np.arange(len(steps)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return Packing(order, sizes, rows, steps)
