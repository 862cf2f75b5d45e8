"""Word cache: which row of a table holds which word's context-free vector, least recently used words evicted."""

from __future__ import annotations

from itertools import repeat
from typing import NamedTuple

import numpy as np

from polyseme.text.word_encoder import BOUNDARIES


class WordRows(NamedTuple):
    """Rows of the words looked up, and what the owner of the vectors has to do first, in this order."""

    kept: np.ndarray | None  # rows to move to the table's beginning, in order; None: leave the table as it is
    new: list[str]  # words to encode into the rows after the last one held
    words: np.ndarray  # (N,) the row of each word


class CacheReport(NamedTuple):
    """Word cache statistics: words looked up, and how many had to be encoded."""

    words: int
    encoded: int

    @property
    def hit_rate(self) -> float:
        """Share of words that were in the cache."""
        return 1 - self.encoded / self.words if self.words else 0.0


class WordTable:
    """A word cache of bounded size; when it is full, the least recently used words are evicted.

    It holds at most `size` words, or those of one batch if they are more.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.report = CacheReport(0, 0)
        self._rows: dict[str, int] = {}
        self._used = np.zeros(BOUNDARIES, dtype=np.int64)  # when each row was last asked for
        self._clock = 0

    def __len__(self) -> int:
        """Number of rows in use, boundaries included."""
        return len(self._rows) + BOUNDARIES

    def look_up(self, words: list[str], occurrences: int | None = None) -> WordRows:
        """A row for every word; those that are new to the table are to be encoded by the caller.

        Words may be the distinct ones of a text; how many it has in all is for the report.
        """
        rows = self._find(words)
        missing = np.flatnonzero(rows < 0)
        new = list(dict.fromkeys([words[number] for number in missing]))
        self._clock += 1
        self._used[rows[rows >= 0]] = self._clock
        kept = self._forget(len(new)) if len(self._rows) + len(new) > self.size else None
        first = len(self)
        self._rows.update(zip(new, range(first, first + len(new)), strict=True))
        self._used = np.concatenate([self._used, np.full(len(new), self._clock)])
        asked = len(words) if occurrences is None else occurrences
        self.report = CacheReport(self.report.words + asked, self.report.encoded + len(new))
        if kept is not None:
            rows = self._find(words)
        elif new:
            rows[missing] = self._find([words[number] for number in missing])
        return WordRows(kept, new, rows)

    def clear(self) -> None:
        """Empty the cache, because encoding some words failed; the boundaries stay."""
        self._rows.clear()
        self._used = self._used[:BOUNDARIES]

    def _find(self, words: list[str]) -> np.ndarray:
        return np.fromiter(map(self._rows.get, words, repeat(-1)), np.int64, len(words))

    def _forget(self, coming: int) -> np.ndarray:
        """Evict words: keep this batch's and the most recent others, until the table is at most half full."""
        room = max(0, self.size // 2 - coming)
        by_use = np.argsort(-self._used[BOUNDARIES:], kind="stable") + BOUNDARIES
        needed = int((self._used[BOUNDARIES:] == self._clock).sum())
        kept = np.concatenate([np.arange(BOUNDARIES), np.sort(by_use[: max(room, needed)])])
        names = dict(zip(self._rows.values(), self._rows, strict=True))
        self._rows = {names[old]: new for new, old in enumerate(kept.tolist()) if old in names}
        self._used = self._used[kept]
        return kept
