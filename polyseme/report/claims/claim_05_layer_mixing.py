"""Claim 5: a learned mix of all layers (scalar mix) beats the top layer."""

from __future__ import annotations

from polyseme.report.claim import Claim, Findings, not_tested
from polyseme.report.measure.measurement import Results
from polyseme.report.measure.task_results import (
    BASE,
    MIXED,
    TASKS,
    compare_rows,
    is_improvement,
    mean,
    mean_and_deviation,
    task_title,
)
from polyseme.report.page.content import FAILED, HELD, UNTESTED, Block, PassRule, Table, Verdict, capitalize_first

TOP = "layer-2"
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
    tasks = findings.results.get(TASKS)
    if not tasks:
        return not_tested(findings, [TASKS], findings.task_command())
    comparisons = compare_rows(tasks["scores"], TOP, MIXED)
    if not comparisons:
        reason = "The file of task results has no fits with the top layer of this model."
        return Verdict(UNTESTED, reason, findings.task_command())
    reason = f"Learned mix minus top layer: {'; '.join(map(str, comparisons))}."
    rule = PassRule(
        "the learned mix of all layers scores higher than the top layer alone, by more than two standard errors over "
        "random seeds, in at least one task, and lower by as much in none."
    )
    table = _score_table(tasks["scores"], [each.task for each in comparisons])
    blocks = (rule, table, *_mix_table(tasks["mixes"]), *findings.task_command())
    return Verdict(HELD if is_improvement(comparisons) else FAILED, reason, blocks)


CLAIM = Claim(
    5,
    "A mix of all layers beats the top layer",
    "ELMo's paper recommends not the top layer but a mix of all layers: γ · (s₀ · layer 0 + s₁ · layer 1 + s₂ · layer "
    "2). Each task learns its own layer weights s and its own scale γ.",
    (),
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
