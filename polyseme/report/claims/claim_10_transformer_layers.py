"""Claim 10: the layers of a deep transformer, and all models of the report in one table."""

from __future__ import annotations

from collections.abc import Sequence

from polyseme.analysis.senses.wic import read_wic, wic
from polyseme.analysis.words.similarity import read_pairs, similarity
from polyseme.embedding.layers import STRATEGIES
from polyseme.report.claim import Claim, Findings
from polyseme.report.measure.grammar import GRAMMAR
from polyseme.report.measure.measurement import Measurement, Results, SampleSizes
from polyseme.report.measure.model_under_test import EvaluationData, ModelUnderTest
from polyseme.report.measure.names import NAMES
from polyseme.report.measure.senses import SENSES
from polyseme.report.measure.sentiment import SENTIMENT
from polyseme.report.measure.task_results import TASKS, difference, mean
from polyseme.report.page.content import FAILED, HELD, UNTESTED, Block, Figure, Paragraph, PassRule, Table, Verdict
from polyseme.report.page.drawing import Bar, bars

SETS = {"WordSim-353": "EN-WS-353-ALL.txt", "SimLex-999": "EN-SIMLEX-999.txt", "MEN": "EN-MEN-TR-3k.txt"}
WIC = ("wic/train.data.txt", "wic/dev.data.txt")
LAST = "last"


