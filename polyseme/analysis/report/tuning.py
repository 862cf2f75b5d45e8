"""Claim 7: freezing against fine-tuning, and a language model tuned on text of a domain."""

from __future__ import annotations

from polyseme.analysis.report.content import (
    FAILED,
    HELD,
    UNTESTED,
    Block,
    Claim,
    Command,
    Findings,
    Rule,
    Table,
    Text,
    Told,
)
from polyseme.analysis.report.fitted import TASKS
from polyseme.analysis.report.task_results import COMMAND, difference, shown, title

FROZEN = {"fine-tuned": ("input", "bert-weighted-sum-all"), "elmo-fine-tuned": ("input",)}


def tell(findings: Findings) -> Told:
    """Held when fine-tuning the encoder on the task does better than leaving it frozen."""
    scores = findings.found.get(TASKS, {}).get("scores", {})
    pairs = {
        (task, tuned): (rows[tuned], rows[frozen])
        for task, rows in scores.items()
        for tuned, ways in FROZEN.items()
        for frozen in ways
        if rows.get(tuned) and rows.get(frozen)
    }
    if not pairs:
        reason = findings.why(TASKS) or "The stored results hold no fits in which this model was fine-tuned."
        return Told(UNTESTED, reason, _command(findings))
    gains = {key: difference(*pair) for key, pair in pairs.items()}
    wins = [key for key, (gain, error) in gains.items() if gain > 2 * error]
    losses = [key for key, (gain, error) in gains.items() if gain < -2 * error]
    because = " ".join(f"{title(task).capitalize()}: {gain:+.1f} points." for (task, _), (gain, _) in gains.items())
    blocks: list[Block] = [
        Rule(
            "fine-tuned, the model scores higher than frozen by more than twice the standard error over seeds in at "
            "least "
            "one task, and lower by as much in none."
        ),
        Table(
            ("task", "frozen", "fine-tuned", "difference"),
            tuple(
                (title(task), shown(pairs[task, tuned][1]), shown(pairs[task, tuned][0]), f"{gain:+.1f}")
                for (task, tuned), (gain, _) in gains.items()
            ),
            "Mean ± deviation over seeds.",
        ),
    ]
    return Told(HELD if wins and not losses else FAILED, because, (*blocks, *_command(findings)))


CLAIM = Claim(
    7,
    "Fine-tuning beats freezing",
    "The model can be left as it is while a task learns on top of it (frozen), or be changed along with the task "
    "(fine-tuned). Opinions differ on whether the second is worth the trouble.",
    (),
    tell,
)


def _command(findings: Findings) -> tuple[Block, ...]:
    return (
        Text("Read from stored results of tasks that were fitted with this very model; made with:"),
        Command(COMMAND.format(model=findings.model)),
    )
