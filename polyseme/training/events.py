"""Events of a training run, and their formatting as log lines."""

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

EVERY = 10.0  # seconds between two log lines about steps


@dataclass(frozen=True)
class TrainPlan:
    """Training plan, sent once before the first step."""

    settings: TrainSettings
    steps: int
    first_step: int  # 0, or where an interrupted run resumes
    tokens: int  # of the training text
    held_out_tokens: int
    words: int  # of the vocabulary
    unknown: float  # fraction of the running words that are not in it
    parameters: int  # of the biLM
    head_parameters: int
    device: str
    processes: int


@dataclass(frozen=True)
class Evaluation:
    """Perplexity of the model on text that it is not trained on, by the full softmax."""

    step: int
    text: str  # name of the text
    fresh: Perplexity  # sentence by sentence
    carried: Perplexity  # LSTM state carried through each document
    best: bool  # the best so far, so the model was saved


@dataclass(frozen=True)
class CheckpointSaved:
    """Event: a checkpoint was written."""

    folder: Path
    step: int


@dataclass(frozen=True)
class TrainFinished:
    """Event: the training run has finished."""

    model: Path
    run: Path
    step: int
    best: float | None  # perplexity of the saved model, sentence by sentence


Event = PrepareProgress | TrainPlan | StepReport | Evaluation | CheckpointSaved | TrainFinished


class EventFormatter:
    """Formats training events as log lines: one every few seconds for steps, one for every other event."""

    def __init__(self, every: float = EVERY) -> None:
        self._every = every
        self._last_line = time.monotonic()
        self._reports: list[
            StepReport
        ] = []  # since the last line; their losses are read together, since reading one waits for the GPU
        self._kind = ""
        self._first_step: int | None = None

    def format(self, event: Event) -> str | None:
        """Format an event as one or more lines, or None where there is nothing to print."""
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
        if self._first_step is None:
            self._first_step, self._started = report.step - 1, time.monotonic() - report.seconds
        self._reports.append(report)
        now = time.monotonic()
        if now - self._last_line < self._every and report.step < report.steps:
            return None
        line = self._step_line(report)
        self._last_line = now
        self._reports.clear()
        return line

    def _step_line(self, report: StepReport) -> str:
        """Format progress: step, time left, epoch, training perplexity, speed."""
        taken = report.step - (self._first_step or 0)
        seconds = max(time.monotonic() - self._started, 1e-9)
        speed = taken * report.tokens / report.step / seconds
        remaining = seconds / taken * (report.steps - report.step)
        loss = sum(each.loss for each in self._reports) / max(1, len(self._reports))
        perplexity = math.exp(min(loss, 50))
        skipped = f" · {report.skipped} steps skipped" if report.skipped else ""
        distance = report.teacher_distance
        taught = "" if distance is None else f" · cosine with the teacher {1 - distance:.3f}"
        return (
            f"step {report.step:,}/{report.steps:,} · {duration(remaining)} left · epoch {report.epochs:.2f} · "
            f"{self._kind} perplexity {perplexity:,.0f}{taught} · {speed:,.0f} tokens/s{skipped}"
        )


def describe_text(preparing: PrepareProgress) -> str:
    """Describe the prepared text: words, sentences, reading speed."""
    counts = f"{preparing.tokens - preparing.sentences:,} words in {preparing.sentences:,} sentences"
    if preparing.reused:
        return f"text: {counts} (already prepared)"
    return f"text: {counts} ({preparing.bytes_read / 1e6:.1f} MB, {preparing.megabytes_per_second:.1f} MB/s)"


def describe_plan(plan: TrainPlan) -> str:
    """Describe the model and the plan of the run."""
    lstm, loop = plan.settings.model.lstm, plan.settings.training
    epochs = plan.steps * loop.rows * loop.window / plan.tokens
    start = f"resumed from step {plan.first_step:,} of {plan.steps:,}" if plan.first_step else f"{plan.steps:,} steps"
    where = plan.device + (f", {plan.processes} processes" if plan.processes > 1 else "")
    return (
        f"model: {plan.parameters / 1e6:.1f} million parameters ({lstm.num_layers} layers of {lstm.cells:,} cells, "
        f"{lstm.dim} dimensions per direction) and a softmax of {plan.words:,} words "
        f"({plan.unknown:.1%} of the text is out of vocabulary)\n"
        f"training on {where}: {start}, {epochs:.1f} epochs of {plan.tokens:,} tokens, "
        f"{plan.held_out_tokens:,} tokens held out"
    )


def describe_evaluation(evaluation: Evaluation) -> str:
    """Describe an evaluation: perplexity by the full softmax, whatever the training loss."""
    fresh, carried = evaluation.fresh, evaluation.carried
    when = f"step {evaluation.step:,}" if evaluation.step else "before training"
    best = " (best so far, saved)" if evaluation.best else ""
    return (
        f"{when} · {evaluation.text}: full perplexity {fresh.both:,.1f} sentence by sentence, "
        f"{carried.both:,.1f} with carried state, on {fresh.tokens:,} tokens{best}"
    )


def describe_end(end: TrainFinished) -> str:
    """Describe the finished model and how to use it."""
    return (
        f"{end.model} is ready: polyseme predict --model {end.model} ..., polyseme.load('{end.model}')\n"
        f"{end.run} holds the tokenised text and the last checkpoint; delete it when you no longer need to resume"
    )


def describe_interruption(run: Path) -> str:
    """Describe what an interrupted run saved, and how to resume it."""
    if not (run / "last").is_dir():
        return "interrupted before the first step was finished; nothing was saved"
    return f"interrupted: saved in {run}; run the same command with --resume to continue"


def announce_stop() -> None:
    """Print that Ctrl-C was received; this is safe in a signal handler."""
    if is_leader():
        os.write(2, b"\nstopping after this step is saved; press Ctrl-C again to quit immediately\n")


def duration(seconds: float) -> str:
    """Format a duration in seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
