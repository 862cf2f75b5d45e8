"""``polyseme report``: common claims about contextual vectors, tested on your model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from polyseme.cli.options import DeviceOption
from polyseme.cli.progress import note, working
from polyseme.files import locked_output

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
    with locked_output(report.parts):
        try:
            _measure(report)
        except KeyboardInterrupt:
            typer.echo("finished parts are kept; the same command continues from here", err=True)
            raise
        report.write()
    typer.echo(str(report.page))


def _measure(report: Report) -> None:
    steps, missing = report.steps(), dict[str, dict[str, None]]()
    while True:
        with working(report.upcoming):
            step = next(steps, None)
        if step is None:
            break
        _show(step)
        if step.missing:
            missing.setdefault(step.missing, {})[step.part] = None
    for why, parts in missing.items():
        note(f"not done: {', '.join(parts)}. {why}")


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
    note(f"[{step.number}/{step.total}] {step.model}, {step.part}: {'not done' if step.missing else done}")
