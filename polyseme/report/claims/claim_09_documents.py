"""Claim 9: a document read as one, or sentence by sentence."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from polyseme.errors import ConfigError, FormatError
from polyseme.report.claim import Claim, Findings, not_tested
from polyseme.report.measure.grammar import usual_share
from polyseme.report.measure.language_model import PERPLEXITY
from polyseme.report.measure.measurement import Measurement, Results, SampleSizes
from polyseme.report.measure.model_under_test import EvaluationData, ModelUnderTest
from polyseme.report.measure.probing import EmbeddedWords, Labels, embed_words, fit_and_answer, gather, right
from polyseme.report.measure.statistics import SURE, sign_test
from polyseme.report.page.content import FAILED, HELD, Block, Figure, Paragraph, PassRule, Table, Verdict
from polyseme.report.page.drawing import Bar, bars
from polyseme.text.conll import CONLLU
from polyseme.text.corpus import open_text

TRAIN, TEST = (f"pos-ud-ewt/en_ewt-ud-{part}.conllu.xz" for part in ("train", "test"))
COLUMNS = {"upos": "parts of speech", "deprel": "roles"}  # what a word is, and what it does in the sentence
Row = tuple[str, str, str]  # a word, its part of speech, its role


def measure_documents(subject: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """A probe on the top layer, learnt and measured with state carried through documents, and without."""
    elmo = subject.elmo
    if elmo.num_layers < 2:
        raise ConfigError("This model has no layer that reads a sentence.")
    train, test = (_some(_documents(data[name]), sizes.tagged) for name in (TRAIN, TEST))
    found: Results = {"documents": len(test), "sentences": sum(map(len, test))}
    sides: dict[str, list[EmbeddedWords]] = {"alone": [], "carried": []}
    for part in (train, test):
        sentences = [[word for word, _, _ in sentence] for document in part for sentence in document]
        sides["alone"].append(embed_words(elmo, sentences))
        running = elmo.embed_documents([[[row[0] for row in each] for each in document] for document in part])
        sides["carried"].append(gather(elmo, sentences, chain.from_iterable(running)))
    found["words"] = len(sides["alone"][1])
    for place, column in enumerate(COLUMNS, start=1):
        labels = [
            [[row[place] for row in sentence] for document in part for sentence in document] for part in (train, test)
        ]
        answers = {name: _right(words, labels) for name, words in sides.items()}
        found[column] = {
            **{name: float(each.mean()) for name, each in answers.items()},
            "p": sign_test(answers["carried"], answers["alone"]),
            "usual": usual_share(*zip(sides["alone"], labels, strict=True)),
        }
    return found


def judge(findings: Findings) -> Verdict:
    """Held when carrying helps somewhere beyond luck, and hurts nowhere beyond luck."""
    found, text = findings.results.get("carried"), findings.results.get("perplexity")
    if not found and not text:
        return not_tested(findings, ["carried", "perplexity"], (findings.rerun(9),))
    better, worse = _sure(found)
    if text:
        low, high = (0.0 if end is None else end for end in text["interval"])  # None where a perplexity is endless
        better += ["guessing the next word"] * (high < 0)
        worse += ["guessing the next word"] * (low > 0)
    said = [
        f"Carrying on from sentence to sentence is {what} for {' and '.join(which)}."
        for what, which in (("better", better), ("worse", worse))
        if which
    ]
    knows = not found or max(found["upos"]["alone"], found["upos"]["carried"]) > found["upos"]["usual"]
    if not knows:
        said.insert(0, "In either way it finds parts of speech worse than giving each word its usual one does.")
    reason = " ".join(said) or "Neither is better beyond luck in anything that was looked at."
    blocks: list[Block] = [
        PassRule(
            "reading documents as one is better in at least one of the tests below and worse in none, beyond luck: "
            f"exact sign test with p below {SURE:g} for the probes, the 95 % interval over documents for perplexity. "
            "And the model must know something: parts of speech better than giving each word its usual one."
        )
    ]
    blocks += _probe_blocks(found) if found else [Paragraph(findings.why_missing("carried"))]
    blocks += _text_blocks(text) if text else [Paragraph(findings.why_missing("perplexity"))]
    return Verdict(HELD if better and not worse and knows else FAILED, reason, (*blocks, findings.rerun(9)))


DOCUMENTS = Measurement("carried", measure_documents, (TRAIN, TEST), ("tagged",))
CLAIM = Claim(
    9,
    "A document is understood better as a whole than sentence by sentence",
    "An ELMo can start afresh at every full stop, or carry what it has read into the next sentence, up to the end of "
    "the "
    "document. The second is how it was trained; most programs do the first.",
    (DOCUMENTS, PERPLEXITY),
    judge,
)


def _documents(path: Path) -> list[list[list[Row]]]:
    """Documents of UD-EWT, which a comment begins (``# newdoc``), as lists of sentences."""
    documents: list[list[list[Row]]] = []
    sentence: list[Row] = []
    with open_text(path) as lines:
        for line in chain(lines, [""]):
            fields = line.rstrip("\n").split("\t")
            if line.startswith("# newdoc") or not documents:
                documents.append([])
            if len(fields) == len(CONLLU) and fields[0].isdecimal():
                sentence.append((fields[1], fields[3], fields[7]))
            elif sentence and not line.strip():
                documents[-1].append(sentence)
                sentence = []
    documents = [document for document in documents if document]
    if not documents:
        raise FormatError(f"{path}: no sentence in there; expected CoNLL-U")
    return documents


def _some(documents: list[list[list[Row]]], sentences: int) -> list[list[list[Row]]]:
    """Whole documents, evenly from the file, until there are so many sentences."""
    total = sum(map(len, documents))
    step = max(1, round(total / max(1, min(total, sentences))))
    return documents[::step]


def _right(words: list[EmbeddedWords], labels: Sequence[Labels]) -> np.ndarray:
    train, test = words
    answers = fit_and_answer((train, labels[0]), (test, labels[1]), lambda layers: layers[-1])
    return right(answers, labels[1])


def _sure(found: Results | None) -> tuple[list[str], list[str]]:
    better, worse = [], []
    for column, name in COLUMNS.items():
        if found and found[column]["p"] < SURE:
            (better if found[column]["carried"] > found[column]["alone"] else worse).append(name)
    return better, worse


def _probe_blocks(found: Results) -> list[Block]:
    rows = []
    for column, name in COLUMNS.items():
        rows += [
            Bar(f"{name}, alone", 100 * found[column]["alone"], colour=4),
            Bar("in its document", 100 * found[column]["carried"]),
        ]
    return [
        Figure(
            bars(rows, 100, " %"),
            f"Right answers of a linear probe on the top layer; {found['words']:,} words of {found['sentences']:,} "
            f"sentences in {found['documents']} documents of UD-EWT.",
        ),
        Table(
            ("", "alone", "in its document", "p"),
            tuple(
                (name, *(f"{100 * found[column][side]:.1f}" for side in ("alone", "carried")), _p(found[column]["p"]))
                for column, name in COLUMNS.items()
            ),
        ),
    ]


def _text_blocks(text: Results) -> list[Block]:
    return [
        Table(
            ("perplexity", "fresh", "carried"),
            tuple(
                (name, *(_perplexity(text[state][name]) for state in ("fresh", "carried")))
                for name in ("forward", "backward", "both")
                if name in text["fresh"]
            ),
            f"How many words the model is torn between when it guesses (fewer is better), on {text['tokens']:,} words "
            "and "
            f"sentence ends of WikiText-103 in {text['documents']} articles; {100 * text['unknown']:.1f} % of the "
            "words "
            "are not in its list.",
        )
    ]


def _perplexity(value: float | None) -> str:
    return "endless" if value is None else f"{value:,.1f}"


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
