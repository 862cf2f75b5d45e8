"""``polyseme determinism``: whether the same sentence always gets the same vectors."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.cli.corpora import RawOption, Text
from polyseme.cli.output import (
    DeviceOption,
    JsonOption,
    SeedOption,
    ShippedArgument,
    check_outputs,
    open_embedder,
    show_table,
    working,
    write_json,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from polyseme.analysis.determinism import Check, DeterminismResult


def determinism(
    model: ShippedArgument = None,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TEXT]", help="A sentence a line. [default: sentences that ship]", show_default=False),
    ] = None,
    raw: RawOption = False,
    limit: Annotated[int, typer.Option(min=1, help="Use only the first so many sentences.")] = 100,
    seed: SeedOption = 0,
    json: JsonOption = None,
    device: DeviceOption = "cpu",
) -> None:
    """The largest difference over repeats, order, batch mates, processes, device and precision, for each layer."""
    from polyseme.analysis.determinism import determinism as run

    check_outputs(json)
    sentences = list(islice(_sentences(inputs, raw), limit))
    embedder = open_embedder(model, device)
    with working("embedding"):
        result = run(embedder, sentences, seed)
    if json:
        write_json(json, result)
    if json != "-":
        _show(result)


def _sentences(inputs: list[str] | None, raw: bool) -> Iterable[Sequence[str]]:
    from polyseme.analysis.determinism import ODD_SENTENCES
    from polyseme.corpus.uses import bundled_sentences

    return Text(inputs, raw) if inputs else [*ODD_SENTENCES, *bundled_sentences()]


def _show(result: DeterminismResult) -> None:
    layers = [f"layer {number}" for number in range(len(result.largest))]
    rows = [(check.name, *_cells(check, len(layers))) for check in result.checks]
    scale = ("(largest number)", *(f"{number:.3g}" for number in result.largest))
    title = f"{result.model}: largest difference in {result.words:,} words of {result.sentences:,} sentences"
    show_table(title, ("", *layers), [*rows, scale])
    for check in result.checks:
        if check.reason:
            typer.echo(f"{check.name}: not tried, {check.reason}")


def _cells(check: Check, layers: int) -> list[str]:
    if check.reason:
        return ["–"] * layers
    return ["0" if difference == 0 else f"{difference:.1e}" for difference in check.differences]
