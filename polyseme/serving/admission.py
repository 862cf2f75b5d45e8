"""Who comes in: as many words as can be answered in time, and no more."""

from __future__ import annotations

from collections.abc import Callable
from math import exp
from time import monotonic

from polyseme.serving.faults import HttpError, overloaded
from polyseme.serving.settings import Limits

_SHARE = 0.3  # of the deadline that may be spent on those who were there before
_AT_FIRST = 4  # batches that may be in before the rate is known
_OFTEN = 0.5  # seconds after which the rate is measured anew
_MEMORY = 2.0  # seconds that a measurement is remembered for, about


class Admission:
    """Words of the requests that are being answered, from their acceptance until the last byte is sent.

    So what waits, what is computed and what a slow client has not yet taken are bounded together. How many may be in
    follows from how many were answered in a second lately, whatever it is that holds them up.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float] = monotonic) -> None:
        self._limits, self._clock = limits, clock
        self._rate: float | None = None
        self._since, self._answered = 0.0, 0
        self.words = 0

    @property
    def room(self) -> float:
        """Words that may be inside."""
        if self._rate is None:
            return min(self._limits.queue_words, _AT_FIRST * self._limits.batch_words)
        return min(self._limits.queue_words, self._rate * self._limits.deadline * _SHARE)

    def refusal(self) -> HttpError | None:
        """What to say to whoever comes while there is no room at all, before anything is done for them."""
        return overloaded(self._wait) if self.words and self.words >= self.room else None

    @property
    def _wait(self) -> float:
        return self.words / self._rate if self._rate else 1.0

    def enter(self, words: int) -> None:
        """Come in, or be told when to come back; a request that finds nobody inside is let in whatever its size."""
        if self.words and self.words + words > self.room:
            raise overloaded(self._wait)
        if not self.words:
            self._since, self._answered = self._clock(), 0
        self.words += words

    def leave(self, words: int, answered: bool) -> None:
        """Go out again. What was given up says nothing about how fast answers are."""
        self.words -= words
        self._answered += words if answered else 0
        elapsed = self._clock() - self._since
        if self._answered and elapsed > 0 and (elapsed >= _OFTEN or not self.words):
            rate, weight = self._answered / elapsed, 1 - exp(-elapsed / _MEMORY)
            self._rate = rate if self._rate is None else (1 - weight) * self._rate + weight * rate
            self._since, self._answered = self._clock(), 0
