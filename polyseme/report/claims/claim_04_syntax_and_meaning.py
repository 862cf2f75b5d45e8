"""Claim 4: the first LSTM layer for syntax, the second for meaning."""

from __future__ import annotations

from dataclasses import dataclass

from polyseme.report.claim import Claim, Findings, not_tested
from polyseme.report.measure.grammar import GRAMMAR, TEST, TRAIN
from polyseme.report.measure.names import NAMES
from polyseme.report.measure.senses import INVENTORY, SEMCOR, SENSES, TESTS
from polyseme.report.measure.sentiment import SENTIMENT
from polyseme.report.measure.statistics import SURE
from polyseme.report.page.content import (
    FAILED,
    HELD,
    UNTESTED,
    Block,
    Command,
    ExampleSentences,
    Figure,
    Paragraph,
    PassRule,
    Table,
    Verdict,
)
from polyseme.report.page.drawing import lines

PARTS = (GRAMMAR, NAMES, SENSES, SENTIMENT)


@dataclass(frozen=True)
class Test:
    """One test of the layers: shares by layer, and whether one of the first two LSTM layers is surely better."""

    name: str
    syntax: bool
    shares: list[float]
    better: int | None  # 1 or 2, where it is beyond luck
    context: bool  # whether a layer that reads the sentence surely beats layer 0


def collect(findings: Findings) -> list[Test]:
    """The tests that were done."""
    found, tests = findings.results, []
    if "grammar" in found:
        for column, name in (("upos", "parts of speech"), ("deprel", "roles in the sentence")):
            part = found["grammar"][column]
            tests.append(_test(name, True, part["accuracy"], part["p"]))
    if "names" in found:
        tests.append(_test_names(found["names"]))
    if "senses" in found:
        tests.append(_test("word senses", False, found["senses"]["f1"], found["senses"]["p"]))
    if "sentiment" in found:
        tests.append(_test("sentiment", False, found["sentiment"]["accuracy"], found["sentiment"]["p"]))
    return tests


def judge(findings: Findings) -> Verdict:
    """Held when both halves of the claim did."""
    tests = collect(findings)
    if not tests:
        return not_tested(findings, [part.name for part in PARTS], (findings.rerun(4),))
    layers = len(tests[0].shares)
    if layers != 3:
        return Verdict(
            UNTESTED,
            f"The claim is about two LSTM layers above the spelling; this model has {layers} layers in all.",
            (*_blocks(findings, tests), findings.rerun(4)),
        )
    syntax, meaning = ([test for test in tests if test.syntax is kind] for kind in (True, False))
    if not syntax or not meaning:
        reason = f"One half of it could not be tested. {findings.why_missing(*(part.name for part in PARTS))}"
        return Verdict(UNTESTED, reason, (*_blocks(findings, tests), findings.rerun(4)))
    knows = all(test.context for test in tests if test.name == "parts of speech")
    halves = _half(syntax, 1), _half(meaning, 2)
    reason = f"{_say(syntax, 'syntax')} {_say(meaning, 'meaning')}"
    if not knows:
        reason = f"No layer that reads the sentence beats the spelling at parts of speech. {reason}"
    held = knows and all(halves)
    rule = PassRule(
        "layer 1 beats layer 2 in at least two tests of syntax and loses none; layer 2 beats layer 1 in at least one "
        "test "
        f"of meaning and loses none; each beyond luck (exact sign test, p below {SURE:g}; for names, the 95 % interval "
        "over sentences drawn again). And reading the sentence helps at all: a layer above 0 beats layer 0 at parts of "
        "speech."
    )
    return Verdict(HELD if held else FAILED, reason, (rule, *_blocks(findings, tests), findings.rerun(4)))


CLAIM = Claim(
    4,
    "The first layer is for grammar, the second for meaning",
    "An ELMo has two layers that read the sentence, one on top of the other. The lower is said to know more about "
    "grammar "
    "(what kind of word is this, what is it doing here, is it part of a name), the upper about meaning (which sense "
    "does it "
    "have, is the sentence for or against). A linear probe asks each layer: a classifier so simple that it can only "
    "find what "
    "is plainly there.",
    PARTS,
    judge,
    hint="A layer is one pass over the sentence; the second works on what the first left.",
)


def _test(name: str, syntax: bool, shares: dict[str, float], p: dict[str, float]) -> Test:
    layers = [shares[key] for key in shares if key.isdigit()]
    sure = len(layers) > 2 and p["1 2"] < SURE
    context = any(layers[n] > layers[0] and p[f"0 {n}"] < SURE for n in range(1, len(layers)))
    return Test(name, syntax, layers, (1 if layers[1] > layers[2] else 2) if sure else None, context)


