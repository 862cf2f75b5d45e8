"""Claim 10: a transformer's last layer is not its best (BERT's feature strategies); all models in one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from polyseme.analysis.senses.wic import read_wic, wic
from polyseme.analysis.words.similarity import read_pairs, similarity
from polyseme.embedding.layers import STRATEGIES
from polyseme.report.claim import Claim, Findings, not_tested
from polyseme.report.measure.grammar import GRAMMAR
from polyseme.report.measure.measurement import Measurement, Results, SampleSizes
from polyseme.report.measure.model_under_test import EvaluationData, ModelUnderTest
from polyseme.report.measure.names import NAMES
from polyseme.report.measure.senses import SENSES
from polyseme.report.measure.sentiment import SENTIMENT
from polyseme.report.measure.task_results import TASKS, difference, mean
from polyseme.report.page.content import (
    FAILED,
    HELD,
    INCONCLUSIVE,
    UNTESTED,
    Block,
    Figure,
    Outcome,
    Paragraph,
    PassRule,
    Table,
    Verdict,
)
from polyseme.report.page.drawing import Bar, bar_chart
from polyseme.report.verdicts import interval_above

SETS = {"WordSim-353": "EN-WS-353-ALL.txt", "SimLex-999": "EN-SIMLEX-999.txt", "MEN": "EN-MEN-TR-3k.txt"}
WIC_FILES = ("wic/train.data.txt", "wic/dev.data.txt")
LAST = "last"


def measure_size(model: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """Size of the model: dimensions, layers, parameters, bytes on disk."""
    encoder = model.encoder
    return {
        "dim": encoder.dim,
        "layers": encoder.num_layers,
        "parameters": sum(weight.numel() for weight in encoder.parameters()),
        "bytes": model.bytes,
    }


def measure_similarity(model: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """Word similarity: Spearman's correlation with human ratings, over all pairs, by layer."""
    sets = {name: read_pairs(data[f"similarity/{file}"]) for name, file in SETS.items()}
    results: Results = {name: {} for name in SETS}
    for row in similarity(model.encoder, sets).rows:
        results[row.name][str(row.layer)] = row.spearman_all
    return results


