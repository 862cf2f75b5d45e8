"""A whole run: text to shards, shards to a model, and files that survive whatever happens.

my-model/        the best model so far: what `polyseme.load` opens
my-model.run/    what going on needs
    text/            the shards
    settings.json    the settings, all of them
    last/            the checkpoint
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from polyseme.errors import ConfigError, InputError, OutputError, TrainingError
from polyseme.files import make_folder, replacing
from polyseme.formats import native
from polyseme.formats.json_file import read_json
from polyseme.lm import Document, Perplexity, perplexity, read_documents
from polyseme.text.corpus import Paths, expand
from polyseme.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from polyseme.training.curves import draw_curves
from polyseme.training.distributed import Processes, join_processes, leave_processes
from polyseme.training.prepare import PrepareSettings, Preparing, prepare
from polyseme.training.settings import TrainSettings, change, choose_preset, preset
from polyseme.training.shards import Shards
from polyseme.training.student import Student, new_student, taken_over
from polyseme.training.trainer import Report, Trainer

POINTS = 200  # of a curve
AGREE_EVERY = 20  # steps after which several processes ask each other whether to save


@dataclass(frozen=True)
class Plan:
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
class Saved:
    """A checkpoint was written."""

    folder: Path
    step: int


@dataclass(frozen=True)
class Finished:
    """The run is over."""

    model: Path
    run: Path
    step: int
    best: float | None  # perplexity of the model, each sentence by itself


Event = Preparing | Plan | Report | Evaluation | Saved | Finished


@dataclass(frozen=True)
class Order:
    """What somebody wants trained.

    Attributes:
        texts: Files, folders, patterns, or ``-`` for standard input.
        output: The model's folder.
        preset: A size of model; None chooses by the text and the device.
        recipe: ``modern``, or ``bilm-tf`` for the published one.
        changes: Settings that differ from the preset's, as nested tables.
        device: Where to compute.
        resume: Go on with an interrupted run.
        overwrite: Begin anew and replace what is there.
        start_from: A model to go on from, instead of random weights.
        extend: With it: take the new text's words into the vocabulary.
        other_texts: Further text to measure on, such as the old domain's.
        workers: Processes that prepare the text; None is one a core.
    """

    texts: Paths
    output: Path
    preset: str | None = None
    recipe: str = "modern"
    changes: Mapping[str, Any] = field(default_factory=dict)
    device: str = "cpu"
    resume: bool = False
    overwrite: bool = False
    start_from: Path | None = None
    extend: bool = False
    other_texts: Sequence[str] = ()
    workers: int | None = None

    @property
    def run(self) -> Path:
        """The folder beside the model's that holds what going on needs."""
        return self.output.with_name(f"{self.output.name}.run")


def train(order: Order) -> Generator[Event, None, None]:
    """Train a model; stop by not asking for more, and a checkpoint is written.

    The files are whole at any time: a run that is killed goes on from its last checkpoint, and what it then computes is
    what it would have computed.
    """
    processes, device = join_processes(order.device)
    try:
        if processes.leads:
            _check_output(order)
        processes.wait()
        yield from _Run(order, processes, _usable(device)).events()
    finally:
        leave_processes()


