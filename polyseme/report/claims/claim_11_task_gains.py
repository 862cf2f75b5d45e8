"""Claim 11: tasks gain about three points from contextual vectors."""

from __future__ import annotations

from polyseme.report.claim import Claim, Findings
from polyseme.report.measure.task_results import BASE, MIXED, TASKS, mean, mean_and_deviation, task_title
from polyseme.report.page.content import FAILED, HELD, UNTESTED, Block, Figure, PassRule, Table, Verdict
from polyseme.report.page.drawing import Bar, bar_chart

MIN_TASKS, MIN_GAIN, MAX_LOSS = 4, 2, 1


def judge(findings: Findings) -> Verdict:
    """The claim holds if tasks gain two points on average and none loses more than one."""
    scores = findings.results.get(TASKS, {}).get("scores", {})
    pairs = {task: rows for task, rows in scores.items() if rows.get(BASE) and rows.get(MIXED)}
    if len(pairs) < MIN_TASKS:
        reason = findings.why_missing(TASKS) or f"Only {len(pairs)} tasks were fitted with and without this model."
        return Verdict(UNTESTED, reason, findings.task_command())
    gains = {task: mean(rows[MIXED]) - mean(rows[BASE]) for task, rows in pairs.items()}
    average = mean(list(gains.values()))
    worst = min(gains, key=gains.__getitem__)
    reason = (
        f"The average gain over {len(gains)} tasks is {average:+.1f} points (ELMo's paper: about 3). The smallest is "
        f"{gains[worst]:+.1f}, for {task_title(worst)}."
    )
    bars = [
        Bar(task_title(task), max(0.0, gain), colour=0 if gain > 0 else 1, text=f"{gain:+.1f}")
        for task, gain in sorted(gains.items(), key=lambda item: -item[1])
    ]
    blocks: list[Block] = [
        PassRule(
            f"averaged over at least {MIN_TASKS} tasks, the model adds {MIN_GAIN} points or more, and no task loses "
            f"more than {MAX_LOSS} point."
        ),
        Figure(bar_chart(bars, max(5.0, *gains.values())), "Points gained with the model."),
        Table(
            ("task", "without", "with", "gain"),
            tuple(
                (
                    task_title(task),
                    mean_and_deviation(rows[BASE]),
                    mean_and_deviation(rows[MIXED]),
                    f"{gains[task]:+.1f}",
                )
                for task, rows in pairs.items()
            ),
            "F1 for names and chunks, accuracy for the others, %; mean ± standard deviation over random seeds.",
        ),
    ]
    held = average >= MIN_GAIN and min(gains.values()) >= -MAX_LOSS
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
