"""Claim 7: freezing against fine-tuning, and a language model tuned on text of a domain."""

from __future__ import annotations

import json
from pathlib import Path

from polyseme.errors import ConfigError
from polyseme.report.claim import Claim, Findings
from polyseme.report.measure.measurement import Results
from polyseme.report.measure.task_results import MIXED, TASKS, TUNED, difference, shown, title
from polyseme.report.page.content import (
    FAILED,
    HELD,
    UNTESTED,
    Block,
    Command,
    Paragraph,
    PassRule,
    Table,
    Verdict,
    capital,
)

FROZEN = {"fine-tuned": "bert-weighted-sum-all", "elmo-fine-tuned": MIXED}
ENOUGH = 0.95  # of the perplexity before, which it must fall below

Finding = tuple[bool, str, list[Block]]  # whether it held, why, and what is shown


def read_tuning(path: Path) -> Results:
    """Perplexities before and after `polyseme train --from`, by text, out of the ``training.json`` that it left."""
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
        raise ConfigError("This model does not say how it was trained.") from error
    found = {text: both for text, both in ends.items() if len(both) == 2}
    if not found:
        raise ConfigError("This model was not tuned from another one (polyseme train --from).")
    return found


def judge(findings: Findings) -> Verdict:
    """Held when fine-tuning helps in whichever way could be tested."""
    held, said, blocks = [], [], []
    for outcome in (_tasks(findings), _domain(findings)):
        if outcome:
            held.append(outcome[0])
            said.append(outcome[1])
            blocks += outcome[2]
    if not held:
        reason = findings.why_missing(TASKS) or "The stored results hold no fits in which this model was fine-tuned."
        return Verdict(UNTESTED, f"{reason} {findings.why_missing(TUNED)}".strip(), findings.task_command())
    rule = PassRule(
        "in fitted tasks the fine-tuned model scores higher than the frozen one by more than twice the standard error "
        "over "
        "seeds in at least one, and lower by as much in none; and a model that was tuned on text of a domain is less "
        "surprised by unseen text of it, its perplexity falling by 5 % or more. What was not tried does not count."
    )
    return Verdict(HELD if all(held) else FAILED, " ".join(said), (rule, *blocks))


CLAIM = Claim(
    7,
    "Fine-tuning beats freezing",
    "The model can be left as it is while a task learns on top of it (frozen), or be changed along with the task "
    "(fine-tuned). It can also go on reading, in the field that it is to be used in, before anybody gives it a task.",
    (),
    judge,
    hint="Fine-tuned, the model goes on learning along with its task; frozen, it stays as it is.",
)


def _tasks(findings: Findings) -> Finding | None:
    scores = findings.results.get(TASKS, {}).get("scores", {})
    pairs = {
        (task, tuned): (rows[tuned], rows[frozen])
        for task, rows in scores.items()
        for tuned, frozen in FROZEN.items()
        if rows.get(tuned) and rows.get(frozen)
    }
    if not pairs:
        return None
    gains = {key: difference(*pair) for key, pair in pairs.items()}
    wins = [key for key, (gain, error) in gains.items() if gain > 2 * error]
    losses = [key for key, (gain, error) in gains.items() if gain < -2 * error]
    reason = " ".join(f"{capital(title(task))}: {gain:+.1f} points." for (task, _), (gain, _) in gains.items())
    table = Table(
        ("task", "frozen", "fine-tuned", "difference"),
        tuple(
            (title(task), shown(pairs[task, tuned][1]), shown(pairs[task, tuned][0]), f"{gain:+.1f}")
            for (task, tuned), (gain, _) in gains.items()
        ),
        "Mean ± deviation over seeds.",
    )
    return bool(wins) and not losses, reason, [table, *findings.task_command()]


def _domain(findings: Findings) -> Finding | None:
    """Of this model if it was tuned from another; else of one that was tuned from it, for which tasks were fitted."""
    tasks = findings.results.get(TASKS, {})
    own = findings.results.get(TUNED)
    found = own or tasks.get("perplexities")
    if not found:
        return None
    before, after = found.get("held-out", next(iter(found.values())))
    reason = f"Tuned on its domain, the perplexity of unseen text there went from {before:,.1f} to {after:,.1f}."
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
        "Perplexity, a sentence at a time, before and after; read from the model's training.json.",
    )
    tuned, first = (findings.model, "MODEL") if own else ("TUNED", findings.model)
    again = Command(f"polyseme train DOMAIN -o {tuned} --from {first} --also-evaluate GENERAL", "")
    blocks = [perplexities, Paragraph("Measured when the model was tuned; made with:"), again]
    return after < ENOUGH * before, reason, [*blocks, *([] if own else _tuned_scores(tasks["scores"]))]


def _tuned_scores(scores: dict[str, dict[str, list[float]]]) -> list[Block]:
    """What the tasks gained by it; verdict, not judged."""
    pairs = {task: (rows[MIXED], rows[TUNED]) for task, rows in scores.items() if rows.get(MIXED) and rows.get(TUNED)}
    rows = tuple(
        (title(task), shown(before), shown(after), f"{difference(after, before)[0]:+.1f}")
        for task, (before, after) in pairs.items()
    )
    caption = "Tasks on top of the model before and after it went on reading; mean ± deviation over seeds."
    return [Table(("task", "before", "after", "difference"), rows, caption)] if rows else []
