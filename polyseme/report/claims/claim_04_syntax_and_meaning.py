"""Claim 4: the first LSTM layer is for syntax (grammar), the second for semantics (meaning)."""

from __future__ import annotations

from dataclasses import dataclass

from polyseme.report.claim import Claim, Findings, not_tested
from polyseme.report.measure.grammar import GRAMMAR, TEST, TRAIN, context_helps
from polyseme.report.measure.meanings import MEANINGS
from polyseme.report.measure.measurement import Results
from polyseme.report.measure.names import NAMES
from polyseme.report.measure.senses import INVENTORY, SEMCOR, SENSES, TESTS
from polyseme.report.measure.sentiment import SENTIMENT
from polyseme.report.measure.statistics import SIGNIFICANCE
from polyseme.report.page.content import (
    FAILED,
    HELD,
    INCONCLUSIVE,
    UNTESTED,
    Block,
    Command,
    ExampleSentences,
    Figure,
    Outcome,
    Paragraph,
    PassRule,
    Table,
    Verdict,
    list_words,
)
from polyseme.report.page.drawing import line_chart
from polyseme.report.verdicts import all_hold, yes_or_no

MEASUREMENTS = (GRAMMAR, NAMES, MEANINGS, SENSES, SENTIMENT)
NEEDED = tuple(measurement.name for measurement in MEASUREMENTS)


@dataclass(frozen=True)
class LayerComparison:
    """Scores of all layers in one test, and whether layer 1 or 2 is significantly better than the other."""

    name: str
    syntax: bool
    scores: list[float]
    better: int | None  # 1 or 2 if the difference is significant


def judge(findings: Findings) -> Verdict:
    """The claim holds if both of its halves do: layer 1 is better at syntax, and layer 2 at meaning."""
    tests = _comparisons(findings)
    if not tests:
        return not_tested(findings, NEEDED, (findings.rerun(4),))
    blocks = (*_blocks(findings, tests), findings.rerun(4))
    layers = len(tests[0].scores)
    if layers != 3:
        reason = f"The claim is about two LSTM layers above a context-free layer; this model has {layers} layers."
        return Verdict(UNTESTED, reason, blocks)
    syntax, meaning = ([test for test in tests if test.syntax is kind] for kind in (True, False))
    if not syntax or not meaning:
        return Verdict(UNTESTED, f"Half of the claim was not tested. {findings.why_missing(*NEEDED)}", blocks)
    helps = context_helps(findings.results.get("grammar"))
    reason = f"{_say(syntax, 'Syntax')} {_say(meaning, 'Meaning')}"
    if not helps:
        reason = f"No layer that reads the sentence beats the spelling at parts of speech. {reason}"
    outcome = all_hold([yes_or_no(helps), _half_holds(syntax, 1), _half_holds(meaning, 2)])
    rule = PassRule(
        "layer 1 is significantly better than layer 2 in at least two tests of syntax (or in the only one run) "
        "and significantly worse in none, and layer 2 is significantly better than layer 1 in at least one test of "
        f"meaning and significantly worse in none (exact sign test, p < {SIGNIFICANCE:g}; for names, a 95 % bootstrap "
        "interval of the difference that excludes 0). Also, context must help at all: a layer above 0 beats layer 0 at "
        "parts of speech."
    )
    return Verdict(outcome, reason, (rule, *blocks))


CLAIM = Claim(
    4,
    "The first layer is for grammar, the second for meaning",
    "An ELMo model has two layers that read the sentence, one on top of the other. The lower layer is said to know "
    "more about grammar (which part of speech a word is, its role in the sentence, whether it is part of a name), the "
    "upper layer more about meaning (the sense of a word, whether a sentence is positive or negative). We ask each "
    "layer with a linear probe: a classifier so simple that it only finds information that is easy to read. "
    "(For the meaning of a word, the meaning with the nearest vectors is chosen.)",
    MEASUREMENTS,
    judge,
    hint="A layer is one pass over the sentence; the second layer works on the output of the first.",
)


def _comparisons(findings: Findings) -> list[LayerComparison]:
    results, tests = findings.results, []
    if "grammar" in results:
        for column, name in (("upos", "parts of speech"), ("deprel", "grammatical roles")):
            part = results["grammar"][column]
            tests.append(_compare(name, True, part["accuracy"], part["p"]))
    if "names" in results:
        tests.append(_compare_names(results["names"]))
    if "meanings" in results:
        part = results["meanings"]
        tests.append(_compare("two meanings", False, part["accuracy"], part["p"]))
    if "senses" in results:
        tests.append(_compare("word senses", False, results["senses"]["f1"], results["senses"]["p"]))
    if "sentiment" in results:
        tests.append(_compare("sentiment", False, results["sentiment"]["accuracy"], results["sentiment"]["p"]))
    return tests


def _compare(name: str, syntax: bool, scores: dict[str, float], p: dict[str, float]) -> LayerComparison:
    layers = [scores[key] for key in scores if key.isdigit()]
    significant = len(layers) > 2 and p["1 2"] < SIGNIFICANCE
    better = (1 if layers[1] > layers[2] else 2) if significant else None
    return LayerComparison(name, syntax, layers, better)