def measure_wic(model: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """Word in Context (WiC) accuracy with a threshold on the cosine similarity, by layer."""
    train, test = (read_wic(data[name]) for name in WIC_FILES)
    result = wic(model.encoder, train[: sizes.pairs], test)
    return {"train": result.train, "test": result.test, "accuracy": {str(r.layer): r.accuracy for r in result.layers}}


def judge(findings: Findings) -> Verdict:
    """The claim holds if another way to choose layers is significantly better than the last layer."""
    fitted = findings.results.get(TASKS, {}).get("scores", {}).get("wnut17", {})
    taggers = {name: fitted[f"bert-{name}"] for name in STRATEGIES if fitted.get(f"bert-{name}")}
    if len(taggers) > 2 and LAST in taggers:
        return _judge_taggers(findings, taggers)
    names = findings.results.get("names")
    if not names:
        return not_tested(findings, ["names"], (findings.rerun(10),))
    scores = {name: 100 * names["f1"][name] for name in STRATEGIES if name in names["f1"]}
    if len(scores) < 3 or LAST not in scores:
        reason = (
            "The claim is about the many layers of a transformer, such as BERT; this model is not one. Name a "
            "transformer's folder beside it (`polyseme report english minilm`) to test it."
        )
        return Verdict(UNTESTED, reason)
    best = max(scores, key=scores.__getitem__)
    outcome = FAILED if best == LAST else _beats_last(names["difference"], best)
    rule = PassRule(
        "the best of the BERT paper's six ways to make features from layers is not the last layer, and is "
        "significantly better than it (the whole 95 % interval of the difference in F1 lies above 0)."
    )
    figure = Figure(
        _bars(scores, max(10.0, 1.15 * max(scores.values()))),
        f"F1 of a linear probe for names in {names['set']}, %; {names['train']:,} sentences for training, "
        f"{names['test']:,} for testing. Weighted sums have equal weights here.",
    )
    return Verdict(outcome, _reason(scores, best), (rule, figure, findings.rerun(10)))


def _judge_taggers(findings: Findings, taggers: dict[str, list[float]]) -> Verdict:
    """The same verdict from stored scores of fitted taggers, which take precedence over a probe."""
    scores = {name: mean(values) for name, values in taggers.items()}
    best = max(scores, key=scores.__getitem__)
    gain, error = difference(taggers[best], taggers[LAST])
    rule = PassRule(
        "the best of the BERT paper's six ways to make features from layers is not the last layer, and taggers with it "
        "score higher than with the last layer by more than two standard errors over random seeds."
    )
    figure = Figure(
        _bars(scores, 1.15 * max(1.0, scores[best])), "F1 of taggers for names in WNUT-17, %, means over random seeds."
    )
    outcome = FAILED if best == LAST else HELD if gain > 2 * error else INCONCLUSIVE
    return Verdict(outcome, _reason(scores, best), (rule, figure, *findings.task_command()))


def _bars(scores: dict[str, float], end: float) -> str:
    return bar_chart([Bar(name, score, colour=1 if name == LAST else 0) for name, score in scores.items()], end, " %")


def _reason(scores: dict[str, float], best: str) -> str:
    return f"The best choice is *{best}* with F1 {scores[best]:.1f}; the last layer gives {scores[LAST]:.1f}."


def _beats_last(differences: dict[str, list[float]], best: str) -> Outcome:
    if f"{best} {LAST}" in differences:
        return interval_above(0, *differences[f"{best} {LAST}"])
    low, high = differences[f"{LAST} {best}"]
    return interval_above(0, -high, -low)


def compare(findings: Sequence[Findings]) -> tuple[Block, ...]:
    """A table of all models with the best layer of each in every test."""
    columns: dict[str, Callable[[Findings], str]] = {
        "parts of speech": lambda model: _best(model, "grammar", "upos", "accuracy"),
        "names, F1": lambda model: _best(model, "names", "f1"),
        "senses, F1": lambda model: _best(model, "senses", "f1"),
        "sentiment": lambda model: _best(model, "sentiment", "accuracy"),
        "word in context": lambda model: _best(model, "wic", "accuracy"),
        "similarity": _similarity,
        "MB": _megabytes,
    }
    used = {name: read for name, read in columns.items() if any(read(each) != "–" for each in findings)}
    table = Table(
        ("model", *used),
        tuple((each.name, *(read(each) for read in used.values())) for each in findings),
        "The best single layer of each model in each test: accuracy in % unless the column says F1; similarity is "
        "Spearman's correlation with human ratings × 100, mean of three data sets; MB is the size on disk. Embedding "
        "speed, which differs from run to run, is in timings.json.",
    )
    more = Paragraph(
        "To compare other models, name them in the same command: a folder with a transformer (MiniLM, MPNet), a GloVe "
        "text file, word2vec vectors trained on your text (`polyseme static fit`), vectors distilled from this model "
        "(`polyseme distil`)."
    )
    return (table, more) if len(findings) == 1 else (table,)


SIZE = Measurement("size", measure_size)
SIMILARITY = Measurement(
    "similarity", measure_similarity, tuple(f"similarity/{file}" for file in SETS.values()), extra=True
)
WIC = Measurement(
    "wic", measure_wic, (*WIC_FILES, *(name.replace("data", "gold") for name in WIC_FILES)), ("pairs",), extra=True
)
CLAIM = Claim(
    10,
    "A transformer's last layer is not its best",
    "BERT and similar models have a dozen layers. The BERT paper compared which of them to use for finding names, and "
    "the last layer was not the best choice. Below, all models of this report are compared in one table.",
    (NAMES, GRAMMAR, SENSES, SENTIMENT, WIC, SIMILARITY, SIZE),
    judge,
    compare,
    hint="Transformers, such as BERT, are the kind of model that came after ELMo.",
)


def _best(findings: Findings, name: str, *keys: str) -> str:
    values = findings.results.get(name)
    for key in keys:
        values = values[key] if values else None
    layers = [value for layer, value in (values or {}).items() if layer.isdigit() and value is not None]
    return f"{100 * max(layers):.1f}" if layers else "–"


def _similarity(findings: Findings) -> str:
    found = findings.results.get("similarity")
    if not found:
        return "–"
    layers = next(iter(found.values()))
    by_layer = [[found[name][layer] for name in found] for layer in layers]
    means = [sum(values) / len(values) for values in by_layer if None not in values]
    return f"{100 * max(means):.1f}" if means else "–"


def _megabytes(findings: Findings) -> str:
    size = findings.results.get("size", {}).get("bytes")
    return f"{size / 1e6:,.0f}" if size else "–"
