"""Claim 9: a document is understood better as a whole (LSTM state carried over) than sentence by sentence."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from polyseme.errors import ConfigError, FormatError
from polyseme.report.claim import Claim, Findings, not_tested
from polyseme.report.measure.grammar import TEST, TRAIN, majority_accuracy
from polyseme.report.measure.language_model import PERPLEXITY
from polyseme.report.measure.measurement import Measurement, Results, SampleSizes
from polyseme.report.measure.model_under_test import EvaluationData, ModelUnderTest
from polyseme.report.measure.probing import (
    EmbeddedWords,
    WordLabels,
    embed_words,
    fit_and_predict,
    gather,
    is_correct,
    one_layer,
)
from polyseme.report.measure.statistics import SIGNIFICANCE, sign_test
from polyseme.report.page.content import FAILED, HELD, INCONCLUSIVE, Block, Figure, Paragraph, PassRule, Table, Verdict
from polyseme.report.page.drawing import Bar, bar_chart
from polyseme.report.verdicts import all_hold, yes_or_no
from polyseme.text.conll import CONLLU
from polyseme.text.corpus import open_text

COLUMNS = {"upos": "parts of speech", "deprel": "grammatical roles"}
LabelledWord = tuple[str, str, str]  # a word, its part of speech, its grammatical role
Documents = list[list[list[LabelledWord]]]


def measure_documents(model: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """Probe accuracy on the top layer with LSTM state carried through documents, and with single sentences."""
    elmo = model.elmo
    if elmo.num_layers < 2:
        raise ConfigError("This model has no layer that reads a sentence.")
    train, test = (_sample(_read_documents(data[name]), sizes.tagged) for name in (TRAIN, TEST))
    results: Results = {"documents": len(test), "sentences": sum(map(len, test))}
    embedded: dict[str, list[EmbeddedWords]] = {"alone": [], "carried": []}
    for part in (train, test):
        documents = [[[word for word, _, _ in sentence] for sentence in document] for document in part]
        sentences = list(chain.from_iterable(documents))
        embedded["alone"].append(embed_words(elmo, sentences))
        carried = chain.from_iterable(elmo.embed_documents(documents))
        embedded["carried"].append(gather(elmo, sentences, carried))
    results["words"] = len(embedded["alone"][1])
    for place, column in enumerate(COLUMNS, start=1):
        labels = [
            [[row[place] for row in sentence] for document in part for sentence in document] for part in (train, test)
        ]
        correct = {name: _probe(words, labels) for name, words in embedded.items()}
        results[column] = {
            **{name: float(each.mean()) for name, each in correct.items()},
            "p": sign_test(correct["carried"], correct["alone"]),
            "usual": majority_accuracy(*zip(embedded["alone"], labels, strict=True)),
        }
    return results


def judge(findings: Findings) -> Verdict:
    """The claim holds if carrying state over is significantly better somewhere and significantly worse nowhere."""
    found, text = findings.results.get("carried"), findings.results.get("perplexity")
    if not found and not text:
        return not_tested(findings, ["carried", "perplexity"], (findings.rerun(9),))
    better, worse = _significant(found)
    if text:
        low, high = (0.0 if end is None else end for end in text["interval"])  # None where a perplexity is infinite
        better += ["predicting the next word"] * (high < 0)
        worse += ["predicting the next word"] * (low > 0)
    reasons = [
        f"Reading the document as a whole is significantly {what} for {' and '.join(tests)}."
        for what, tests in (("better", better), ("worse", worse))
        if tests
    ]
    if worse:
        reasons.append("What it remembers of the sentences before is in the way there: the words at hand tell more.")
    capable = not found or max(found["upos"]["alone"], found["upos"]["carried"]) > found["upos"]["usual"]
    if not capable:
        reasons.insert(0, "Either way, the model is no better at parts of speech than each word's most frequent label.")
    blocks: list[Block] = [
        PassRule(
            "reading documents as a whole is significantly better in at least one of the tests below and significantly "
            f"worse in none (probes: exact sign test, p < {SIGNIFICANCE:g}; perplexity: 95 % bootstrap interval over "
            "documents), and the model is better at parts of speech than giving each word its most frequent label."
        ),
        *(
            _probe_blocks(found)
            if found
            else [Paragraph(f"The probes were not run. {findings.why_missing('carried')}")]
        ),
        *(
            _perplexity_blocks(text)
            if text
            else [Paragraph(f"Perplexity was not measured. {findings.why_missing('perplexity')}")]
        ),
    ]
    return Verdict(
        all_hold([yes_or_no(capable), FAILED if worse else HELD if better else INCONCLUSIVE]),
        " ".join(reasons) or "There is no significant difference in any of the tests.",
        (*blocks, findings.rerun(9)),
    )


DOCUMENTS = Measurement("carried", measure_documents, (TRAIN, TEST), ("tagged",))
CLAIM = Claim(
    9,
    "A document is understood better as a whole than sentence by sentence",
    "An ELMo model can start from scratch in every sentence, or carry its state over into the next sentence until the "
    "end of the document. It was trained the second way; most programs use it the first way.",
    (DOCUMENTS, PERPLEXITY),
    judge,
)


def _read_documents(path: Path) -> Documents:
    """Documents of UD-EWT as lists of sentences; a comment ``# newdoc`` starts each."""
    documents: Documents = []
    sentence: list[LabelledWord] = []
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
        raise FormatError(f"{path}: contains no sentence; expected CoNLL-U")
    return documents


