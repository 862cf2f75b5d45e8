"""The rules that make a verdict, as properties."""

from hypothesis import given
from hypothesis import strategies as st

from polyseme.report.measure.task_results import TaskComparison
from polyseme.report.page.content import FAILED, HELD, INCONCLUSIVE
from polyseme.report.verdicts import (
    all_hold,
    interval_above,
    most_hold,
    seeds_say,
    sign_test_says,
    some_holds,
    yes_or_no,
)

numbers = st.floats(-100, 100)
outcomes = st.lists(st.sampled_from([HELD, FAILED, INCONCLUSIVE]), min_size=1, max_size=7)


@given(numbers, numbers, numbers)
def test_a_verdict_is_open_just_when_the_threshold_lies_inside_the_interval(threshold, one, other):
    low, high = sorted((one, other))
    expected = HELD if threshold < low else FAILED if threshold >= high else INCONCLUSIVE
    assert interval_above(threshold, low, high) == expected


@given(numbers, numbers, numbers, st.floats(0, 50))
def test_a_higher_interval_never_gives_a_worse_verdict(threshold, one, other, shift):
    order = [FAILED, INCONCLUSIVE, HELD]
    low, high = sorted((one, other))
    lower = order.index(interval_above(threshold, low, high))
    assert order.index(interval_above(threshold, low + shift, high + shift)) >= lower


@given(outcomes)
def test_parts_make_a_whole(parts):
    assert (all_hold(parts) == HELD) == (set(parts) == {HELD})
    assert (all_hold(parts) == FAILED) == (some_holds(parts) == FAILED) == (FAILED in parts)
    assert (some_holds(parts) == HELD) == (HELD in parts and FAILED not in parts)
    assert (most_hold(parts) == HELD) == (2 * parts.count(HELD) > len(parts))
    assert most_hold([HELD] * len(parts)) == HELD


def test_tests_and_facts():
    assert [sign_test_says(True, 0.01), sign_test_says(False, 0.01), sign_test_says(True, 0.2)] == [
        HELD,
        FAILED,
        INCONCLUSIVE,
    ]
    assert [yes_or_no(True), yes_or_no(False)] == [HELD, FAILED]
    assert seeds_say(TaskComparison("x", [1.0, 1.1], [3.0, 3.1])) == HELD
    assert seeds_say(TaskComparison("x", [3.0, 3.1], [1.0, 1.1])) == FAILED
    assert seeds_say(TaskComparison("x", [1.0], [3.0])) == INCONCLUSIVE  # a single seed proves nothing
