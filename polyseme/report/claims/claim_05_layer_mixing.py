"""Claim 5: the mix of all layers."""

from __future__ import annotations

from typing import Any

from polyseme.report.claim import Claim, Findings, not_tested
from polyseme.report.measure.task_results import BASE, MIXED, TASKS, difference, mean, shown, title
from polyseme.report.page.content import (
    FAILED,
    HELD,
    UNTESTED,
    Block,
    PassRule,
    Table,
    Verdict,
    capital,
)

ROWS = {
    BASE: "without this model",
    "layer-0": "its layer 0 (spelling)",
    "layer-1": "its layer 1",
    "layer-2": "its layer 2, the top",
    "average": "all layers, equal weights",
    MIXED: "all layers, learnt weights",
    "gamma-1": "learnt weights, γ fixed at 1",
    "layer-norm": "learnt weights, layers normed",
    "output": "learnt weights, at the output",
    "both": "learnt weights, at both ends",
}


def judge(findings: Findings) -> Verdict:
    """Held when the learnt mix beats the top layer."""
    tasks = findings.results.get(TASKS)
    if not tasks:
        return not_tested(findings, [TASKS], findings.task_command())
    pairs = {
        task: (rows[MIXED], rows["layer-2"])
        for task, rows in tasks["scores"].items()
        if rows.get(MIXED) and rows.get("layer-2")
    }
    if not pairs:
        reason = "The stored results hold no fits with the top layer of this model."
        return Verdict(UNTESTED, reason, findings.task_command())
    gains = {task: difference(*pair) for task, pair in pairs.items()}
    wins = [task for task, (gain, error) in gains.items() if gain > 2 * error]
    losses = [task for task, (gain, error) in gains.items() if gain < -2 * error]
    reason = " ".join(f"{capital(title(task))}: {gain:+.1f} points." for task, (gain, _) in gains.items())
    rule = PassRule(
        "the learnt mix of all layers scores higher than the top layer alone by more than twice the standard error "
        "over "
        "seeds in at least one task, and lower by as much in none."
    )
    blocks = (rule, *_mix_blocks(tasks["scores"], list(pairs)), *_liked(tasks["mixes"]), *findings.task_command())
    return Verdict(HELD if wins and not losses else FAILED, reason, blocks)


CLAIM = Claim(
    5,
    "Mixing all layers beats the top one",
    "ELMo does not hand over its top layer but a mix of all of them: γ · (s₀ · spelling + s₁ · layer 1 + s₂ · layer "
    "2). Each task "
    "learns for itself how much of each layer it likes (s) and how loud the whole should be (γ).",
    (),
    judge,
    hint="The top layer is the last one; a mix takes a bit of each.",
)


def _mix_blocks(scores: dict[str, Any], tasks: list[str]) -> list[Block]:
    table = Table(
        ("", *map(title, tasks)),
        tuple(
            (name, *(shown(scores[task].get(row)) for task in tasks))
            for row, name in ROWS.items()
            if any(scores[task].get(row) for task in tasks)
        ),
        "Mean ± deviation over seeds: what layers, γ and layer norm are worth.",
    )
    return [table]


def _liked(mixes: dict[str, Any]) -> list[Block]:
    rows = []
    for task, found in mixes.items():
        weights = [mean(list(each)) for each in zip(*(mix["weights"] for mix in found), strict=True)]
        gamma = mean([mix["gamma"] for mix in found])
        rows.append((title(task), *(f"{weight:.2f}" for weight in weights), f"{gamma:.2f}"))
    if not rows:
        return []
    count = max(map(len, rows)) - 2
    return [
        Table(
            ("task", *(f"s{number}" for number in range(count)), "γ"),
            tuple(rows),
            "What s and γ became, means over seeds.",
        )
    ]
