"""A training run: prepare shards, train, evaluate, checkpoint, and resume after any interruption.

my-model/        the best model so far: what `polyseme.load` opens
my-model.run/    what resuming needs
    text/            the shards
    settings.json    all settings
    last/            the last checkpoint
"""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch

from polyseme.errors import ConfigError, InputError, TrainingError
from polyseme.files import atomic_write, read_json
from polyseme.formats import StoredModel, StoredSoftmax, native, open_model, open_softmax
from polyseme.lm import Document, LanguageModel, perplexity, read_documents
from polyseme.model.softmax import AdaptiveSoftmax
from polyseme.training.curves import draw_curves
from polyseme.training.events import CheckpointSaved, Evaluation, Event, TrainFinished, TrainPlan
from polyseme.training.job import TrainJob, check_job, lock_outputs
from polyseme.training.loop.checkpoint import TrainingCheckpoint, load_checkpoint, save_checkpoint
from polyseme.training.loop.distributed import ProcessGroup, join_process_group, leave_process_group
from polyseme.training.loop.initial import TrainableModel, characters_of, new_model, warm_start
from polyseme.training.loop.trainer import StepReport, Trainer
from polyseme.training.settings import TeacherSettings, TrainSettings, change, check_precision, choose_preset, preset
from polyseme.training.shards.prepare import PrepareProgress, PrepareSettings, prepare
from polyseme.training.shards.store import Shards

__all__ = ["CheckpointSaved", "Evaluation", "Event", "TrainFinished", "TrainJob", "TrainPlan", "train"]

CURVE_POINTS = 200
HELD_OUT = "held-out"
WARM_START_RATE = 0.25  # of the usual learning rate, for a model that is trained already
LENGTHS = ("training.steps", "training.epochs")  # settings that may change when a run is resumed
SAVED = ("curve", "losses", "evaluations", "evaluated", "best")  # attributes of a run in its checkpoint


def train(job: TrainJob, stop: Callable[[], bool] = lambda: False) -> Generator[Event, None, None]:
    """Train a model, yielding events; closing the generator early writes a checkpoint.

    Files are always complete: a run that is killed resumes from its last checkpoint, and computes exactly what it would
    have computed without the interruption.

    Args:
        job: The training job.
        stop: Called after each step; where it returns True, a checkpoint is written and the run ends without
            `TrainFinished`. Several processes stop at the same step, even if only one of them gets the signal.
    """
    check_job(job)
    processes, device = join_process_group(job.device)
    try:
        with lock_outputs(job) if processes.is_leader else nullcontext():
            processes.wait()
            yield from _Run(_resumable(job), processes, device, stop).events()
    except (RuntimeError, MemoryError) as error:
        if not isinstance(error, (torch.OutOfMemoryError, MemoryError)) and "can't allocate memory" not in str(error):
            raise
        raise TrainingError(
            f"{device} does not have enough memory for this run; choose a smaller --preset, or halve training.rows or "
            "training.window; what was saved is still there"
        ) from error
    finally:
        leave_process_group()


def _resumable(job: TrainJob) -> TrainJob:
    """The same job; one that is to resume where nothing was begun starts from the beginning, with a warning."""
    if not job.resume or (job.run / "last").is_dir():
        return job
    warnings.warn(f"there is no unfinished run of {job.output}; starting from the beginning", stacklevel=3)
    return replace(job, resume=False)


