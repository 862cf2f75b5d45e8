"""Claim 11: tasks gain about three points from contextual vectors."""

from __future__ import annotations

from polyseme.report.claim import Claim, Findings
from polyseme.report.claims.fitted_tasks import FITTED, difference_blocks, list_differences, mean_difference
from polyseme.report.measure.fits.word_tasks import MIX, SPELLING, WORD_TASKS, word_tasks
from polyseme.report.measure.measurement import Results
from polyseme.report.measure.task_results import BASE, MIXED, TASKS, compare_rows, mean, task_title
from polyseme.report.page.content import (
    FAILED,
    HELD,
    UNTESTED,
    Block,
    Figure,
    Paragraph,
    PassRule,
    Table,
    Verdict,
    points,
)
from polyseme.report.page.drawing import Bar, bar_chart
from polyseme.report.verdicts import all_hold, interval_above

MIN_TASKS, MIN_GAIN, MAX_LOSS = 4, 2, 1
MIX_AND_SPELLING = f"{MIX} {SPELLING}"


def judge(findings: Findings) -> Verdict:
    """The claim holds if tasks gain two points on average and none loses more than one."""
    comparisons = compare_rows(findings.results.get(TASKS, {}).get("scores", {}), BASE, MIXED)
    fitted = word_tasks(findings.results)
    if len(comparisons) < MIN_TASKS and len(fitted) >= MIN_TASKS:
        return _judge_fitted(findings, fitted)
    if len(comparisons) < MIN_TASKS:
        few = f"Only {len(comparisons)} tasks were fitted with and without this model; {MIN_TASKS} are needed."
        return Verdict(UNTESTED, findings.why_missing(*FITTED, TASKS) or few, findings.task_command())
    ranked = sorted(comparisons, key=lambda each: -each.gain)
    average = mean([each.gain for each in ranked])
    reason = (
        f"The average gain over {len(ranked)} tasks is {average:+.1f} points (ELMo's paper: about 3). The smallest is "
        f"{ranked[-1].gain:+.1f}, for {task_title(ranked[-1].task)}."
    )
    gains = {task_title(each.task): each.gain for each in ranked}
    blocks: list[Block] = [
        PassRule(
            f"averaged over at least {MIN_TASKS} tasks, the model adds {MIN_GAIN} points or more, and no task loses "
            f"more than {MAX_LOSS} point."
        ),
        Figure(_gain_bars(gains), "Points gained with the model."),
        Table(
            ("task", "without", "with", "gain"),
            tuple(each.row() for each in comparisons),
            "F1 for names and chunks, accuracy for the others, %; mean ± standard deviation over random seeds.",
        ),
    ]
    held = average >= MIN_GAIN and ranked[-1].gain >= -MAX_LOSS
    return Verdict(HELD if held else FAILED, reason, (*blocks, *findings.task_command()))


def _judge_fitted(findings: Findings, tasks: list[Results]) -> Verdict:
    average, low, high = mean_difference(tasks, MIX_AND_SPELLING)
    losses = [interval_above(-MAX_LOSS, *task["difference"][MIX_AND_SPELLING]["interval"]) for task in tasks]
    outcome = all_hold([interval_above(MIN_GAIN, low, high), FAILED if FAILED in losses else HELD])
    reason = (
        f"The average gain over {len(tasks)} tasks is {points(average, (low, high))} (ELMo's paper: about 3). In each: "
        f"{list_differences(tasks, MIX_AND_SPELLING)}."
    )
    gains = {task["title"]: task["difference"][MIX_AND_SPELLING]["value"] for task in tasks}
    rule = PassRule(
        f"averaged over {len(tasks)} tasks, all layers add more than {MIN_GAIN} points to what the context-free layer "
        f"alone achieves (the whole 95 % interval of the average gain lies above {MIN_GAIN}), and no task surely loses "
        f"more than {MAX_LOSS} point."
    )
    blocks: list[Block] = [
        rule,
        Figure(_gain_bars(gains), "Points gained with the layers that read the sentence."),
        *difference_blocks(tasks, ("layer 0", SPELLING), ("mix", MIX)),
        Paragraph(
            "These tasks are small and their classifier is simple, so the gains are larger than those of ELMo's paper, "
            "whose task models read the sentence by themselves."
        ),
    ]
    return Verdict(outcome, reason, (*blocks, findings.rerun(11)))


def _gain_bars(gains: dict[str, float]) -> str:
    bars = [
        Bar(title, max(0.0, gain), colour=0 if gain > 0 else 1, text=f"{gain:+.1f}")
        for title, gain in sorted(gains.items(), key=lambda item: -item[1])
    ]
    return bar_chart(bars, max(5.0, *gains.values()))


CLAIM = Claim(
    11,
    "Tasks gain about three points",
    "Added to a good classifier, contextual vectors are said to raise its score by about three points on average, over "
    "very different tasks.",
    WORD_TASKS,
    judge,
    hint="A task is something that the vectors are used for, such as finding names; scores are out of 100 points.",
)
