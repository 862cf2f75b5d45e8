"""``polyseme report``: common claims about contextual vectors, tested on your model."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from polyseme.cli.options import DeviceOption
from polyseme.cli.output import working

if TYPE_CHECKING:
    from polyseme.report.measure.model_under_test import ModelUnderTest
    from polyseme.report.run import Report, ReportStep


def report(
    models: Annotated[
        list[str] | None, Argument(metavar="[MODEL]...", help="One or several. [default: english]")
    ] = None,
    output: Annotated[Path, Option("--output", "-o", help="Folder for the page and finished parts.")] = Path("report"),
    data: Annotated[
        str | None, Option(metavar="DIR", help="Folder of data sets: pos-ud-ewt, ner-wnut17, wsd, ...")
    ] = None,
    tasks: Annotated[Path | None, Option(metavar="FILE", help="Results that benchmarks/tasks.py stored.")] = None,
    only: Annotated[
        list[str] | None, Option(metavar="CLAIM", help="Only this claim, 1 to 11, or tour; repeatable.")
    ] = None,
    full: Annotated[bool, Option(help="Use every data set in full, which takes hours.")] = False,
    device: DeviceOption = "cpu",
    quiet: Annotated[bool, Option("--quiet", "-q", help="Print no progress.")] = False,
) -> None:
    """Test eleven claims about contextual vectors on a model.

    Writes a page with the results. The labelled text comes with polyseme; --data and --tasks take more. Finished parts
    are kept: after an interruption the same command continues.
    """
    from polyseme.formats import SHIPPED_MODEL
    from polyseme.report.run import Report, ReportSettings

    settings = ReportSettings(output, data, tasks, tuple(only or ()), full)
    settings.check()
    opened = [_open(model, device) for model in _distinct(models or [SHIPPED_MODEL])]
    report = Report(opened, settings)
    try:
        _measure(report, quiet)
    except KeyboardInterrupt:
        typer.echo("finished parts are kept; the same command continues from here", err=True)
        raise
    page = report.write()[0]
    typer.echo(str(page))


def _measure(report: Report, quiet: bool) -> None:
    steps, missing = report.steps(), dict[str, dict[str, None]]()
    while True:
        with nullcontext() if quiet else announced(report.upcoming):
            step = next(steps, None)
        if step is None:
            break
        if quiet:
            continue
        _show(step)
        if step.missing:
            missing.setdefault(step.missing, {})[step.part] = None
    for why, parts in missing.items():
        typer.echo(f"not done: {', '.join(parts)}. {why}", err=True)


@contextmanager
def announced(what: str) -> Iterator[None]:
    """Say what is being done: a spinner on a terminal, a line to stderr elsewhere."""
    if not sys.stderr.isatty():
        typer.echo(f"{what} ...", err=True)
    with working(what):
        yield


def _distinct(models: list[str]) -> list[str]:
    """The models without duplicates, in the order given."""
    from polyseme.errors import ConfigError
    from polyseme.formats import resolve_model_path

    if not all(model.strip() for model in models):
        raise ConfigError("MODEL is empty; give the name of a model or its path")
    by_place: dict[Path, str] = {}
    for model in models:
        by_place.setdefault(Path(resolve_model_path(model)).resolve(), model)
    return list(by_place.values())


def _open(model: str, device: str) -> ModelUnderTest:
    from polyseme.loading import load
    from polyseme.report.measure.model_under_test import ModelUnderTest

    with working(f"opening {model}"):
        return ModelUnderTest(load(model, device=device), model, device)


def _show(step: ReportStep) -> None:
    done = "from an earlier run" if step.stored else f"{step.seconds:,.0f} s"
    typer.echo(
        f"[{step.number}/{step.total}] {step.model}, {step.part}: {'not done' if step.missing else done}", err=True
    )
