"""Claim 8: forward, backward, both."""

from __future__ import annotations

from polyseme.report.claim import Claim, Findings, not_tested
from polyseme.report.measure.grammar import GRAMMAR
from polyseme.report.measure.language_model import GAPS
from polyseme.report.measure.names import NAMES
from polyseme.report.measure.probing import BACKWARD, BOTH, FORWARD, HALF
from polyseme.report.measure.statistics import SURE
from polyseme.report.page.content import (
    FAILED,
    HELD,
    UNTESTED,
    Block,
    ExampleSentences,
    Figure,
    Paragraph,
    PassRule,
    Table,
    Verdict,
    capital,
)
from polyseme.report.page.drawing import Bar, bars

NAMED = {
    FORWARD: "left to right",
    BACKWARD: "right to left",
    HALF: "both, half the numbers",
    BOTH: "both",
}
Test = tuple[str, dict[str, float], bool]  # what was asked, shares by view, whether both is surely best


def judge(findings: Findings) -> Verdict:
    """Held when both beat either alone, with no more numbers than one of them has."""
    tests = _tests(findings)
    gaps = findings.results.get("gaps")
    if not tests and not gaps:
        if "grammar" in findings.results or "names" in findings.results:
            return Verdict(UNTESTED, "This model does not read in two separate directions.", (findings.rerun(8),))
        return not_tested(findings, ["grammar", "names", "gaps"], (findings.rerun(8),))
    good = [name for name, _, sure in tests if sure]
    said = [
        f"Both directions together beat either alone, with as many numbers, in {len(good)} of {len(tests)} probes"
        f"{': ' + ', '.join(good) if good else ''}."
        if tests
        else ""
    ]
    if gaps:
        said.append(
            f"Filling gaps, both are right at once in {100 * gaps['first']['both']:.0f} %, forward alone in "
            f"{100 * gaps['first']['forward']:.0f}, backward alone in {100 * gaps['first']['backward']:.0f}."
        )
    filled = gaps and all(gaps["p"][way] < SURE and gaps["first"]["both"] > gaps["first"][way] for way in gaps["p"])
    held = len(good) * 2 > len(tests) and context_helps(findings) if tests else bool(filled)
    if tests and not context_helps(findings):
        said.insert(0, "Reading the sentence does not help this model at parts of speech, in whichever direction.")
    blocks: list[Block] = [
        PassRule(
            "in most of the probes, half the numbers of both directions, so as many as one direction has, beat each "
            f"direction alone beyond luck (sign test with p below {SURE:g}, for names the 95 % interval), and the "
            "sentence helps at all. Where only gaps could be tried: both beat each alone in them."
        )
    ]
    blocks += [_figure(test) for test in tests]
    blocks += _gap_blocks(gaps) if gaps else [Paragraph(findings.why_missing("gaps"))]
    return Verdict(HELD if held else FAILED, " ".join(filter(None, said)), (*blocks, findings.rerun(8)))


CLAIM = Claim(
    8,
    "Both directions count",
    "One half of the model reads from left to right, the other from right to left, and their numbers are laid side by "
    "side. A word's meaning may hang on what comes after it as much as on what came before.",
    (GRAMMAR, NAMES, GAPS),
    judge,
    hint="It reads from left to right and from right to left.",
)


def context_helps(findings: Findings) -> bool:
    """Whether a layer that reads the sentence surely beats layer 0 at parts of speech, where that was asked."""
    part = findings.results.get("grammar", {}).get("upos")
    if not part:
        return True
    layers = [name for name in part["accuracy"] if name.isdigit() and name != "0"]
    return any(part["accuracy"][n] > part["accuracy"]["0"] and part["p"][f"0 {n}"] < SURE for n in layers)


def _tests(findings: Findings) -> list[Test]:
    tests: list[Test] = []
    grammar, names = findings.results.get("grammar"), findings.results.get("names")
    for column, name in (("upos", "parts of speech"), ("deprel", "roles in the sentence")):
        if grammar and BOTH in grammar[column]["accuracy"]:
            shares, p = grammar[column]["accuracy"], grammar[column]["p"]
            sure = all(shares[HALF] > shares[way] and p[f"{way} {HALF}"] < SURE for way in (FORWARD, BACKWARD))
            tests.append((name, shares, sure))
    if names and BOTH in names["f1"]:
        sure = all(names["difference"][f"{way} {HALF}"][1] < 0 for way in (FORWARD, BACKWARD))
        tests.append(("names (F1)", names["f1"], sure))
    return tests


def _figure(test: Test) -> Figure:
    name, shares, sure = test
    rows = [Bar(label, 100 * shares[view], colour=0 if view in (BOTH, HALF) else 4) for view, label in NAMED.items()]
    beyond = "beyond luck" if sure else "not beyond luck"
    return Figure(
        bars(rows, 100, " %"),
        f"{capital(name)}, by a linear probe on the layers above the spelling; {beyond}.",
    )


def _gap_blocks(gaps: dict) -> list[Block]:
    rows = tuple(
        (label, f"{100 * gaps['first'][way]:.1f}", f"{gaps['reciprocal'][way]:.3f}")
        for way, label in (
            (FORWARD, "from the left side"),
            (BACKWARD, "from the right side"),
            (BOTH, "from both sides"),
        )
    )
    quotes = tuple(
        (
            tuple(each["words"]),
            each["place"],
            "; ".join(f"{way}: {', '.join(said)}" for way, said in each["said"].items()),
        )
        for each in gaps["examples"]
    )
    return [
        Paragraph("## A word for a gap"),
        Table(
            ("", "right at once, %", "mean 1/rank"),
            rows,
            f"{gaps['gaps']} words left out of the bundled sentences, one a sentence.",
        ),
        *([ExampleSentences("What it puts there", quotes)] if quotes else []),
    ]
