"""Decision rules of the claims: from an interval or a sign test to *held*, *did not hold* or *inconclusive*."""

from __future__ import annotations

from collections.abc import Iterable

from polyseme.report.measure.statistics import SIGNIFICANCE
from polyseme.report.measure.task_results import TaskComparison, difference
from polyseme.report.page.content import FAILED, HELD, INCONCLUSIVE, Outcome


def interval_above(threshold: float, low: float, high: float) -> Outcome:
    """Held if the whole confidence interval lies above the threshold; did not hold if none of it does."""
    if low > threshold:
        return HELD
    return FAILED if high <= threshold else INCONCLUSIVE


def sign_test_says(is_better: bool, p: float) -> Outcome:
    """Held if a difference is significant and has the right sign; did not hold if significant with the wrong one."""
    if p >= SIGNIFICANCE:
        return INCONCLUSIVE
    return HELD if is_better else FAILED


def yes_or_no(condition: bool) -> Outcome:
    """The outcome of a condition that is certain, such as that two vectors differ."""
    return HELD if condition else FAILED


def seeds_say(comparison: TaskComparison) -> Outcome:
    """Held if a task gains more than two standard errors over random seeds; did not hold if it loses as much."""
    gain, error = difference(comparison.after, comparison.before)
    return interval_above(0, gain - 2 * error, gain + 2 * error)


def all_hold(outcomes: Iterable[Outcome]) -> Outcome:
    """Held if every part holds; did not hold if some part does not."""
    found = set(outcomes)
    if FAILED in found:
        return FAILED
    return HELD if found == {HELD} else INCONCLUSIVE


def some_holds(outcomes: Iterable[Outcome]) -> Outcome:
    """Held if some part holds and none fails (better somewhere, worse nowhere); did not hold if some part fails."""
    found = set(outcomes)
    if FAILED in found:
        return FAILED
    return HELD if HELD in found else INCONCLUSIVE


def most_hold(outcomes: Iterable[Outcome]) -> Outcome:
    """Held if more than half of the parts hold; did not hold if half of them or more fail."""
    found = list(outcomes)
    if 2 * found.count(HELD) > len(found):
        return HELD
    return FAILED if 2 * found.count(FAILED) >= len(found) else INCONCLUSIVE
