"""Claim 11: tasks gain about three points."""

from __future__ import annotations

from polyseme.report.claim import Claim, Findings
from polyseme.report.measure.task_results import BASE, MIXED, TASKS, mean, shown, title
from polyseme.report.page.content import (
    FAILED,
    HELD,
    UNTESTED,
    Block,
    Figure,
    PassRule,
    Table,
    Verdict,
)
from polyseme.report.page.drawing import Bar, bars


def judge(findings: Findings) -> Verdict:
    """Held when the tasks gain two points on average."""
    scores = findings.results.get(TASKS, {}).get("scores", {})
    both = {task: rows for task, rows in scores.items() if rows.get(BASE) and rows.get(MIXED)}
    if len(both) < 4:
        reason = findings.why_missing(TASKS) or f"Only {len(both)} tasks were fitted with and without this model."
        return Verdict(UNTESTED, reason, findings.task_command())
    gains = {task: mean(rows[MIXED]) - mean(rows[BASE]) for task, rows in both.items()}
    average = mean(list(gains.values()))
    worst = min(gains, key=gains.__getitem__)
    reason = (
        f"On average {average:+.1f} points over {len(gains)} tasks (published: about 3). The least is "
        f"{gains[worst]:+.1f}, {title(worst)}."
    )
    rows = [
        Bar(title(task), max(0.0, gain), colour=0 if gain > 0 else 1, said=f"{gain:+.1f}")
        for task, gain in sorted(gains.items(), key=lambda item: -item[1])
    ]
    blocks: list[Block] = [
        PassRule(
            "averaged over at least four tasks, the model adds 2 points or more, and no task loses more than one."
        ),
        Figure(bars(rows, max(5.0, *gains.values())), "Points that the model adds."),
        Table(
            ("task", "without", "with", "gain"),
            tuple(
                (title(task), shown(rows[BASE]), shown(rows[MIXED]), f"{gains[task]:+.1f}")
                for task, rows in both.items()
            ),
            "F1 for names and chunks, accuracy for the others; mean ± deviation over seeds.",
        ),
    ]
    held = average >= 2 and min(gains.values()) >= -1
    return Verdict(HELD if held else FAILED, reason, (*blocks, *findings.task_command()))


CLAIM = Claim(
    11,
    "Tasks gain about three points",
    "Added to a good ordinary classifier, the vectors are said to lift its score by some three points on average, "
    "over very "
    "different tasks.",
    (),
    judge,
    hint="A task is a job for the vectors, such as finding names; points are those of a score out of 100.",
)
