"""Groups of options, written once as dataclasses, become options of each command that takes them."""

import inspect
from dataclasses import fields
from pathlib import Path

import pytest
from typer.main import get_command

from polyseme.cli import app
from polyseme.cli.options import FitOptions, PlotOptions, expand_options


def test_a_group_becomes_one_parameter_per_field_and_comes_back_whole():
    seen = []

    @expand_options
    def command(train: Path, options: FitOptions, *, kind: str = "lstm", result: PlotOptions) -> None:
        seen.extend([train, options, kind, result])

    parameters = inspect.signature(command).parameters
    names = [field.name for group in (FitOptions, PlotOptions) for field in fields(group)]
    assert {*parameters} == {"train", "kind", *names}
    assert parameters["output"].default is inspect.Parameter.empty
    values = {name: parameter.default for name, parameter in parameters.items()}
    command(**{**values, "train": Path("a"), "output": Path("b")})
    assert seen == [Path("a"), FitOptions(Path("b")), "lstm", PlotOptions()]


@pytest.mark.parametrize("task", ["tag", "classify", "pairs"])
def test_every_task_fits_with_the_same_options(task):
    named = {parameter.name for parameter in get_command(app).commands[task].commands["fit"].params}
    assert {field.name for group in (FitOptions, PlotOptions) for field in fields(group)} <= named
