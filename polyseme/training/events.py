"""What happens in a run, for whoever follows it."""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass
from pathlib import Path

from polyseme.lm import Perplexity
from polyseme.training.loop.distributed import is_leader
from polyseme.training.loop.trainer import StepReport
from polyseme.training.settings import TrainSettings
from polyseme.training.shards.prepare import PrepareProgress

EVERY = 10.0  # seconds between two lines about steps


@dataclass(frozen=True)
class TrainPlan:
    """What is about to be done."""

    settings: TrainSettings
    steps: int
    first_step: int  # 0, or where an interrupted run goes on
    tokens: int  # of the training text
    held_out_tokens: int
    words: int  # of the vocabulary
    unknown: float  # share of the running words that are not in it
    parameters: int  # of the biLM
    head_parameters: int
    device: str
    processes: int


@dataclass(frozen=True)
class Evaluation:
    """How the model does on text that it does not learn from, by the full softmax."""

    step: int
    text: str  # which
    fresh: Perplexity  # each sentence by itself
    carried: Perplexity  # state carried through a document
    best: bool  # the best of the run so far, so the model was saved


@dataclass(frozen=True)
class CheckpointSaved:
    """A checkpoint was written."""

    folder: Path
    step: int


@dataclass(frozen=True)
class TrainFinished:
    """The run is over."""

    model: Path
    run: Path
    step: int
    best: float | None  # perplexity of the model, each sentence by itself


Event = PrepareProgress | TrainPlan | StepReport | Evaluation | CheckpointSaved | TrainFinished


class EventFormatter:
    """Turns events into lines. Only what changes a reader's mind gets one: not every step does."""

    def __init__(self, every: float = EVERY) -> None:
        self._every = every
        self._told = time.monotonic()
        self._reports: list[StepReport] = []  # since the last line; read together, for on a GPU reading means waiting
        self._kind = ""
        self._first: int | None = None

    def format(self, event: Event) -> str | None:
        """A line, several lines, or nothing."""
        if isinstance(event, TrainPlan):
            self._kind = event.settings.loss.kind
            return describe_plan(event)
        if isinstance(event, StepReport):
            return self._format_step(event)
        if isinstance(event, Evaluation):
            return describe_evaluation(event)
        if isinstance(event, TrainFinished):
            return describe_end(event)
        if isinstance(event, PrepareProgress) and event.finished:
            return describe_text(event)
        return None

    def _format_step(self, report: StepReport) -> str | None:
        if self._first is None:
            self._first, self._begun = report.step - 1, time.monotonic() - report.seconds
        self._reports.append(report)
        now = time.monotonic()
        if now - self._told < self._every and report.step < report.steps:
            return None
        line = self.line(report)
        self._told = now
        self._reports.clear()
        return line

    def line(self, report: StepReport) -> str:
        """Where the run is: steps, perplexity while learning, speed, time to go."""
        done = report.step - (self._first or 0)
        seconds = max(time.monotonic() - self._begun, 1e-9)
        speed = done * report.tokens / report.step / seconds
        left = seconds / done * (report.steps - report.step)
        loss = sum(each.loss for each in self._reports) / max(1, len(self._reports))
        learning = math.exp(min(loss, 50))
        skipped = f" · {report.skipped} steps skipped" if report.skipped else ""
        return (
            f"step {report.step:,}/{report.steps:,} · {duration(left)} to go · epoch {report.epochs:.2f} · "
            f"{self._kind} perplexity {learning:,.0f} · {speed:,.0f} tokens/s{skipped}"
        )


def describe_text(preparing: PrepareProgress) -> str:
    """What was read."""
    counts = f"{preparing.tokens - preparing.sentences:,} words in {preparing.sentences:,} sentences"
    if preparing.reused:
        return f"text: {counts} (prepared before)"
    return f"text: {counts} ({preparing.bytes_read / 1e6:.1f} MB, {preparing.megabytes_per_second:.1f} MB/s)"


def describe_plan(plan: TrainPlan) -> str:
    """What will be done."""
    lstm, loop = plan.settings.model.lstm, plan.settings.training
    epochs = plan.steps * loop.rows * loop.window / plan.tokens
    begin = f"going on from step {plan.first_step:,}" if plan.first_step else f"{plan.steps:,} steps"
    where = plan.device + (f", {plan.processes} processes" if plan.processes > 1 else "")
    return (
        f"model: {plan.parameters / 1e6:.1f} million weights ({lstm.num_layers} layers of {lstm.cells:,} cells, "
        f"{lstm.dim} dimensions a direction) and a softmax of {plan.words:,} words; "
        f"{plan.unknown:.1%} of the text is outside it\n"
        f"training on {where}: {begin}, {epochs:.1f} times through {plan.tokens:,} tokens, "
        f"{plan.held_out_tokens:,} held out"
    )


def describe_evaluation(evaluation: Evaluation) -> str:
    """How good it is; the full softmax, whatever the training's loss."""
    fresh, carried = evaluation.fresh, evaluation.carried
    when = f"step {evaluation.step:,}" if evaluation.step else "before"
    kept = " · best so far, saved" if evaluation.best else ""
    return (
        f"{when} · {evaluation.text}: full perplexity {fresh.both:,.1f} each sentence by itself, "
        f"{carried.both:,.1f} state carried ({fresh.tokens:,} tokens){kept}"
    )


def describe_end(end: TrainFinished) -> str:
    """What to do with it."""
    return (
        f"{end.model} is ready: polyseme predict --model {end.model} ..., polyseme.load('{end.model}')\n"
        f"{end.run} holds the text as tokens and the last checkpoint; remove it when nothing is to go on from it"
    )


def describe_interruption(run: Path) -> str:
    """What was kept, and how to go on."""
    if not (run / "last").is_dir():
        return "interrupted: no step was finished yet"
    return f"interrupted: saved in {run}; the same command with --resume goes on"


def announce_stop() -> None:
    """Answer to Ctrl-C; it comes at any moment, in the middle of another line too."""
    if is_leader():
        os.write(2, b"\nstopping when this step is done and saved; Ctrl-C again leaves at once\n")


def duration(seconds: float) -> str:
    """Time as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
