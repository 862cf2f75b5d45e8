"""The description of a training job, and the checks that run before any work is done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from polyseme.embedding.encoder import Encoder
from polyseme.errors import ConfigError, OutputError
from polyseme.files import (
    check_absent,
    check_folder_name,
    check_restart,
    locked_output,
    make_folder,
    recover_folder,
)
from polyseme.formats import native
from polyseme.text.corpus import Paths, Source, expand


@dataclass(frozen=True)
class TrainJob:
    """A training job: texts, output folder, preset and settings.

    Attributes:
        texts: Files, folders, patterns, or ``-`` for standard input.
        output: The model's folder.
        preset: Model size; None chooses one that suits the text and the device.
        recipe: ``modern``, or ``bilm-tf`` for the published recipe.
        changes: Settings that override the preset, as nested tables.
        device: Device to train on: ``cpu``, ``cuda``, ...
        resume: Continue an interrupted run.
        overwrite: Start over, and replace existing output.
        start_from: A model to warm-start from, instead of random weights.
        extend: With ``start_from``: add the words of the new text to the vocabulary.
        teacher: A model whose word vectors the run learns from as well (knowledge distillation).
        other_texts: Further texts to evaluate on, for instance of the old domain.
        workers: Processes that prepare the text; None is one per core.
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
    teacher: Encoder | None = None
    other_texts: Sequence[str] = ()
    workers: int | None = None

    @property
    def run(self) -> Path:
        """The folder beside the model that holds what resuming needs."""
        return self.output.with_name(f"{self.output.name}.run")

    def sources(self) -> list[Source]:
        """The text files, without those that the run itself has written."""
        ours = {self.run.absolute(), self.output.absolute()}
        return [
            source
            for source in expand(self.texts)
            if not (isinstance(source, Path) and ours.intersection(source.absolute().parents))
        ]


def check_job(job: TrainJob) -> None:
    """Refuse a job whose options contradict each other."""
    check_folder_name(job.output)
    check_restart(job.resume, job.overwrite)
    if job.extend and not job.start_from:
        raise ConfigError("--extend-vocabulary adds words to the vocabulary of a model; name the model with --from")
    if job.start_from and job.start_from.resolve() == job.output.resolve():
        raise ConfigError(
            f"{job.output} is the model to start from and cannot be the output as well; give another --output"
        )
    if "-" in job.other_texts:
        raise ConfigError(
            "--also-evaluate cannot read standard input, because the text is read more than once; give a file"
        )


@contextmanager
def lock_outputs(job: TrainJob) -> Iterator[None]:
    """Lock the output of a run, and refuse to overwrite existing output or to resume what does not exist."""
    make_folder(job.output.parent)
    with locked_output(job.output):
        make_folder(job.run)
        try:
            _check_output(job)
            yield
        finally:
            with suppress(OSError):
                job.run.rmdir()  # succeeds only on an empty folder, when the job was refused


def _check_output(job: TrainJob) -> None:
    last = job.run / "last"
    recover_folder(last)
    if not job.overwrite and not (job.resume and last.is_dir()):
        if last.is_dir():
            raise OutputError(
                f"{job.run} holds an earlier run; continue it with --resume, or discard it with --overwrite"
            )
        check_absent(job.output, overwrite=False)
    native.check_replaceable(job.output)