class _Run:
    """State of one training run: settings, trainer, learning curve and evaluations."""

    def __init__(self, job: TrainJob, processes: ProcessGroup, device: torch.device, stop: Callable[[], bool]) -> None:
        self.job, self.processes, self.device, self.stop = job, processes, device, stop
        self.curve: list[tuple[int, float]] = []  # tokens, mean loss
        self.losses: list[StepReport | float] = []  # since the last point of the curve
        self.evaluations: list[dict[str, Any]] = []
        self.evaluated = 0  # the step of the last evaluation
        self.best: float | None = None

    def events(self) -> Iterator[Event]:
        # Refuse bad settings before the text is read; the preset may depend on the text and is chosen after it.
        self.initial = open_model(self.job.start_from) if self.job.start_from else None
        data = self._settings_of(self.job.preset or "tiny").data
        self.others = {name: _load_documents(name, raw=not data.tokenized) for name in self.job.other_texts}
        yield from self._prepare(data)
        self.shards = Shards.open(self.job.run / "text")
        requested = self._settings()
        self.model = self._make_model(requested)
        kind = "adaptive" if isinstance(self.model.head, AdaptiveSoftmax) else requested.loss.kind
        self.settings = replace(requested, model=self.model.bilm.config, loss=replace(requested.loss, kind=kind))
        loop = self.settings.training
        taught = {"teacher": self.job.teacher, "lessons": self.settings.teacher} if self.settings.teacher else {}
        self.trainer = Trainer(self.model, self.shards, self.settings.loss, loop, self.device, self.processes, **taught)
        self._start(requested)
        yield self._plan()
        if self.job.start_from and not self.trainer.step:
            yield from self._evaluate()
        if (yield from self._loop()):
            yield TrainFinished(self.job.output, self.job.run, self.trainer.step, self.best)

    def _prepare(self, settings: PrepareSettings) -> Iterator[PrepareProgress]:
        if self.processes.is_leader:
            yield from self._prepare_shards(settings)
        self.processes.wait()

    def _prepare_shards(self, settings: PrepareSettings) -> Iterator[PrepareProgress]:
        sources = self.job.sources()
        if self.job.resume and "-" in sources:
            return  # standard input cannot be read twice, and its shards exist
        for report in prepare(sources, self.job.run / "text", settings, self.job.workers):
            if self.job.resume and not report.reused:
                raise InputError("the text has changed since the run started; start over with --overwrite")
            yield report

    def _settings(self) -> TrainSettings:
        job = self.job
        settings = self._settings_of(job.preset or choose_preset(self.shards.num_words, self.device.type))
        if job.resume:
            saved = read_json(job.run / "settings.json")
            requested = json.loads(json.dumps(dataclasses.asdict(settings)))
            if difference := _difference(saved, requested):
                raise ConfigError(
                    f"the run was started with other settings: {difference}; give the same settings (only "
                    "training.steps and training.epochs may change), or start over with --overwrite"
                )
        return settings

    def _settings_of(self, size: str) -> TrainSettings:
        settings = preset(size, self.device.type, self.job.recipe)
        if self.job.teacher:
            name = f"{self.job.teacher.name} {self.job.teacher.fingerprint()[:12]}"
            settings = replace(settings, teacher=TeacherSettings(name))
        elif self.job.changes.get("teacher"):
            raise ConfigError("settings of teacher need a teacher; name a model with --teacher")
        if self.initial is None:
            return check_precision(change(settings, self.job.changes), self.device.type)
        loop = replace(settings.training, learning_rate=settings.training.learning_rate * WARM_START_RATE)
        settings = replace(settings, model=self.initial.config, characters=characters_of(self.initial), training=loop)
        changed = change(settings, self.job.changes)
        for part in ("characters", "model"):
            if getattr(changed, part) != getattr(settings, part):
                raise ConfigError(f"--from keeps the architecture of the model; leave out the settings of {part}")
        return check_precision(changed, self.device.type)

    def _make_model(self, settings: TrainSettings) -> TrainableModel:
        if self.initial and self.job.start_from:
            return warm_start(self.initial, self.job.start_from, settings, self.shards, self.job.extend)
        return new_model(settings, self.shards)

    def _start(self, requested: TrainSettings) -> None:
        """Restore the checkpoint, or discard it and save the settings; nothing can be refused from here on."""
        if self.job.resume:
            self._restore(load_checkpoint(self.job.run / "last"))
            self._check_length()
        elif self.processes.is_leader:
            shutil.rmtree(self.job.run / "last", ignore_errors=True)
        if self.processes.is_leader:
            with atomic_write(self.job.run / "settings.json") as file:
                file.write(json.dumps(dataclasses.asdict(requested), indent=1).encode())

    def _check_length(self) -> None:
        """Refuse to resume a run that is to be shorter than it already is."""
        done, steps = self.trainer.step, self.trainer.steps
        if done > steps:
            raise ConfigError(
                f"the run has taken {done:,} steps, so it cannot end after {steps:,}; give training.steps={done} to "
                "end it now, or more to go on"
            )

    def _plan(self) -> TrainPlan:
        model, shards = self.model, self.shards
        unknown = int(model.counts[model.vocabulary.id(model.vocabulary.unk)])
        return TrainPlan(
            self.settings,
            self.trainer.steps,
            self.trainer.step,
            shards.num_tokens,
            shards.held_out.tokens,
            len(model.vocabulary),
            unknown / max(1, shards.num_words),
            sum(parameter.numel() for parameter in model.bilm.parameters()),
            sum(parameter.numel() for parameter in model.head.parameters()),
            str(self.device),
            self.processes.count,
        )

    def _loop(self) -> Generator[Event, None, bool]:
        """Take the remaining steps; returns whether the run is complete."""
        trainer, loop = self.trainer, self.settings.training
        saved = time.monotonic()
        try:
            if self._due():  # the run was interrupted between this step and its evaluation
                yield from self._evaluate()
                yield self._save()
            while trainer.step < trainer.steps:
                report = trainer.take_step()
                self._record_loss(report)
                yield report
                late = time.monotonic() - saved > loop.save_seconds
                stopping, saving = self.processes.any([self.stop(), late], self.device)
                if self._due() and not stopping:
                    yield from self._evaluate()
                    saving = True
                if saving or stopping:
                    yield self._save()
                    saved = time.monotonic()
                if stopping:
                    return False
        except GeneratorExit:
            if self.processes.count == 1:
                self._save()
            raise
        except TrainingError as error:
            raise TrainingError(f"{error}; {self._last_good()}") from error
        return True

    def _record_loss(self, report: StepReport) -> None:
        """Add to the learning curve, whose points are mean losses over several steps."""
        self.losses.append(report)
        if report.step % max(1, report.steps // CURVE_POINTS) == 0:
            losses = self._read_losses()
            self.curve.append((report.tokens, sum(losses) / len(losses)))
            self.losses.clear()

    def _read_losses(self) -> list[float]:
        return [each.loss if isinstance(each, StepReport) else each for each in self.losses]

    def _due(self) -> bool:
        """Whether an evaluation on the held-out text is due."""
        step, steps = self.trainer.step, self.trainer.steps
        every = max(1, -(-steps // self.settings.training.evaluations))
        return step > self.evaluated and (step % every == 0 or step == steps)

    def _evaluate(self) -> Iterator[Evaluation]:
        """Evaluate on the held-out text, and save the model if it is the best so far."""
        if self.processes.is_leader:
            step = self.trainer.step
            self.evaluations = [
                each for each in self.evaluations if each["step"] != step
            ]  # drop one that was interrupted
            if some := list(self.shards.held_out_documents(self.settings.training.held_out_tokens)):
                yield self._measure(HELD_OUT, some, self.model.language_model())
            elif step:
                self._save_model(*self.model.stored())
            if not step:
                yield from self._evaluate_others(self.model.language_model())
            elif step == self.trainer.steps:
                yield from self._evaluate_saved()
        self.evaluated = self.trainer.step
        self.processes.wait()

    def _evaluate_saved(self) -> Iterator[Evaluation]:
        """Evaluate the saved model, which may be an earlier one, on all held-out text, and record that beside it."""
        place = self.job.output
        if self.best is None and any(each["text"] == HELD_OUT and each["step"] for each in self.evaluations):
            raise TrainingError(
                "held-out perplexity was never finite, so no model was saved; lower training.learning_rate"
            )
        saved = LanguageModel.load(place, device=str(self.device))
        if self.shards.held_out.tokens > self.settings.training.held_out_tokens:
            yield self._measure(f"all {HELD_OUT}", list(self.shards.held_out_documents()), saved)
        yield from self._evaluate_others(saved)
        self._save_model(open_model(place), open_softmax(place))

    def _evaluate_others(self, model: LanguageModel) -> Iterator[Evaluation]:
        for name, documents in self.others.items():
            yield self._measure(name, documents, model)

    def _measure(self, text: str, documents: Sequence[Any], model: LanguageModel) -> Evaluation:
        fresh, carried = (perplexity(model, documents, carried=carried) for carried in (False, True))
        step = self.trainer.step
        best = text == HELD_OUT and step > 0 and math.isfinite(fresh.both) and fresh.both <= (self.best or math.inf)
        evaluation = Evaluation(step, text, fresh, carried, best)
        self.evaluations.append(_as_json(evaluation, self.trainer))
        if best:
            self.best = fresh.both
            self._save_model(*self.model.stored())
        return evaluation

    def _save_model(self, model: StoredModel, head: StoredSoftmax) -> None:
        record = {"settings": dataclasses.asdict(self.settings), "curve": self.curve, "evaluations": self.evaluations}
        extras = {"training.json": (json.dumps(record, indent=1) + "\n").encode()}
        if picture := draw_curves(self.curve, self.evaluations, self.settings.loss.kind):
            extras["training.png"] = picture
        native.save(model, self.job.output, overwrite=True, softmax=head, extras=extras)

    def _save(self) -> CheckpointSaved:
        tensors, facts = self.trainer.checkpoint()
        folder = self.job.run / "last"
        if self.processes.is_leader:
            progress = {name: getattr(self, name) for name in SAVED} | {"losses": self._read_losses()}
            save_checkpoint(TrainingCheckpoint(tensors, {**facts, **progress}), folder)
        return CheckpointSaved(folder, self.trainer.step)

    def _restore(self, checkpoint: TrainingCheckpoint) -> None:
        self.trainer.restore(checkpoint)
        for name in SAVED:
            setattr(self, name, checkpoint.facts[name])

    def _last_good(self) -> str:
        folder = self.job.run / "last"
        return f"the last good checkpoint is {folder}" if folder.is_dir() else "no checkpoint has been written yet"


def _load_documents(path: str, raw: bool) -> list[Document | list[list[str]]]:
    """Load a text into memory, since it is evaluated more than once."""
    found = []
    for document in read_documents(path, raw):
        sentences, characters = document if isinstance(document, Document) else (document, None)
        found.append(Document(list(sentences), characters) if characters is not None else list(sentences))
    if not any(found):
        raise InputError(f"{path}: there are no words to evaluate on; give a file with text")
    return found


def _as_json(evaluation: Evaluation, trainer: Trainer) -> dict[str, Any]:
    measured = {name: getattr(evaluation, name) for name in ("fresh", "carried")}
    tokens = trainer.step * trainer.loop.rows * trainer.loop.window
    return {"step": evaluation.step, "tokens": tokens, "text": evaluation.text} | {
        name: dataclasses.asdict(value) for name, value in measured.items()
    }


def _difference(saved: Mapping[str, Any], requested: Mapping[str, Any], where: str = "") -> str | None:
    for key in {**saved, **requested}:
        one, other = saved.get(key), requested.get(key)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            if found := _difference(one, other, f"{where}{key}."):
                return found
        elif one != other and f"{where}{key}" not in LENGTHS:
            return f"{where}{key} was {one!r} and is now {other!r}"
    return None
