"""``polyseme wic``: the same sense or not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.cli.output import (
    DeviceOption,
    JsonOption,
    LayerOption,
    PlotOption,
    ShippedArgument,
    check_outputs,
    decimals,
    open_embedder,
    percent,
    show_table,
    working,
    write_json,
)

if TYPE_CHECKING:
    from polyseme.analysis.senses.wic import WicResult


def wic(
    train: Annotated[Path, typer.Option(help="train.data.txt; the answers are in train.gold.txt beside it.")],
    test: Annotated[Path, typer.Option(help="dev.data.txt, to measure on.")],
    model: ShippedArgument = None,
    layer: LayerOption = "all",
    limit: Annotated[int | None, typer.Option(min=1, help="Use only the first so many pairs of each file.")] = None,
    json: JsonOption = None,
    plot: PlotOption = None,
    device: DeviceOption = "cpu",
) -> None:
    """Word in context: the cosine of a word's vectors in two sentences says whether it means the same.

    The threshold is tuned in training; accuracy on the test has its 95 % interval (Wilson's).
    """
    from polyseme.analysis.senses.wic import draw_wic, read_wic
    from polyseme.analysis.senses.wic import wic as run
    from polyseme.embedding.layers import parse_choice
    from polyseme.plots import save_figure

    check_outputs(json, plot)
    choice = parse_choice(layer)
    tuned, asked = (read_wic(path)[:limit] for path in (train, test))
    embedder = open_embedder(model, device)
    with working("embedding"):
        result = run(embedder, tuned, asked, choice)
    if json:
        write_json(json, {**vars(result), "files": [train, test], "limit": limit})
    if json != "-":
        _show(result, limit)
    if plot:
        save_figure(draw_wic(result), plot)


def _show(result: WicResult, limit: int | None) -> None:
    rows = [
        (
            str(row.layer),
            percent(row.accuracy),
            f"{percent(row.low)} to {percent(row.high)}",
            percent(row.train_accuracy),
            decimals(row.threshold),
        )
        for row in result.layers
    ]
    columns = ("layer", "accuracy", "95 % interval", "in training", "threshold")
    show_table(f"{result.model}: word in context, % of {result.test:,} pairs", columns, rows)
    part = f" (the first {limit:,} of each file)" if limit else ""
    typer.echo(f"thresholds are from {result.train:,} pairs{part}; chance is {percent(result.chance)}")
