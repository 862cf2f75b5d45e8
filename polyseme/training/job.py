"""What somebody wants trained, and whether that can be: asked before any work is done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from polyseme.errors import ConfigError, OutputError
from polyseme.files import locked_folder, make_folder, recover_folder
from polyseme.formats import native
from polyseme.text.corpus import Paths, Source, expand


@dataclass(frozen=True)
class TrainJob:
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

    def sources(self) -> list[Source]:
        """The files of the text; what a run writes may lie among them and is none of it."""
        ours = {self.run.absolute(), self.output.absolute()}
        return [
            source
            for source in expand(self.texts)
            if not (isinstance(source, Path) and ours.intersection(source.absolute().parents))
        ]


def check_job(job: TrainJob) -> None:
    """Refuse what contradicts itself, to write over what is there, and to go on with what is not."""
    if not job.output.name:
        raise OutputError(f"{job.output} is no name for a new folder")
    if job.resume and job.overwrite:
        raise ConfigError("--resume goes on with a run and --overwrite forgets it; say one of them")
    if job.extend and not job.start_from:
        raise ConfigError("--extend-vocabulary adds words to those of a model; say which with --from")
    if job.start_from and job.start_from.resolve() == job.output.resolve():
        raise ConfigError(f"{job.output} would be written over while it is gone on from; give another --output")
    if "-" in job.other_texts:
        raise ConfigError("--also-evaluate takes files, which can be read again; not standard input")


@contextmanager
def lock_run_folder(job: TrainJob) -> Iterator[None]:
    """Keep the folder of a run to this one; refuse to write over what is there, and to go on with what is not."""
    make_folder(job.run)
    try:
        with locked_folder(job.run, "another training run"):
            _check_output(job)
            yield
    finally:
        with suppress(OSError):
            job.run.rmdir()  # only an empty folder goes: nothing came of the job


def _check_output(job: TrainJob) -> None:
    last = job.run / "last"
    for folder in (last, job.output):
        recover_folder(folder)
    if job.resume and not last.is_dir():
        raise ConfigError(f"there is nothing to resume: {last} does not exist; leave out --resume to begin")
    if not job.resume and not job.overwrite:
        if last.is_dir():
            raise OutputError(f"{job.run} holds an earlier run; go on with it by --resume, or forget it by --overwrite")
        if job.output.exists():
            raise OutputError(f"{job.output} exists already; choose another name, or say --overwrite")
    native.check_replaceable(job.output)
