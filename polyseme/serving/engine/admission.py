"""Admission control: bounds the words in flight by the measured throughput, so that answers meet the deadline."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, exp
from time import monotonic

from polyseme.serving.settings import Limits

_DEADLINE_SHARE = 0.3  # of the deadline that a new request may spend waiting for those before it
_INITIAL_BATCHES = 4  # admitted before the throughput is known
_MEMORY = 5.0  # seconds of work after which older measurements have mostly decayed


class OverloadedError(Exception):
    """The server is busy; `retry_after` says in how many whole seconds to try again."""

    def __init__(self, seconds: float) -> None:
        self.retry_after = max(1, ceil(seconds))
        super().__init__(f"the server is busy; try again in {self.retry_after} second{'s' * (self.retry_after > 1)}")


class Admission:
    """Admission control over the words in flight: from a request's acceptance until the last byte of its answer.

    This bounds together what waits, what is computed and what slow clients have not yet received. The capacity follows
    from the recent throughput, whatever limits it.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float] = monotonic) -> None:
        self._limits, self._clock = limits, clock
        self._answered, self._busy, self._counted_until = 0.0, 0.0, 0.0  # decayed words and seconds; a moment
        self.words = 0

    @property
    def throughput(self) -> float | None:
        """Words answered per second while there were any to answer; None until about one batch was answered."""
        return self._answered / self._busy if self._answered >= self._limits.batch_words else None

    @property
    def capacity(self) -> float:
        """The number of words that may be in flight now."""
        throughput = self.throughput
        initial, wait = _INITIAL_BATCHES * self._limits.batch_words, _DEADLINE_SHARE * self._limits.deadline
        return min(self._limits.queue_words, initial if throughput is None else throughput * wait)

    def refusal(self) -> OverloadedError | None:
        """The error for a new request while none at all can be admitted, before any work is done for it."""
        return OverloadedError(self._wait) if self.words and self.words >= self.capacity else None

    def enter(self, words: int) -> None:
        """Admit a request, or raise `OverloadedError`. An idle server admits a request of any size."""
        if self.words and self.words + words > self.capacity:
            raise OverloadedError(self._wait)
        if not self.words:
            self._counted_until = self._clock()
        self.words += words

    def leave(self, words: int, answered: bool) -> None:
        """Release the words of a request. If it was not answered, only the time it took is counted."""
        self.words -= words
        now = self._clock()
        passed = max(now - self._counted_until, 1e-6)
        decay = exp(-passed / _MEMORY)
        self._busy = self._busy * decay + passed
        self._answered = self._answered * decay + (words if answered else 0)
        self._counted_until = now

    @property
    def _wait(self) -> float:
        throughput = self.throughput
        return 1.0 if throughput is None else self.words / throughput