def _compare_names(found: Results) -> LayerComparison:
    layers = [found["f1"][key] for key in found["f1"] if key.isdigit()]
    better = None
    if len(layers) > 2:
        low, high = found["difference"]["1 2"]
        better = 1 if low > 0 else 2 if high < 0 else None
    return LayerComparison("names", True, layers, better)


def _half_holds(tests: list[LayerComparison], layer: int) -> Outcome:
    """Did not hold if the other layer wins a test; held if this one wins enough of them."""
    if any(test.better not in (layer, None) for test in tests):
        return FAILED
    wins = sum(test.better == layer for test in tests)
    return HELD if wins >= min(len(tests), 2 if layer == 1 else 1) else INCONCLUSIVE


def _say(tests: list[LayerComparison], subject: str) -> str:
    """One sentence on which layer is better in which tests."""
    texts = {
        1: "layer 1 is significantly better at",
        2: "layer 2 is significantly better at",
        None: "no significant difference at",
    }
    parts = []
    for better, text in texts.items():
        if names := [test.name for test in tests if test.better == better]:
            parts.append(f"{text} {list_words(names)}")
    return f"{subject}: {'; '.join(parts)}."


def _blocks(findings: Findings, tests: list[LayerComparison]) -> list[Block]:
    layers = [str(number) for number in range(max(len(test.scores) for test in tests))]
    series = {
        f"{test.name} ({'syntax' if test.syntax else 'meaning'})": [100 * score for score in test.scores]
        for test in tests
    }
    rows = tuple(
        (test.name, *(f"{100 * score:.1f}" for score in test.scores), f"layer {test.better}" if test.better else "–")
        for test in tests
    )
    blocks: list[Block] = [
        Figure(line_chart(series, layers, "layer", (0, 100)), "Accuracy, %; for names and senses, F1."),
        Table(
            ("test", *layers, "better"),
            rows,
            "Scores of layers 0, 1 and so on, %, and the better one of layers 1 and 2; – means that their difference "
            "is not significant.",
        ),
        Paragraph(_sizes(findings)),
    ]
    if missing := findings.why_missing(*NEEDED):
        blocks.append(Paragraph(missing))
    return [*blocks, *_examples(findings), *_commands(findings)]


def _examples(findings: Findings) -> list[Block]:
    blocks: list[Block] = []
    if examples := findings.results.get("grammar", {}).get("examples"):
        lines = tuple(
            (tuple(each["words"]), each["place"], f"{each['gold']}; from the spelling alone: {each['alone']}")
            for each in examples
        )
        blocks.append(ExampleSentences("Words whose part of speech layer 1 gets right and layer 0 gets wrong", lines))
    if examples := findings.results.get("senses", {}).get("examples"):
        lines = tuple((tuple(each["words"]), each["place"], "") for each in examples)
        title = "Words that are not used in their most frequent sense, which the top layer gets right"
        blocks.append(ExampleSentences(title, lines))
    return blocks


def _sizes(findings: Findings) -> str:
    results, said = findings.results, []
    if "grammar" in results:
        part = results["grammar"]
        said.append(
            f"UD-EWT: {part['train_words']:,} words for training, {part['test_words']:,} for testing. Baseline (each "
            f"word's most frequent label): {100 * part['upos']['usual']:.1f} % for parts of speech, "
            f"{100 * part['deprel']['usual']:.1f} % for roles."
        )
    if "names" in results:
        part = results["names"]
        said.append(
            f"{part['set']}: {part['train']:,} sentences for training, {part['test']:,} for testing "
            f"({part['names']} names)."
        )
    if "meanings" in results:
        part = results["meanings"]
        said.append(f"Two meanings: {part['sentences']} sentences of claim 1.")
    if "senses" in results:
        part = results["senses"]
        said.append(
            f"Senses: {part['tagged']:,} labelled words of SemCor for training, {part['instances']:,} for testing. "
            f"Baseline (the dictionary's first sense): {100 * part['first_sense']:.1f} %."
        )
    if "sentiment" in results:
        part = results["sentiment"]
        said.append(
            f"SST-2: {part['train']:,} sentences for training, {part['test']:,} for testing, each as the mean of its "
            "word vectors."
        )
    return " ".join(said)


def _commands(findings: Findings) -> list[Block]:
    """Commands that measure single tests again, with the same sample sizes."""
    blocks: list[Block] = []
    if "grammar" in findings.results:
        limit = "" if findings.full else f" --limit {findings.results['grammar']['limit']}"
        blocks.append(
            Command(
                f"polyseme probe {findings.model} --train {findings.data_path(TRAIN)} --test "
                f"{findings.data_path(TEST)} --column upos{limit} --no-control   # and --column deprel",
                "To measure only parts of speech and roles:",
            )
        )
    if "senses" in findings.results:
        limit = "" if findings.full else f" --limit {findings.results['senses']['limit']}"
        blocks.append(
            Command(
                f"polyseme wsd {findings.model} --train {findings.data_path(SEMCOR)} --test "
                f"{findings.data_path(TESTS)} --inventory {findings.data_path(INVENTORY)}{limit}",
                "To measure only word senses:",
            )
        )
    return blocks
