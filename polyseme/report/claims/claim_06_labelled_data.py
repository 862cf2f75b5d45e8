"""Claim 6: tasks need less labelled text (sample efficiency)."""

from __future__ import annotations

from polyseme.report.claim import Claim, Findings, not_tested
from polyseme.report.claims.fitted_tasks import FITTED, difference_blocks, list_differences, mean_difference
from polyseme.report.measure.fits.word_tasks import FEW, SPELLING, WORD_TASKS, word_tasks
from polyseme.report.measure.grammar import GRAMMAR
from polyseme.report.measure.measurement import Results
from polyseme.report.measure.task_results import BASE, MIXED, TASKS, mean
from polyseme.report.page.content import FAILED, HELD, Figure, PassRule, Verdict, list_words, points
from polyseme.report.page.drawing import line_chart
from polyseme.report.verdicts import interval_above

SHARES = ("1", "3", "10", "30", "100")
STORED_RULE = PassRule(
    "with 30 % of the labelled sentences, a task does at least as well as the same task model does without these "
    "vectors on all of them."
)
RULE = PassRule(
    "averaged over the tasks below, a tagger with all layers and 30 % of the labelled sentences beats the same tagger "
    "with the context-free layer and all sentences: the whole 95 % interval of the mean difference lies above 0."
)
FEW_AND_SPELLING = f"{FEW} {SPELLING}"


def judge(findings: Findings) -> Verdict:
    """The claim holds if 30 % of the labelled text with the model is as good as all of it without."""
    scores = findings.results.get(TASKS, {}).get("scores", {}).get("wnut17", {})
    few, everything = scores.get(f"{MIXED}@30%"), scores.get(BASE)
    if few and everything:
        return _judge_stored(findings, scores, mean(few), mean(everything))
    if tasks := word_tasks(findings.results):
        return _judge_fitted(findings, tasks)
    return not_tested(findings, [*FITTED, TASKS], findings.task_command())


CLAIM = Claim(
    6,
    "Less labelled text is needed",
    "People have to write labels by hand, which costs money. A task that starts from vectors that already know the "
    "language should need fewer labels.",
    (*WORD_TASKS, GRAMMAR),
    judge,
    hint="Labelled text: sentences for which people have written down the right answers.",
)


def _judge_stored(findings: Findings, scores: dict[str, list[float]], few: float, everything: float) -> Verdict:
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
    return Verdict(HELD if few >= everything else FAILED, reason, (STORED_RULE, figure, *findings.task_command()))


def _judge_fitted(findings: Findings, tasks: list[Results]) -> Verdict:
    mean_gain, low, high = mean_difference(tasks, FEW_AND_SPELLING)
    reason = (
        "With context and 30 % of the sentences, minus without context and all sentences: on average "
        f"{points(mean_gain, (low, high))}; {list_differences(tasks, FEW_AND_SPELLING)}."
    )
    losing = [task["title"] for task in tasks if task["difference"][FEW_AND_SPELLING]["interval"][1] < 0]
    if losing:
        reason += f" For {list_words(losing)}, seeing more labelled words helps more than reading the sentence."
    grammar = findings.results.get("grammar")
    blocks = (
        RULE,
        *difference_blocks(tasks, ("layer 0, all", SPELLING), ("mix, 30 %", FEW)),
        *([_curve(grammar["curve"])] if grammar else []),
        findings.rerun(6),
    )
    return Verdict(interval_above(0, low, high), reason, blocks)


def _curve(curve: Results) -> Figure:
    """Learning curve of a linear probe on parts of speech."""
    names = {
        "all layers" if curve["view"] == "joined" else "top layer": "context",
        "layer 0 (spelling only)": "spelling",
    }
    return Figure(
        line_chart(
            {name: [100 * accuracy for accuracy in curve[key]] for name, key in names.items()},
            [f"{count}" for count in curve["sentences"]],
            "training sentences",
            (20 * (min(min(curve[key]) for key in names.values()) // 0.2), 100),
        ),
        "The more sentences are labelled, the better: accuracy of a linear probe on parts of speech in UD-EWT, %.",
    )
