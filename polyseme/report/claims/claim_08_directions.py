"""Claim 8: both reading directions matter (forward and backward LSTM)."""

from __future__ import annotations

from polyseme.report.claim import Claim, Findings, not_tested
from polyseme.report.measure.grammar import GRAMMAR, context_helps
from polyseme.report.measure.language_model import GAPS
from polyseme.report.measure.measurement import Results
from polyseme.report.measure.names import NAMES
from polyseme.report.measure.probing import BACKWARD, BOTH, FORWARD, HALF
from polyseme.report.measure.statistics import SIGNIFICANCE
from polyseme.report.page.content import (
    HELD,
    UNTESTED,
    Block,
    ExampleSentences,
    Figure,
    Outcome,
    Paragraph,
    PassRule,
    Table,
    Verdict,
    capitalize_first,
    percent,
)
from polyseme.report.page.drawing import Bar, bar_chart
from polyseme.report.verdicts import all_hold, interval_above, most_hold, sign_test_says, yes_or_no

LABELS = {FORWARD: "left to right", BACKWARD: "right to left", HALF: "both, half the size", BOTH: "both"}
DirectionTest = tuple[str, dict[str, float], Outcome]  # its name, scores by view, whether both is significantly best


def judge(findings: Findings) -> Verdict:
    """The claim holds if both directions beat either one alone at the same vector size."""
    tests = _tests(findings)
    gaps = findings.results.get("gaps")
    helps = context_helps(findings.results.get("grammar"))
    if not tests and not gaps:
        if "grammar" in findings.results or "names" in findings.results:
            reason = "This model does not read in two separate directions."
            return Verdict(UNTESTED, reason, (findings.rerun(8),))
        return not_tested(findings, ["grammar", "names", "gaps"], (findings.rerun(8),))
    wins = [name for name, _, outcome in tests if outcome == HELD]
    reasons = []
    if tests and not helps:
        reasons.append("At parts of speech, context does not help this model in either direction.")
    if tests:
        reasons.append(
            "At the same vector size, both directions together are significantly better than either one alone in "
            f"{len(wins)} of {len(tests)} probes{': ' + ', '.join(wins) if wins else ''}."
        )
    if gaps:
        first = gaps["first"]
        reasons.append(
            f"Gap filling, first prediction correct: {percent(first['both'])} with both directions, "
            f"{percent(first['forward'])} with the forward one, {percent(first['backward'])} with the backward one."
        )
    probes = most_hold(outcome for _, _, outcome in tests)
    outcome = all_hold([yes_or_no(helps), probes]) if tests else _both_fill_better(gaps or {})
    blocks: list[Block] = [
        PassRule(
            "in most of the probes, half of the numbers of both directions (as many as one direction has) are "
            f"significantly better than each direction alone (exact sign test, p < {SIGNIFICANCE:g}; for names, a 95 % "
            "bootstrap interval of the difference that excludes 0), and context helps at parts of speech. If only gap "
            "filling can be tested: both directions are significantly better at it than each one alone."
        ),
        *map(_figure, tests),
        *(_gap_blocks(gaps) if gaps else [Paragraph(f"Gap filling was not tested. {findings.why_missing('gaps')}")]),
    ]
    return Verdict(outcome, " ".join(reasons), (*blocks, findings.rerun(8)))


CLAIM = Claim(
    8,
    "Both reading directions matter",
    "One half of the model reads the sentence from left to right, the other half from right to left, and a word's "
    "vector joins the two. What comes after a word may matter for its meaning as much as what comes before it.",
    (GRAMMAR, NAMES, GAPS),
    judge,
    hint="The model reads from left to right and from right to left.",
)


def _both_fill_better(gaps: Results) -> Outcome:
    first, p = gaps["first"], gaps["p"]
    return all_hold(sign_test_says(first["both"] > first[direction], p[direction]) for direction in p)


def _tests(findings: Findings) -> list[DirectionTest]:
    tests: list[DirectionTest] = []
    grammar, names = findings.results.get("grammar"), findings.results.get("names")
    for column, name in (("upos", "parts of speech"), ("deprel", "grammatical roles")):
        if grammar and BOTH in grammar[column]["accuracy"]:
            scores, p = grammar[column]["accuracy"], grammar[column]["p"]
            outcome = all_hold(
                sign_test_says(scores[HALF] > scores[way], p[f"{way} {HALF}"]) for way in (FORWARD, BACKWARD)
            )
            tests.append((name, scores, outcome))
    if names and BOTH in names["f1"]:
        intervals = [names["difference"][f"{way} {HALF}"] for way in (FORWARD, BACKWARD)]
        outcome = all_hold(interval_above(0, -high, -low) for low, high in intervals)
        tests.append(("names (F1)", names["f1"], outcome))
    return tests


def _figure(test: DirectionTest) -> Figure:
    name, scores, outcome = test
    rows = [Bar(label, 100 * scores[view], colour=0 if view in (BOTH, HALF) else 4) for view, label in LABELS.items()]
    return Figure(
        bar_chart(rows, 100, " %"),
        f"{capitalize_first(name)}: linear probe on the layers above layer 0. At the same size, both directions are "
        f"{'' if outcome == HELD else 'not '}significantly better than each one alone.",
    )


def _gap_blocks(gaps: Results) -> list[Block]:
    sides = {FORWARD: "the words before it", BACKWARD: "the words after it", BOTH: "both sides"}
    rows = tuple(
        (label, f"{100 * gaps['first'][way]:.1f}", f"{gaps['reciprocal'][way]:.3f}") for way, label in sides.items()
    )
    examples = tuple(
        (
            tuple(each["words"]),
            each["place"],
            "; ".join(f"{way}: {', '.join(words)}" for way, words in each["said"].items()),
        )
        for each in gaps["examples"]
    )
    return [
        Paragraph("## Filling a gap"),
        Table(
            ("the model sees", "correct", "MRR"),
            rows,
            f"{gaps['gaps']} gaps, one in each of as many sentences that are bundled with polyseme. Correct: how often "
            "the first prediction is right, %. MRR: the mean reciprocal rank of the right word, 1 if it always comes "
            "first.",
        ),
        *([ExampleSentences("The first three predictions for the highlighted word", examples)] if examples else []),
    ]
