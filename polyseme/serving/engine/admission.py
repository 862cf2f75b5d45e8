"""Who comes in: as many words as can be answered in time, and no more."""

from __future__ import annotations

from collections.abc import Callable
from math import exp
from time import monotonic

from polyseme.serving.http.errors import HttpError, overloaded
from polyseme.serving.settings import Limits

_SHARE = 0.3  # of the deadline that may be spent on those who were there before
_AT_FIRST = 4  # batches that may be in before the rate is known
_MEMORY = 5.0  # seconds at work after which what was measured is mostly forgotten


class Admission:
    """Words of the requests that are being answered, from their acceptance until the last byte is sent.

    So what waits, what is computed and what a slow client has not yet taken are bounded together. How many may be in
    follows from how many were answered in a second lately, whatever it is that holds them up.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float] = monotonic) -> None:
        self._limits, self._clock = limits, clock
        self._answered, self._busy, self._last = 0.0, 0.0, 0.0  # words, seconds, and until when they were counted
        self.words = 0

    @property
    def rate(self) -> float | None:
        """Words answered in a second while there were any to answer; unknown before a batch or so was."""
        return self._answered / self._busy if self._answered >= self._limits.batch_words else None

    @property
    def room(self) -> float:
        """Words that may be inside."""
        rate = self.rate
        by_time = _AT_FIRST * self._limits.batch_words if rate is None else rate * self._limits.deadline * _SHARE
        return min(self._limits.queue_words, by_time)

    def refusal(self) -> HttpError | None:
        """What to say to whoever comes while there is no room at all, before anything is done for them."""
        return overloaded(self._wait) if self.words and self.words >= self.room else None

    def enter(self, words: int) -> None:
        """Come in, or be told when to come back; a request that finds nobody inside is let in whatever its size."""
        if self.words and self.words + words > self.room:
            raise overloaded(self._wait)
        if not self.words:
            self._last = self._clock()
        self.words += words

    def leave(self, words: int, answered: bool) -> None:
        """Go out again. What was given up says nothing about how fast answers are, but that time has passed."""
        self.words -= words
        now = self._clock()
        passed = max(now - self._last, 1e-6)
        left = exp(-passed / _MEMORY)
        self._busy = self._busy * left + passed
        self._answered = self._answered * left + (words if answered else 0)
        self._last = now

    @property
    def _wait(self) -> float:
        rate = self.rate
        return 1.0 if rate is None else self.words / rate