def _test_names(found: dict) -> Test:
    layers = [found["f1"][key] for key in found["f1"] if key.isdigit()]
    better = None
    if len(layers) > 2:
        low, high = found["difference"]["1 2"]
        better = 1 if low > 0 else 2 if high < 0 else None
    context = any(found["difference"][f"0 {n}"][1] < 0 for n in range(1, len(layers)))
    return Test("names", True, layers, better, context)


def _half(tests: list[Test], layer: int) -> bool:
    wins = sum(test.better == layer for test in tests)
    losses = sum(test.better not in (layer, None) for test in tests)
    return wins >= min(len(tests), 2 if layer == 1 else 1) and not losses


def _say(tests: list[Test], what: str) -> str:
    parts = [f"{test.name} {f'layer {test.better}' if test.better else 'neither beyond luck'}" for test in tests]
    return f"Better for {what}: {', '.join(parts)}."


def _blocks(findings: Findings, tests: list[Test]) -> list[Block]:
    layers = [str(number) for number in range(max(len(test.shares) for test in tests))]
    series = {
        f"{test.name} ({'syntax' if test.syntax else 'meaning'})": [100 * share for share in test.shares]
        for test in tests
    }
    rows = tuple((test.name, *(f"{100 * share:.1f}" for share in test.shares), _better(test)) for test in tests)
    blocks: list[Block] = [
        Figure(lines(series, layers, "layer", (0, 100)), "Right answers, %; for names F1."),
        Table(("", *(f"layer {name}" for name in layers), "better of 1 and 2"), rows),
        Paragraph(_sizes(findings)),
    ]
    missing = findings.why_missing(*(part.name for part in PARTS))
    blocks += [Paragraph(missing)] if missing else []
    if examples := findings.results.get("grammar", {}).get("examples"):
        lines_ = tuple(
            (tuple(each["words"]), each["place"], f"{each['gold']}; by its spelling {each['alone']}")
            for each in examples
        )
        blocks.append(
            ExampleSentences("Words whose part of speech layer 1 finds and the spelling alone does not", lines_)
        )
    if examples := findings.results.get("senses", {}).get("examples"):
        lines_ = tuple(
            (tuple(each["words"]), each["place"], f"{each['sense'].rstrip(':')}; usually {each['usual'].rstrip(':')}")
            for each in examples
        )
        blocks.append(ExampleSentences("Words in a sense that is not their usual one, found by the top layer", lines_))
    return [*blocks, *_commands(findings)]


def _better(test: Test) -> str:
    return f"layer {test.better}" if test.better else "–"


def _sizes(findings: Findings) -> str:
    found, said = findings.results, []
    if "grammar" in found:
        part = found["grammar"]
        said.append(
            f"UD-EWT: {part['train_words']:,} words to learn from, {part['test_words']:,} to measure on; giving each "
            "word "
            f"its usual label is right for {100 * part['upos']['usual']:.1f} and {100 * part['deprel']['usual']:.1f} %."
        )
    if "names" in found:
        part = found["names"]
        said.append(f"WNUT-17: {part['train']:,} and {part['test']:,} sentences, {part['names']} names.")
    if "senses" in found:
        part = found["senses"]
        said.append(
            f"Senses: {part['tagged']:,} tagged words of SemCor, {part['instances']:,} instances; always the first "
            "sense "
            f"of the dictionary is right for {100 * part['first_sense']:.1f} %."
        )
    if "sentiment" in found:
        part = found["sentiment"]
        said.append(f"SST-2: {part['train']:,} and {part['test']:,} sentences, the mean of their words' vectors.")
    return " ".join(said)


def _commands(findings: Findings) -> list[Block]:
    """The instruments that give the same numbers, where a part was bounded as they can be."""
    blocks: list[Block] = []
    if "grammar" in findings.results:
        limit = "" if findings.full else f" --limit {findings.results['grammar']['limit']}"
        blocks.append(
            Command(
                f"polyseme probe {findings.model} --train {findings.data_path(TRAIN)} --test "
                f"{findings.data_path(TEST)} --column upos{limit} --no-control   # and --column deprel",
                "Parts of speech and roles alone:",
            )
        )
    if "senses" in findings.results:
        limit = "" if findings.full else f" --limit {findings.results['senses']['limit']}"
        blocks.append(
            Command(
                f"polyseme wsd {findings.model} --train {findings.data_path(SEMCOR)} --test "
                f"{findings.data_path(TESTS)} --inventory {findings.data_path(INVENTORY)}{limit}",
                "Word senses alone:",
            )
        )
    return blocks
