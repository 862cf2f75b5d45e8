"""Claim 7: fine-tuning beats freezing, in tasks and for the language model on text of a domain."""

from __future__ import annotations

import json
from pathlib import Path

from polyseme.errors import ConfigError
from polyseme.report.claim import Claim, Findings, not_tested
from polyseme.report.measure.fits.tuning import TUNING
from polyseme.report.measure.measurement import Results
from polyseme.report.measure.task_results import MIXED, TASKS, TUNED, compare_rows
from polyseme.report.page.content import (
    Block,
    Command,
    Figure,
    Outcome,
    Paragraph,
    PassRule,
    Table,
    Verdict,
    points,
)
from polyseme.report.page.drawing import Bar, bar_chart
from polyseme.report.verdicts import all_hold, interval_above, seeds_say, some_holds, yes_or_no

FROZEN = {"fine-tuned": "bert-weighted-sum-all", "elmo-fine-tuned": MIXED}
ENOUGH = 0.95  # the perplexity after tuning must be below this share of the perplexity before

HalfVerdict = tuple[Outcome, str, list[Block]]  # whether one half of the claim holds, why, and what is shown


def read_tuning(path: Path) -> Results:
    """Perplexities before and after `polyseme train --from`, by text, from the model's ``training.json``."""
    try:
        evaluations = json.loads((path / "training.json").read_text("utf-8"))["evaluations"]
        ends: dict[str, list[float]] = {}
        for each in evaluations:
            text, both = str(each["text"]), float(each["fresh"]["both"])
            if each["step"] == 0:
                ends.setdefault(text, [both])
            elif text in ends:
                ends[text] = [ends[text][0], both]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError("This model comes without a record of its training (training.json).") from error
    found = {text: both for text, both in ends.items() if len(both) == 2}
    if not found:
        raise ConfigError("This model was not tuned from another model (polyseme train --from).")
    return found


def judge(findings: Findings) -> Verdict:
    """The claim holds if fine-tuning helps in every way that was tested."""
    tasks = _judge_tasks(findings) or _judge_fitted(findings)
    halves = [half for half in (tasks, _judge_domain(findings)) if half]
    if not halves:
        return not_tested(findings, ["fine-tuning", TASKS, TUNED], findings.task_command())
    rule = PassRule(
        "the same task scores higher with the fine-tuned model than with the frozen one: the whole 95 % interval of "
        "the difference lies above 0. (For several tasks given with `--tasks`: higher by more than two standard errors "
        "over random seeds in at least one, and lower by as much in none.) If the model was itself tuned on text of a "
        "domain, its perplexity on unseen text of that domain must also have fallen by at least 5 %."
    )
    reason = " ".join(text for _, text, _ in halves)
    blocks = [block for _, _, shown in halves for block in shown]
    return Verdict(all_hold(outcome for outcome, _, _ in halves), reason, (rule, *blocks))


CLAIM = Claim(
    7,
    "Fine-tuning beats freezing",
    "The model can stay unchanged while a task learns on top of it (frozen), or it can be trained along with the task "
    "(fine-tuned). Its language model can also be trained further on text of the field where it will be used, before "
    "it gets any task.",
    (TUNING,),
    judge,
    hint="A fine-tuned model is trained along with its task; a frozen one stays unchanged.",
)


def _judge_fitted(findings: Findings) -> HalfVerdict | None:
    found = findings.results.get("fine-tuning")
    if not found:
        return None
    frozen, tuned = (found["score"][key] for key in ("frozen", "tuned"))
    gain, interval = found["difference"]["value"], found["difference"]["interval"]
    reason = (
        f"Accuracy on {found['title']} is {frozen:.1f} % with the frozen model and {tuned:.1f} % with the fine-tuned "
        f"one: {points(gain, interval)}."
    )
    if interval[1] < 0:
        reason += " A model with so many weights learns a few sentences by heart, which does not help with others."
    shown: list[Block] = [
        Figure(bar_chart([Bar("frozen", frozen, colour=4), Bar("fine-tuned", tuned)], 100, " %")),
        Paragraph(
            f"A linear classifier learns {found['title']} in UD-EWT from {found['train']} sentences, first on top of "
            "the frozen model. Then the classifier is trained together with the layers of a copy of the model that "
            f"read the sentence, {found['epochs']} times over the same sentences. Both are tested on {found['test']} "
            "other sentences."
        ),
        findings.rerun(7),
    ]
    return interval_above(0, *interval), reason, shown


def _judge_tasks(findings: Findings) -> HalfVerdict | None:
    scores = findings.results.get(TASKS, {}).get("scores", {})
    comparisons = [each for tuned, frozen in FROZEN.items() for each in compare_rows(scores, frozen, tuned)]
    if not comparisons:
        return None
    table = Table(
        ("task", "frozen", "fine-tuned", "difference"),
        tuple(each.row() for each in comparisons),
        "Test scores, mean ± standard deviation over random seeds.",
    )
    reason = f"Fine-tuned minus frozen: {'; '.join(map(str, comparisons))}."
    return some_holds(map(seeds_say, comparisons)), reason, [table, *findings.task_command()]


def _judge_domain(findings: Findings) -> HalfVerdict | None:
    """Perplexity before and after tuning: of this model if it is tuned, or of a model tuned from it."""
    tasks = findings.results.get(TASKS, {})
    own = findings.results.get(TUNED)
    found = own or tasks.get("perplexities")
    if not found:
        return None
    before, after = found.get("held-out", next(iter(found.values())))
    reason = (
        f"After tuning on text of a domain, the perplexity of unseen text of that domain went from {before:,.1f} to "
        f"{after:,.1f}."
    )
    perplexities = Table(
        ("text", "before", "after", "change"),
        tuple(
            (
                "unseen text of the domain" if text == "held-out" else Path(text).name,
                f"{ends[0]:,.1f}",
                f"{ends[1]:,.1f}",
                f"{100 * (ends[1] / ends[0] - 1):+.0f} %",
            )
            for text, ends in found.items()
        ),
        "Perplexity, one sentence at a time, before and after tuning, from the model's training.json. Lower is better.",
    )
    tuned, first = (findings.model, "MODEL") if own else ("TUNED", findings.model)
    command = Command(f"polyseme train DOMAIN -o {tuned} --from {first} --also-evaluate GENERAL", "")
    blocks = [perplexities, Paragraph("This was measured when the model was tuned, with:"), command]
    return yes_or_no(after < ENOUGH * before), reason, [*blocks, *([] if own else _tuned_scores(tasks["scores"]))]


def _tuned_scores(scores: dict[str, dict[str, list[float]]]) -> list[Block]:
    """Task scores before and after tuning the language model; shown, but not part of the rule."""
    rows = tuple(each.row() for each in compare_rows(scores, MIXED, TUNED))
    caption = (
        "Test scores of tasks on top of the language model before and after its tuning, mean ± standard deviation over "
        "random seeds. They are not part of the rule."
    )
    return [Table(("task", "before", "after", "difference"), rows, caption)] if rows else []
