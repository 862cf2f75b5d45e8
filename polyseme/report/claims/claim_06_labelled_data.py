"""Claim 6: less labelled text is needed."""

from __future__ import annotations

from polyseme.report.claim import Claim, Findings, not_tested
from polyseme.report.measure.grammar import GRAMMAR
from polyseme.report.measure.task_results import BASE, MIXED, TASKS, mean
from polyseme.report.page.content import (
    FAILED,
    HELD,
    Figure,
    Paragraph,
    PassRule,
    Verdict,
)
from polyseme.report.page.drawing import lines

SHARES = ("1", "3", "10", "30", "100")


def judge(findings: Findings) -> Verdict:
    """Held when a third of the labelled text does as well as all of it without the model."""
    tasks = findings.results.get(TASKS, {}).get("scores", {}).get("wnut17", {})
    curves = {
        name: [
            mean(tasks[key]) if tasks.get(key := row if share == "100" else f"{row}@{share}%") else None
            for share in SHARES
        ]
        for name, row in (("with this model", MIXED), ("without", BASE))
    }
    rule = PassRule(
        "with 30 % of the labelled sentences it does at least as well as the same classifier does without it on all of "
        "them. Where that is tried by a probe: as well as its own context-free layer, and better than giving each "
        "word its "
        "usual label."
    )
    if None not in (curves["with this model"][3], curves["without"][4]):
        few, all_ = curves["with this model"][3], curves["without"][4]
        reason = f"With 30 % of the sentences F1 is {few:.1f}; without the model and with all of them, {all_:.1f}."
        top = max(value for values in curves.values() for value in values if value is not None)
        figure = Figure(
            lines(curves, [f"{share} %" for share in SHARES], "of the training set", (0, 10 * (top // 10 + 1))),
            "Names in WNUT-17, F1 of a tagger (BiLSTM-CRF with GloVe and characters), means over seeds.",
        )
        return Verdict(HELD if few >= all_ else FAILED, reason, (rule, figure, *findings.task_command()))  # pyright: ignore[reportOperatorIssue]
    grammar = findings.results.get("grammar")
    if not grammar:
        return not_tested(findings, [TASKS, "grammar"], findings.task_command())
    probe, usual = grammar["curve"], 100 * grammar["upos"]["usual"]
    few, all_ = 100 * probe["context"][3], 100 * probe["spelling"][4]
    names = {
        "all layers" if probe["view"] == "joined" else "top layer": "context",
        "layer 0, spelling alone": "spelling",
    }
    figure = Figure(
        lines(
            {name: [100 * share for share in probe[key]] for name, key in names.items()},
            [f"{count}" for count in probe["sentences"]],
            "sentences to learn from",
            (20 * (min(min(probe[key]) for key in names.values()) // 0.2), 100),
        ),
        "Parts of speech in UD-EWT by a linear probe, %.",
    )
    reason = (
        f"By a probe, as no fitted tasks were given: with 30 % of the sentences {few:.1f} % of the parts of speech are "
        f"right; by the spelling alone and with all of them, {all_:.1f} %. Giving each word its usual one: "
        f"{usual:.1f} %."
    )
    blocks = (rule, figure, Paragraph(findings.why_missing(TASKS)), findings.rerun(6))
    return Verdict(HELD if few >= max(all_, usual) else FAILED, reason, blocks)


CLAIM = Claim(
    6,
    "Less labelled text is needed",
    "Labels are written by people and cost money. Who starts from vectors that know the language already should need "
    "fewer.",
    (GRAMMAR,),
    judge,
    hint="Labelled text: sentences in which people have written down the right answers.",
)