def _sample(documents: Documents, sentences: int) -> Documents:
    """Whole documents, evenly spaced in the file, with about this many sentences."""
    total = sum(map(len, documents))
    step = max(1, round(total / max(1, min(total, sentences))))
    return documents[::step]


def _probe(words: list[EmbeddedWords], labels: Sequence[WordLabels]) -> np.ndarray:
    """Whether a linear probe on the top layer is right, for each test word."""
    train, test = zip(words, labels, strict=True)
    return is_correct(fit_and_predict(train, test, one_layer(-1)), labels[1])


def _significant(found: Results | None) -> tuple[list[str], list[str]]:
    better, worse = [], []
    for column, name in COLUMNS.items():
        if found and found[column]["p"] < SIGNIFICANCE:
            (better if found[column]["carried"] > found[column]["alone"] else worse).append(name)
    return better, worse


def _probe_blocks(found: Results) -> list[Block]:
    bars, rows = [], []
    for column, name in COLUMNS.items():
        alone, carried, p = (found[column][key] for key in ("alone", "carried", "p"))
        bars += [Bar(f"{name}, alone", 100 * alone, colour=4), Bar("in its document", 100 * carried)]
        rows.append((name, f"{100 * alone:.1f}", f"{100 * carried:.1f}", "< 0.001" if p < 0.001 else f"{p:.3f}"))
    return [
        Figure(
            bar_chart(bars, 100, " %"),
            f"Accuracy of a linear probe on the top layer, on {found['words']:,} words of {found['sentences']:,} "
            f"sentences in {found['documents']} documents of UD-EWT.",
        ),
        Table(("accuracy, %", "alone", "in document", "p-value"), tuple(rows)),
    ]


def _perplexity_blocks(text: Results) -> list[Block]:
    return [
        Table(
            ("perplexity", "alone", "in document"),
            tuple(
                (name, *(_perplexity(text[state][name]) for state in ("fresh", "carried")))
                for name in ("forward", "backward", "both")
                if name in text["fresh"]
            ),
            "Perplexity is the number of equally likely words that the model hesitates between when it predicts the "
            f"next word; lower is better. Measured on {text['tokens']:,} words and sentence ends in "
            f"{text['documents']} articles of WikiText-103; {100 * text['unknown']:.1f} % of the words are not in the "
            "model's vocabulary.",
        )
    ]


def _perplexity(value: float | None) -> str:
    return "infinite" if value is None else f"{value:,.1f}"