def measure_size(subject: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """What it takes to hold the model."""
    encoder = subject.encoder
    return {
        "dim": encoder.dim,
        "layers": encoder.num_layers,
        "parameters": sum(weight.numel() for weight in encoder.parameters()),
        "bytes": subject.bytes,
    }


def measure_similarity(subject: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """Spearman's correlation with people's ratings, all pairs, by layer."""
    sets = {name: read_pairs(data[f"similarity/{file}"]) for name, file in SETS.items()}
    result = similarity(subject.encoder, sets)
    found: Results = {name: {} for name in SETS}
    for row in result.rows:
        found[row.name][str(row.layer)] = row.spearman_all
    return found


def measure_wic(subject: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """Word in context by a threshold on the cosine, by layer."""
    train, test = (read_wic(data[name]) for name in WIC)
    result = wic(subject.encoder, train[: sizes.pairs], test)
    return {"train": result.train, "test": result.test, "accuracy": {str(r.layer): r.accuracy for r in result.layers}}


def judge(findings: Findings) -> Verdict:
    """Held when some other way of choosing layers beats the last one."""
    fitted = findings.results.get(TASKS, {}).get("scores", {}).get("wnut17", {})
    taggers = {name: fitted[f"bert-{name}"] for name in STRATEGIES if fitted.get(f"bert-{name}")}
    if len(taggers) > 2 and LAST in taggers:
        return _judge_fitted(findings, taggers)
    names = findings.results.get("names")
    if not names:
        return Verdict(UNTESTED, findings.why_missing("names"), (findings.rerun(10),))
    ways = {name: names["f1"][name] for name in STRATEGIES if name in names["f1"]}
    if len(ways) < 3 or LAST not in ways:
        return Verdict(
            UNTESTED,
            "The claim is about the many layers of a transformer; this model stands in the table for comparison.",
        )
    best = max(ways, key=ways.__getitem__)
    sure = best != LAST and _above(names["difference"], best)
    reason = f"Best is *{best}* with F1 {100 * ways[best]:.1f}; the last layer gives {100 * ways[LAST]:.1f}."
    rows = [Bar(name, 100 * value, colour=1 if name == LAST else 0) for name, value in ways.items()]
    return Verdict(
        HELD if sure else FAILED,
        reason,
        (
            PassRule(
                "the best of the BERT paper's six ways to make features is not the last layer, and beats it beyond "
                "luck "
                "(95 % interval of the difference in F1 over sentences drawn again)."
            ),
            Figure(
                bars(rows, 100 * max(0.1, 1.15 * max(ways.values())), " %"),
                f"F1 of names in WNUT-17 by a linear probe; {names['train']:,} sentences to learn from, "
                f"{names['test']:,} to measure on. Weighted sums have even weights here.",
            ),
            findings.rerun(10),
        ),
    )


def _judge_fitted(findings: Findings, taggers: dict[str, list[float]]) -> Verdict:
    """The same by fitted taggers, where they are stored; they decide rather than a probe."""
    best = max(taggers, key=lambda name: mean(taggers[name]))
    gain, error = difference(taggers[best], taggers[LAST])
    reason = f"Best is *{best}* with F1 {mean(taggers[best]):.1f}; the last layer gives {mean(taggers[LAST]):.1f}."
    rows = [Bar(name, mean(scores), colour=1 if name == LAST else 0) for name, scores in taggers.items()]
    blocks: list[Block] = [
        PassRule(
            "the best of the BERT paper's six ways to make features is not the last layer, and its fitted taggers beat "
            "that by more than twice the standard error over seeds."
        ),
        Figure(
            bars(rows, 1.15 * max(1.0, mean(taggers[best])), " %"),
            "F1 of taggers of names in WNUT-17, means over seeds.",
        ),
    ]
    return Verdict(HELD if best != LAST and gain > 2 * error else FAILED, reason, (*blocks, *findings.task_command()))


def compare(findings: Sequence[Findings]) -> tuple[Block, ...]:
    """All models in one table; the best layer of each in every test."""
    columns = {
        "parts of speech": lambda f: _best(f, "grammar", "upos", "accuracy"),
        "names, F1": lambda f: _best(f, "names", "f1"),
        "senses, F1": lambda f: _best(f, "senses", "f1"),
        "sentiment": lambda f: _best(f, "sentiment", "accuracy"),
        "word in context": lambda f: _best(f, "wic", "accuracy"),
        "similarity": _similarity,
        "MB": _megabytes,
    }
    used = {name: read for name, read in columns.items() if any(read(each) != "–" for each in findings)}
    rows = tuple((each.name, *(read(each) for read in used.values())) for each in findings)
    table = Table(
        ("model", *used),
        rows,
        "The best single layer of each model in each test, %; similarity is Spearman's correlation with people's "
        "ratings, "
        "mean of three sets, × 100; MB on disk. Words per second differ from run to run: they stand in timings.json.",
    )
    more = Paragraph(
        "To see others beside it, name them in the same command: a transformer's folder (MiniLM, MPNet), GloVe's text "
        "file, "
        "word2vec vectors trained on your text (`polyseme static fit`), vectors distilled from this model (`polyseme "
        "distil`)."
    )
    return (table, more) if len(findings) == 1 else (table,)


SIZE = Measurement("size", measure_size)
SIMILARITY = Measurement("similarity", measure_similarity, tuple(f"similarity/{file}" for file in SETS.values()))
WIC_PART = Measurement("wic", measure_wic, (*WIC, *(name.replace("data", "gold") for name in WIC)), ("pairs",))
CLAIM = Claim(
    10,
    "A transformer's last layer is not its best",
    "BERT and its kin have a dozen layers. Which one to take was tried in the BERT paper for finding names: not the "
    "last. Below it, "
    "all models of this report side by side.",
    (NAMES, GRAMMAR, SENSES, SENTIMENT, WIC_PART, SIMILARITY, SIZE),
    judge,
    compare,
    hint="Transformers are the kind of model that came after ELMo, such as BERT.",
)


def _above(differences: dict[str, list[float]], best: str) -> bool:
    if f"{best} {LAST}" in differences:
        return differences[f"{best} {LAST}"][0] > 0
    return differences[f"{LAST} {best}"][1] < 0


def _best(findings: Findings, part: str, *keys: str) -> str:
    values = findings.results.get(part)
    for key in keys:
        values = values[key] if values else None
    layers = [value for name, value in (values or {}).items() if name.isdigit() and value is not None]
    return f"{100 * max(layers):.1f}" if layers else "–"


def _similarity(findings: Findings) -> str:
    found = findings.results.get("similarity")
    if not found:
        return "–"
    layers = next(iter(found.values()))
    means = [[found[name][layer] for name in found] for layer in layers]
    known = [sum(values) / len(values) for values in means if None not in values]
    return f"{100 * max(known):.1f}" if known else "–"


def _megabytes(findings: Findings) -> str:
    size = findings.results.get("size", {}).get("bytes")
    return f"{size / 1e6:,.0f}" if size else "–"
