"""Claim 11: tasks gain about three points from contextual vectors."""

from __future__ import annotations

from polyseme.report.claim import Claim, Findings
from polyseme.report.measure.task_results import BASE, MIXED, TASKS, compare_rows, mean, task_title
from polyseme.report.page.content import FAILED, HELD, UNTESTED, Block, Figure, PassRule, Table, Verdict
from polyseme.report.page.drawing import Bar, bar_chart

MIN_TASKS, MIN_GAIN, MAX_LOSS = 4, 2, 1


def judge(findings: Findings) -> Verdict:
    """The claim holds if tasks gain two points on average and none loses more than one."""
    comparisons = compare_rows(findings.results.get(TASKS, {}).get("scores", {}), BASE, MIXED)
    if len(comparisons) < MIN_TASKS:
        few = f"Only {len(comparisons)} tasks were fitted with and without this model; {MIN_TASKS} are needed."
        return Verdict(UNTESTED, findings.why_missing(TASKS) or few, findings.task_command())
    ranked = sorted(comparisons, key=lambda each: -each.gain)
    average = mean([each.gain for each in ranked])
    reason = (
        f"The average gain over {len(ranked)} tasks is {average:+.1f} points (ELMo's paper: about 3). The smallest is "
        f"{ranked[-1].gain:+.1f}, for {task_title(ranked[-1].task)}."
    )
    bars = [
        Bar(task_title(task), max(0.0, gain), colour=0 if gain > 0 else 1, text=f"{gain:+.1f}")
        for task, gain in ((each.task, each.gain) for each in ranked)
    ]
    blocks: list[Block] = [
        PassRule(
            f"averaged over at least {MIN_TASKS} tasks, the model adds {MIN_GAIN} points or more, and no task loses "
            f"more than {MAX_LOSS} point."
        ),
        Figure(bar_chart(bars, max(5.0, ranked[0].gain)), "Points gained with the model."),
        Table(
            ("task", "without", "with", "gain"),
            tuple(each.row() for each in comparisons),
            "F1 for names and chunks, accuracy for the others, %; mean ± standard deviation over random seeds.",
        ),
    ]
    held = average >= MIN_GAIN and ranked[-1].gain >= -MAX_LOSS
    return Verdict(HELD if held else FAILED, reason, (*blocks, *findings.task_command()))


CLAIM = Claim(
    11,
    "Tasks gain about three points",
    "Added to a good classifier, contextual vectors are said to raise its score by about three points on average, over "
    "very different tasks.",
    (),
    judge,
    hint="A task is something that the vectors are used for, such as finding names; scores are out of 100 points.",
)