class _Run:
    def __init__(self, order: Order, processes: Processes, device: torch.device) -> None:
        self.order, self.processes, self.device = order, processes, device
        self.curve: list[tuple[int, float]] = []  # tokens, mean loss
        self.evaluations: list[dict[str, Any]] = []
        self.best: float | None = None

    def events(self) -> Iterator[Event]:
        # What can be refused is refused before the text is read; the size may be chosen only after it.
        yield from self._prepare(self._settings_of(self.order.preset or "tiny").data)
        self.shards = Shards.open(self.order.run / "text")
        self.settings = self._settings()
        self.student = self._student()
        loop = self.settings.training
        self.trainer = Trainer(self.student, self.shards, self.settings.loss, loop, self.device, self.processes)
        if self.order.resume:
            self._restore(load_checkpoint(self.order.run / "last"))
        elif self.processes.leads:
            with replacing(self.order.run / "settings.json") as file:
                file.write(json.dumps(dataclasses.asdict(self.settings), indent=1).encode())
        yield self._plan()
        if self.order.start_from and not self.trainer.step:
            yield from self._evaluate(loop.held_out_tokens)
        yield from self._loop()
        yield Finished(self.order.output, self.order.run, self.trainer.step, self.best)

    def _prepare(self, settings: PrepareSettings) -> Iterator[Preparing]:
        make_folder(self.order.run)
        if self.processes.leads:
            yield from self._text(settings)
        self.processes.wait()

    def _text(self, settings: PrepareSettings) -> Iterator[Preparing]:
        folder = self.order.run / "text"
        if self.order.resume and "-" in expand(self.order.texts):
            return  # standard input cannot be read again, and need not be
        for report in prepare(self.order.texts, folder, settings, self.order.workers):
            if self.order.resume and not report.reused:
                raise InputError("the text has changed since the run was begun; begin anew with --overwrite")
            yield report

    def _settings(self) -> TrainSettings:
        order = self.order
        settings = self._settings_of(order.preset or choose_preset(self.shards.num_words, self.device.type))
        if order.resume:
            saved = read_json(order.run / "settings.json")
            asked = json.loads(json.dumps(dataclasses.asdict(settings)))
            if difference := _difference(saved, asked):
                raise ConfigError(f"the run was begun with other settings: {difference}; give the same, or begin anew")
        return settings

    def _settings_of(self, size: str) -> TrainSettings:
        return change(preset(size, self.device.type, self.order.recipe), self.order.changes)

    def _student(self) -> Student:
        if self.order.start_from:
            return taken_over(self.order.start_from, self.settings.loss, self.shards, self.order.extend)
        return new_student(self.settings, self.shards)

    def _plan(self) -> Plan:
        student, shards = self.student, self.shards
        unknown = int(student.counts[student.vocabulary.id(student.vocabulary.unk)])
        return Plan(
            self.settings,
            self.trainer.steps,
            self.trainer.step,
            shards.num_tokens,
            shards.held_out.tokens,
            len(student.vocabulary),
            unknown / max(1, shards.num_words),
            sum(parameter.numel() for parameter in student.bilm.parameters()),
            sum(parameter.numel() for parameter in student.head.parameters()),
            str(self.device),
            self.processes.count,
        )

    def _loop(self) -> Iterator[Event]:
        trainer, loop = self.trainer, self.settings.training
        every = max(1, -(-trainer.steps // loop.evaluations))
        point = max(1, trainer.steps // POINTS)
        saved, losses = time.monotonic(), []
        try:
            while trainer.step < trainer.steps:
                report = trainer.take_step()
                losses.append(report)
                if trainer.step % point == 0:
                    self.curve.append((report.tokens, sum(each.loss for each in losses) / len(losses)))
                    losses.clear()
                last = trainer.step == trainer.steps
                yield report
                if trainer.step % every == 0 or last:
                    yield from self._evaluate(None if last else loop.held_out_tokens)
                if self._agree(time.monotonic() - saved > loop.save_seconds) or trainer.step % every == 0 or last:
                    yield self._save()
                    saved = time.monotonic()
        except GeneratorExit:
            self._save()
            raise
        except TrainingError as error:
            raise TrainingError(f"{error}; {self._last_good()}") from error
        except torch.OutOfMemoryError as error:
            raise TrainingError(
                f"the GPU's memory is too small for training.rows={loop.rows} and training.window={loop.window}; "
                f"halve one of them; {self._last_good()}"
            ) from error

    def _agree(self, wish: bool) -> bool:
        """Whether to save; several processes must do it at the same step."""
        if self.processes.count == 1:
            return wish
        if self.trainer.step % AGREE_EVERY:
            return False
        votes = torch.tensor([float(wish)], device=self.device)
        self.processes.sum([votes])
        return bool(votes.item())

    def _evaluate(self, limit: int | None) -> Iterator[Evaluation]:
        """Look at held-out text, and keep the model if it is the best so far."""
        if self.processes.leads:
            texts = {"held-out": list(self.shards.held_out_documents(limit))}
            if limit is None or not self.trainer.step:
                raw = not self.settings.data.tokenized
                texts |= {name: _documents(name, raw) for name in self.order.other_texts}
            model = self.student.language_model()
            for name, documents in texts.items():
                if documents:
                    fresh, carried = (perplexity(model, documents, carried=carried) for carried in (False, True))
                    best = name == "held-out" and self.trainer.step > 0 and fresh.both <= (self.best or fresh.both)
                    evaluation = Evaluation(self.trainer.step, name, fresh, carried, best)
                    self.evaluations.append(_brief(evaluation, self.trainer))
                    if best:
                        self.best = fresh.both
                        self._save_model()
                    yield evaluation
            if not texts["held-out"] and self.trainer.step:
                self._save_model()
        self.processes.wait()

    def _save_model(self) -> None:
        model, head = self.student.stored()
        told = {"settings": dataclasses.asdict(self.settings), "curve": self.curve, "evaluations": self.evaluations}
        extras = {"training.json": (json.dumps(told, indent=1) + "\n").encode()}
        if picture := draw_curves(self.curve, self.evaluations, self.settings.loss.kind):
            extras["training.png"] = picture
        native.save(model, self.order.output, overwrite=True, softmax=head, extras=extras)

    def _save(self) -> Saved:
        tensors, facts = self.trainer.checkpoint()
        folder = self.order.run / "last"
        if self.processes.leads:
            told = {"curve": self.curve, "evaluations": self.evaluations, "best": self.best}
            save_checkpoint(Checkpoint(tensors, {**facts, **told}), folder)
        return Saved(folder, self.trainer.step)

    def _restore(self, checkpoint: Checkpoint) -> None:
        self.trainer.restore(checkpoint)
        self.curve = [tuple(point) for point in checkpoint.facts["curve"]]
        self.evaluations, self.best = list(checkpoint.facts["evaluations"]), checkpoint.facts["best"]

    def _last_good(self) -> str:
        folder = self.order.run / "last"
        return f"the last good checkpoint is {folder}" if folder.is_dir() else "no checkpoint was written yet"


def _check_output(order: Order) -> None:
    """Refuse to write over what is there, and to go on with what is not."""
    last = order.run / "last"
    if order.resume and order.overwrite:
        raise ConfigError("--resume goes on with a run and --overwrite forgets it; say one of them")
    if order.resume and not last.is_dir():
        raise ConfigError(f"there is nothing to resume: {last} does not exist")
    if order.overwrite:
        for folder in (order.run / "last", order.run / "settings.json"):
            shutil.rmtree(folder) if folder.is_dir() else folder.unlink(missing_ok=True)
    elif not order.resume and last.is_dir():
        raise OutputError(f"{order.run} holds an earlier run; go on with it by --resume, or forget it by --overwrite")
    elif not order.resume and order.output.exists():
        raise OutputError(f"{order.output} exists already; choose another name, or say --overwrite")


def _usable(device: str) -> torch.device:
    try:
        found = torch.device(device)
        torch.empty(1, device=found).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ConfigError(f"device {device!r} cannot be used here: {str(error).splitlines()[0]}") from error
    return found


def _documents(path: str, raw: bool) -> list[Document | list[list[str]]]:
    """A text that is to be measured more than once."""
    found = []
    for document in read_documents(path, raw):
        sentences, characters = document if isinstance(document, Document) else (document, None)
        found.append(Document(list(sentences), characters) if characters is not None else list(sentences))
    return found


def _brief(evaluation: Evaluation, trainer: Trainer) -> dict[str, Any]:
    measured = {name: getattr(evaluation, name) for name in ("fresh", "carried")}
    tokens = trainer.step * trainer.loop.rows * trainer.loop.window
    return {"step": evaluation.step, "tokens": tokens, "text": evaluation.text} | {
        name: dataclasses.asdict(value) for name, value in measured.items()
    }


def _difference(saved: Mapping[str, Any], asked: Mapping[str, Any], where: str = "") -> str | None:
    for key in {**saved, **asked}:
        one, other = saved.get(key), asked.get(key)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            if found := _difference(one, other, f"{where}{key}."):
                return found
        elif one != other:
            return f"{where}{key} was {one!r} and is now {other!r}"
    return None
