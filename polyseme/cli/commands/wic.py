"""``polyseme wic``: whether a word means the same in two sentences (word in context)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from polyseme.cli.options import DeviceOption, LayerOption, PlotOptions, ShippedArgument, expand_options
from polyseme.cli.output import decimals, open_embedder, percent, show_table
from polyseme.cli.progress import working

if TYPE_CHECKING:
    from polyseme.analysis.senses.wic import WicResult


@expand_options
def wic(
    train: Annotated[Path, Option(help="train.data.txt; the answers are in train.gold.txt beside it.")],
    test: Annotated[Path, Option(help="dev.data.txt, to measure on.")],
    *,
    model: ShippedArgument = None,
    layer: LayerOption = "all",
    limit: Annotated[int | None, Option(min=1, help="Use at most this many pairs of each file.")] = None,
    output: PlotOptions,
    device: DeviceOption = "cpu",
) -> None:
    """Decide whether a word means the same in two sentences.

    Word in context (WiC): the cosine of the word's two vectors is compared with a threshold that is tuned on the
    training pairs. Accuracy on the test pairs has its 95 % interval (Wilson's).
    """
    from polyseme.analysis.senses.wic import draw_wic, read_wic
    from polyseme.analysis.senses.wic import wic as run
    from polyseme.embedding.layers import parse_choice

    output.check()
    choice = parse_choice(layer)
    training, testing = (read_wic(path)[:limit] for path in (train, test))
    embedder = open_embedder(model, device)
    with working("embedding"):
        result = run(embedder, training, testing, choice)
    output.present({**vars(result), "files": [train, test], "limit": limit}, lambda: _show(result, limit))
    output.draw(lambda: draw_wic(result))


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
