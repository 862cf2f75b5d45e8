"""Claim 6: tasks need less labelled text (sample efficiency)."""

from __future__ import annotations

from polyseme.report.claim import Claim, Findings, not_tested
from polyseme.report.measure.grammar import GRAMMAR
from polyseme.report.measure.measurement import Results
from polyseme.report.measure.task_results import BASE, MIXED, TASKS, mean
from polyseme.report.page.content import FAILED, HELD, Figure, Paragraph, PassRule, Verdict
from polyseme.report.page.drawing import line_chart

SHARES = ("1", "3", "10", "30", "100")
RULE = PassRule(
    "with 30 % of the labelled sentences, a task does at least as well as the same task model does without these "
    "vectors on all of them. If only a linear probe can be tested: with 30 % of the sentences it does at least as well "
    "as with the model's own context-free layer on all of them, and better than giving each word its most frequent "
    "label."
)


def judge(findings: Findings) -> Verdict:
    """The claim holds if 30 % of the labelled text with the model is as good as all of it without."""
    scores = findings.results.get(TASKS, {}).get("scores", {}).get("wnut17", {})
    few, everything = scores.get(f"{MIXED}@30%"), scores.get(BASE)
    if few and everything:
        return _judge_tagger(findings, scores, mean(few), mean(everything))
    if "grammar" in findings.results:
        return _judge_probe(findings, findings.results["grammar"])
    return not_tested(findings, [TASKS, "grammar"], findings.task_command())


CLAIM = Claim(
    6,
    "Less labelled text is needed",
    "People have to write labels by hand, which costs money. A task that starts from vectors that already know the "
    "language should need fewer labels.",
    (GRAMMAR,),
    judge,
    hint="Labelled text: sentences for which people have written down the right answers.",
)


def _judge_tagger(findings: Findings, scores: dict[str, list[float]], few: float, everything: float) -> Verdict:
    curves = {
        name: [
            mean(found) if (found := scores.get(row if share == "100" else f"{row}@{share}%")) else None
            for share in SHARES
        ]
        for name, row in (("with this model", MIXED), ("without", BASE))
    }
    top = max(value for values in curves.values() for value in values if value is not None)
    figure = Figure(
        line_chart(curves, [f"{share} %" for share in SHARES], "of the training set", (0, 10 * (top // 10 + 1))),
        "F1 for names in WNUT-17 of a BiLSTM-CRF tagger with GloVe vectors and characters, means over random seeds.",
    )
    reason = (
        f"F1 is {few:.1f} with the model and 30 % of the sentences, and {everything:.1f} without the model and with "
        "all sentences."
    )
    return Verdict(HELD if few >= everything else FAILED, reason, (RULE, figure, *findings.task_command()))


def _judge_probe(findings: Findings, grammar: Results) -> Verdict:
    curve, baseline = grammar["curve"], 100 * grammar["upos"]["usual"]
    few, everything = 100 * curve["context"][3], 100 * curve["spelling"][4]
    names = {
        "all layers" if curve["view"] == "joined" else "top layer": "context",
        "layer 0 (spelling only)": "spelling",
    }
    figure = Figure(
        line_chart(
            {name: [100 * accuracy for accuracy in curve[key]] for name, key in names.items()},
            [f"{count}" for count in curve["sentences"]],
            "training sentences",
            (20 * (min(min(curve[key]) for key in names.values()) // 0.2), 100),
        ),
        "Accuracy of a linear probe on parts of speech in UD-EWT, %.",
    )
    reason = (
        "Tested with a linear probe, because no fitted tasks were given. Accuracy on parts of speech: "
        f"{few:.1f} % with context and 30 % of the sentences, {everything:.1f} % with the spelling only and all "
        f"sentences, {baseline:.1f} % with each word's most frequent label."
    )
    blocks = (RULE, figure, Paragraph(f"Fitted tasks were not used. {findings.why_missing(TASKS)}"), findings.rerun(6))
    return Verdict(HELD if few >= max(everything, baseline) else FAILED, reason, blocks)
