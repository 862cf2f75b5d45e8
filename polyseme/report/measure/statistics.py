"""Statistical significance of differences: the exact sign test and bootstrap confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import numpy as np

SIGNIFICANCE = 0.05  # a difference with a p-value below this is taken for real
_ROUNDS = 1_000


def sign_test(first: np.ndarray, second: np.ndarray) -> float:
    """P-value of the exact two-sided sign test (McNemar's exact test) on two ways of answering the same questions.

    Both arrays are true where an answer is right. Only questions count that one answers rightly and the other wrongly.
    """
    wins, losses = int((first & ~second).sum()), int((second & ~first).sum())
    return _two_sided(wins, wins + losses)


def pairwise_sign_tests(correct: Mapping[str, np.ndarray]) -> dict[str, float]:
    """P-values of the sign test for every pair of ways, by their names: ``"0 1"``."""
    return {f"{one} {other}": sign_test(correct[one], correct[other]) for one, other in combinations(correct, 2)}


def _two_sided(wins: int, count: int) -> float:
    if not count:
        return 1.0
    few = min(wins, count - wins)
    logs = [math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) for k in range(few + 1)]
    tail = sum(math.exp(log - count * math.log(2)) for log in logs)
    return min(1.0, 2 * tail)


def bootstrap_interval(
    statistic: Callable[[np.ndarray], float], count: int, seed: int, rounds: int = _ROUNDS
) -> tuple[float, float]:
    """95 % bootstrap confidence interval of a statistic of items, which it is given as indices drawn at random."""
    rng = np.random.default_rng(seed)
    values = np.sort([statistic(rng.integers(count, size=count)) for _ in range(rounds)])
    return float(values[int(0.025 * rounds)]), float(values[int(0.975 * rounds) - 1])


def bootstrap_difference(statistic: Callable[[np.ndarray], float], count: int, seed: int) -> dict[str, object]:
    """A difference over all items, its 95 % bootstrap interval and its bootstrap standard error."""
    drawn: list[float] = []

    def record(items: np.ndarray) -> float:
        drawn.append(statistic(items))
        return drawn[-1]

    interval = bootstrap_interval(record, count, seed)
    return {"value": statistic(np.arange(count)), "interval": interval, "error": float(np.std(drawn))}


def mean_interval(values: Sequence[float], errors: Sequence[float]) -> tuple[float, float, float]:
    """Mean of independent estimates with these standard errors, and its 95 % confidence interval."""
    mean = sum(values) / len(values)
    margin = 1.96 * math.sqrt(sum(error * error for error in errors)) / len(values)
    return mean, mean - margin, mean + margin
