"""What the commands that fit share: settings as typed, a live line with the dev score, the layers' learned weights."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from polyseme.cli.output import decimals, percent, show_table, size, write_json
from polyseme.errors import ConfigError, OutputError, PolysemeError
from polyseme.files import check_writable, try_folder

if TYPE_CHECKING:
    from polyseme.tasks.fitting.loop import FitReport
    from polyseme.tasks.model import TaskModel

SHIPPED = "english"
NOTHING = "none"
_EVERY = 0.1  # seconds between two drawings


def begin(output: Path, json: str | None, plot: Path | None, resume: bool, overwrite: bool) -> Path:
    """Refuse what can be refused before hours of work; give the folder where every epoch is saved."""
    from polyseme.plots import check_picture
    from polyseme.tasks.folder import check_replaceable

    if resume and overwrite:
        raise ConfigError("--resume goes on with a run and --overwrite forgets it; say one of them")
    if plot:
        check_picture(plot)
    if json and json != "-":
        check_writable(Path(json))
    checkpoint = output.with_name(f"{output.name}.fitting")
    if resume and output.exists() and not checkpoint.exists():
        raise OutputError(f"{output} is there and no run of it was interrupted, so there is nothing to go on with")
    check_replaceable(output.resolve(), overwrite)
    if not output.resolve().parent.is_dir():
        raise OutputError(f"{output} cannot be written: there is no folder {output.parent}")
    try_folder(output.resolve().parent)
    if overwrite:
        forget(checkpoint)
    if checkpoint.exists() and not resume:
        raise OutputError(f"{checkpoint} holds an interrupted run; say --resume to go on, or --overwrite to forget it")
    if resume and not checkpoint.exists():
        typer.echo(f"no interrupted run of {output} was found, so it begins anew", err=True)
    return checkpoint


def encoders(given: Sequence[str] | None) -> list[str]:
    """What `--encoder` means: the model that ships where it is left out, and nothing for ``none``."""
    if not given:
        return [SHIPPED]
    if len(given) > 1 and NOTHING in given:
        raise ConfigError(f"--encoder {NOTHING} says that there are no contextual vectors; leave it or the others out")
    return [] if NOTHING in given else list(given)


def fit_table(model: type[TaskModel[Any, Any]], seed: int) -> tuple[type[Any], dict[str, Any]]:
    """The table of settings of a model's fit, for `checked_settings`."""
    return type(model.default_fit), {**dataclasses.asdict(model.default_fit), "seed": seed}


def checked_settings(typed: Iterable[str], tables: Mapping[str, tuple[type[Any], dict[str, Any]]]) -> list[Any]:
    """For each table of settings its kind, with defaults, what the options say, and what --set says on top."""
    from polyseme.model.config import from_dict
    from polyseme.tasks.fitting.settings import merged, parse_settings

    changes = parse_settings(typed, list(tables))
    return [
        from_dict(kind, merged(merged(dataclasses.asdict(kind()), options), changes[name]), name)
        for name, (kind, options) in tables.items()
    ]


def watch(model: TaskModel[Any, Any], reports: Iterator[FitReport], checkpoint: Path) -> None:
    """Run a fit to its end: a line that moves on a terminal, a line an epoch anywhere."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    begun = drawn = time.monotonic()
    try:
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task("computing vectors ...", total=None)
            for report in reports:
                for remark in model.cache_.remarks:
                    typer.echo(remark, err=True)
                model.cache_.remarks.clear()
                now = time.monotonic()
                if report.step == report.steps:
                    typer.echo(f"{_line(report)}, {now - begun:,.0f} s", err=True)
                elif now - drawn > _EVERY:
                    drawn = now
                    bar.update(task, description=_line(report))
    except (KeyboardInterrupt, PolysemeError, OSError, MemoryError) as error:
        if isinstance(error, KeyboardInterrupt):
            kept = "the same command with --resume goes on after the last epoch"
            typer.echo(f"interrupted: {kept if checkpoint.exists() else 'no epoch was finished yet'}", err=True)
            raise SystemExit(130) from None
        raise


def finish(model: TaskModel[Any, Any], output: Path, checkpoint: Path, json: str | None, plot: Path | None) -> None:
    """Say what was learned, draw it if asked, and take the checkpoint away."""
    forget(checkpoint)
    mixes = model.mixes()
    rows = [
        (f"{place}: {name}", *(decimals(weight) for weight in mix.weights), decimals(mix.gamma))
        for place, some in mixes.items()
        for name, mix in zip(model.encoder_names, some, strict=True)
    ]
    if json:
        learned = {
            place: [{"encoder": name, **vars(mix)} for name, mix in zip(model.encoder_names, some, strict=True)]
            for place, some in mixes.items()
        }
        best = {"score": model.best_score_, "epoch": model.best_epoch_}
        write_json(json, {"model": output, "best": best, "mixes": learned})
    if json != "-":
        for name in dict.fromkeys(model.encoder_names):
            own = [row for row in rows if row[0].endswith(f": {name}")]
            layers = [f"s_{number}" for number in range(len(own[0]) - 2)]
            show_table("the layers that the task likes: shares s, common factor γ", ("place", *layers, "γ"), own)
        if model.best_score_ is not None:
            typer.echo(f"kept: epoch {model.best_epoch_}, dev {percent(model.best_score_)}")
        total = sum(file.stat().st_size for file in output.rglob("*") if file.is_file())
        typer.echo(f"{output} written ({size(total)})")
    if plot:
        _draw(mixes, model.encoder_names, plot)


def forget(checkpoint: Path) -> None:
    """Take away what a run has saved on its way."""
    from polyseme.tasks.fitting.checkpoint import FitCheckpoint

    FitCheckpoint(checkpoint, {}).remove()


def _line(report: FitReport) -> str:
    where = f"epoch {report.epoch}"
    if report.step < report.steps:
        where += f", step {report.step:,} of {report.steps:,}"
    score = f", dev {report.score.name} {percent(report.score.value)}" if report.score else ""
    best = f" (best {percent(report.best)} in epoch {report.best_epoch})" if report.best is not None else ""
    return f"{where}: loss {decimals(report.loss)}{score}{best}"


def _draw(mixes: Mapping[str, Sequence[Any]], names: Sequence[str], plot: Path) -> None:
    from polyseme.analysis.layers.mix_plot import draw_mixes
    from polyseme.plots import save_figure

    series = {f"{name}, {place}": mix for place, some in mixes.items() for name, mix in zip(names, some, strict=True)}
    if not series:
        raise ConfigError("there are no layers to draw: this model has no contextual vectors; leave --plot out")
    save_figure(draw_mixes(series), plot)
