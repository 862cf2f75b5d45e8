"""What a direction reads and what it is to predict, in the order in which it reads.

A sentence w₁…wₙ is read forward as ``<S>, w₁…wₙ`` to predict ``w₁…wₙ, </S>``, and backward as ``</S>, wₙ…w₁`` to
predict ``wₙ…w₁, <S>``: n + 1 predictions a direction. The forward direction never reads ``</S>``, nor the backward
``<S>``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from polyseme.model.config import Direction
from polyseme.text.word_encoder import CLOSING, OPENING


class Row(NamedTuple):
    """One run of a direction from nothing: as many words to read as to predict."""

    read: np.ndarray
    wanted: np.ndarray


def make_row(sentences: Sequence[np.ndarray], direction: Direction) -> Row:
    """A document as one direction goes through it; a sentence by itself is a document of one."""
    first, last = (OPENING, CLOSING) if direction == "forward" else (CLOSING, OPENING)
    ordered = sentences if direction == "forward" else [sentence[::-1] for sentence in reversed(sentences)]
    read, wanted = [], []
    for sentence in ordered:
        read += [[first], sentence]
        wanted += [sentence, [last]]
    return Row(*(np.concatenate(parts, dtype=np.int64) if parts else np.zeros(0, np.int64) for parts in (read, wanted)))


class Step(NamedTuple):
    """Some steps of some rows side by side, those that end in between padded.

    Attributes:
        rows: How many rows have not ended: the first so many of the step before.
        read: Words to read (steps, rows); anything where a row has ended.
        present: Which of these, flattened, are there.
        places: Where what is predicted there belongs, in all rows laid end to end.
    """

    rows: int
    read: np.ndarray
    present: np.ndarray
    places: np.ndarray


def steps(rows: Sequence[np.ndarray], width: int, budget: int) -> Iterator[list[Step]]:
    """Go through rows of like length side by side, at most ``width`` of them, about ``budget`` words at a time.

    Gives the steps of one set of rows after the other; in each, the longest row comes first, and the ones that have
    ended drop out at the end.
    """
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    offsets = np.cumsum(lengths) - lengths
    flat = np.concatenate([*rows, np.zeros(0, np.int64)], dtype=np.int64)
    order = np.argsort(-lengths, kind="stable")
    for first in range(0, len(order), width):
        side_by_side = order[first : first + width]
        yield list(_steps(flat, offsets[side_by_side], lengths[side_by_side], budget))


def _steps(flat: np.ndarray, offsets: np.ndarray, lengths: np.ndarray, budget: int) -> Iterator[Step]:
    begin = 0
    while rows := int((lengths > begin).sum()):
        end = min(begin + max(1, budget // rows), int(lengths[0]))
        at = np.arange(begin, end)[:, None]
        present = at < lengths[:rows]
        places = np.where(present, at + offsets[:rows], 0)
        yield Step(rows, flat[places], np.flatnonzero(present), places[present])
        begin = end
