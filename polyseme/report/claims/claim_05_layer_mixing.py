"""Claim 5: a learned mix of all layers (scalar mix) beats the top layer."""

from __future__ import annotations

from polyseme.report.claim import Claim, Findings, not_tested
from polyseme.report.claims.fitted_tasks import FITTED, difference_blocks, list_differences
from polyseme.report.measure.fits.word_tasks import MIX, WORD_TASKS, word_tasks
from polyseme.report.measure.fits.word_tasks import TOP as TOP_LAYER
from polyseme.report.measure.measurement import Results
from polyseme.report.measure.task_results import (
    BASE,
    MIXED,
    TASKS,
    TaskComparison,
    compare_rows,
    mean,
    mean_and_deviation,
    task_title,
)
from polyseme.report.page.content import Block, Outcome, PassRule, Table, Verdict, capitalize_first
from polyseme.report.verdicts import interval_above, seeds_say, some_holds

TOP = "layer-2"
MIX_AND_TOP = f"{MIX} {TOP_LAYER}"
ROWS = {
    BASE: "without this model",
    "layer-0": "layer 0 (spelling)",
    "layer-1": "layer 1",
    TOP: "layer 2 (the top layer)",
    "average": "all layers, equal weights",
    MIXED: "all layers, learned weights",
    "gamma-1": "learned weights, γ fixed at 1",
    "layer-norm": "learned weights, with layer normalisation",
    "output": "learned weights, at the task model's output",
    "both": "learned weights, at its input and output",
}


def judge(findings: Findings) -> Verdict:
    """The claim holds if the learned mix beats the top layer in some task and loses in none."""
    stored, fitted = findings.results.get(TASKS), word_tasks(findings.results)
    comparisons = compare_rows(stored["scores"], TOP, MIXED) if stored else []
    if stored and comparisons:
        return _judge_stored(findings, stored, comparisons)
    if fitted:
        return _judge_fitted(findings, fitted)
    return not_tested(findings, [*FITTED, TASKS], findings.task_command())


def _judge_stored(findings: Findings, stored: Results, comparisons: list[TaskComparison]) -> Verdict:
    reason = f"Learned mix minus top layer: {'; '.join(map(str, comparisons))}."
    rule = PassRule(
        "the learned mix of all layers scores higher than the top layer alone, by more than two standard errors over "
        "random seeds, in at least one task, and lower by as much in none."
    )
    table = _score_table(stored["scores"], [each.task for each in comparisons])
    blocks = (rule, table, *_mix_table(stored["mixes"]), *findings.task_command())
    return Verdict(some_holds(map(seeds_say, comparisons)), reason, blocks)


def _judge_fitted(findings: Findings, tasks: list[Results]) -> Verdict:
    outcomes: list[Outcome] = [interval_above(0, *task["difference"][MIX_AND_TOP]["interval"]) for task in tasks]
    rule = PassRule(
        "the learned mix of all layers scores higher than the top layer alone in at least one task (the whole 95 % "
        "interval of the difference lies above 0), and lower in none (the whole interval below 0)."
    )
    return Verdict(
        some_holds(outcomes),
        f"Learned mix minus top layer: {list_differences(tasks, MIX_AND_TOP)}.",
        (
            rule,
            *difference_blocks(tasks, ("top layer", TOP_LAYER), ("mix", MIX)),
            _fitted_mixes(tasks),
            findings.rerun(5),
        ),
    )


CLAIM = Claim(
    5,
    "A mix of all layers beats the top layer",
    "ELMo's paper recommends not the top layer but a mix of all layers: γ · (s₀ · layer 0 + s₁ · layer 1 + s₂ · layer "
    "2). Each task learns its own layer weights s and its own scale γ.",
    WORD_TASKS,
    judge,
    hint="The top layer is the last one; a mix is a weighted sum of all layers.",
)


def _score_table(scores: dict[str, dict[str, list[float]]], tasks: list[str]) -> Table:
    return Table(
        ("vectors used", *(capitalize_first(task_title(task)) for task in tasks)),
        tuple(
            (name, *(mean_and_deviation(scores[task].get(row)) for task in tasks))
            for row, name in ROWS.items()
            if any(scores[task].get(row) for task in tasks)
        ),
        "Test scores, mean ± standard deviation over random seeds.",
    )


def _mix_table(mixes: dict[str, list[Results]]) -> list[Block]:
    rows = []
    for task, found in mixes.items():
        weights = [mean(list(each)) for each in zip(*(mix["weights"] for mix in found), strict=False)]
        gamma = mean([mix["gamma"] for mix in found])
        rows.append((task_title(task), *(f"{weight:.2f}" for weight in weights), f"{gamma:.2f}"))
    if len({*map(len, rows)}) != 1:  # nothing to show, or mixes of different numbers of layers
        return []
    columns = ("task", *(f"s{number}" for number in range(len(rows[0]) - 2)), "γ")
    return [Table(columns, tuple(rows), "Learned layer weights s and scale γ, means over random seeds.")]


def _fitted_mixes(tasks: list[Results]) -> Table:
    columns = ("task", *(f"s{number}" for number in range(len(tasks[0]["weights"]))))
    rows = tuple((task["title"], *(f"{weight:.2f}" for weight in task["weights"])) for task in tasks)
    return Table(columns, rows, "Learned layer weights s of the mix; they add up to 1.")
