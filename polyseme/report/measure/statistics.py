"""Whether a difference is more than luck."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

SURE = 0.05  # a difference that luck gives more rarely than this is taken for real
_ROUNDS = 1_000


def sign_test(first: np.ndarray, second: np.ndarray) -> float:
    """How often luck alone gives answers as unlike in quality: the exact two-sided sign test (McNemar's).

    Both are true where an answer is right. Only those matter where one is right and the other wrong.
    """
    wins, losses = int((first & ~second).sum()), int((second & ~first).sum())
    return _two_sided(wins, wins + losses)


def _two_sided(wins: int, count: int) -> float:
    if not count:
        return 1.0
    few = min(wins, count - wins)
    logs = [math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) for k in range(few + 1)]
    tail = sum(math.exp(log - count * math.log(2)) for log in logs)
    return min(1.0, 2 * tail)


def resampled(
    statistic: Callable[[np.ndarray], float], count: int, seed: int, rounds: int = _ROUNDS
) -> tuple[float, float]:
    """The 95 % interval of something computed from items drawn again and again with replacement, by their numbers."""
    lot = np.random.default_rng(seed)
    values = np.sort([statistic(lot.integers(count, size=count)) for _ in range(rounds)])
    return float(values[int(0.025 * rounds)]), float(values[int(0.975 * rounds) - 1])
