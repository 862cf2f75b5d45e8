"""``polyseme drift``: which words changed their company between two corpora."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.cli.corpus_source import RawOption, TextFiles, shown
from polyseme.cli.output import (
    DeviceOption,
    JsonOption,
    PlotOption,
    SeedOption,
    ShippedOption,
    check_outputs,
    decimals,
    open_embedder,
    show_table,
    working,
    write_json,
)

if TYPE_CHECKING:
    from polyseme.corpus.drift import Drift


def drift(
    first: Annotated[str, typer.Argument(help="A corpus, a sentence a line: a file, folder or pattern.")],
    second: Annotated[str, typer.Argument(help="Another, of another time or field.")],
    model: ShippedOption = None,
    layer: Annotated[str, typer.Option(help="A number, top or average.")] = "top",
    word: Annotated[
        list[str] | None,
        typer.Option(
            help="A word to compare; may be given several times. [default: what is frequent in both]",
            show_default=False,
        ),
    ] = None,
    most: Annotated[int, typer.Option(help="Compare so many words.")] = 500,
    skip: Annotated[int, typer.Option(min=0, help="Leave out so many of the most frequent words.")] = 100,
    least: Annotated[int, typer.Option(help="How often a word must stand in each.")] = 20,
    uses: Annotated[int, typer.Option(help="Uses of each word to sample from each.")] = 30,
    measure: Annotated[
        str, typer.Option(help="prototype (distance of the averages) or pairwise (of pairs).")
    ] = "prototype",
    top: Annotated[int, typer.Option(min=1, help="Show so many words.")] = 10,
    raw: RawOption = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many sentences of each corpus.")] = None,
    seed: SeedOption = 0,
    json: JsonOption = None,
    plot: PlotOption = None,
    device: DeviceOption = "cpu",
) -> None:
    """Set two corpora side by side, of two periods or two fields: which words changed their company most?

    The change is what a word's uses differ between the two beyond what they differ when shuffled together and dealt
    out again; p is how often chance alone would give as much.
    """
    from polyseme.corpus.drift import DriftSettings, compare_corpora, draw_drift
    from polyseme.embedding.layers import parse_choice
    from polyseme.plots import save_figure

    settings = DriftSettings(tuple(word or ()), most, skip, least, uses, measure, seed=seed)
    check_outputs(json, plot)
    choice = parse_choice(layer)
    one, other = TextFiles([first], raw, limit), TextFiles([second], raw, limit)
    for text in (one, other):
        text.check_twice()
    encoder = open_embedder(model, device)
    with working("comparing"):
        result = compare_corpora(encoder, one, other, choice, settings)
    if json:
        write_json(json, result)
    if plot:
        save_figure(draw_drift(result, top), plot)
    if json != "-":
        _show(result, (first, second), top)


def _show(result: Drift, names: tuple[str, str], top: int) -> None:
    columns = ("", "change", "distance", "by chance", "p", *(f"uses {number}" for number in (1, 2)))
    rows = [
        [
            change.word,
            *(decimals(value) for value in (change.change, change.distance, change.by_chance, change.p)),
            *(f"{count:,}" for count in change.counts),
        ]
        for change in result.changes[:top]
    ]
    title = f"1: {names[0]}, 2: {names[1]}; {result.model}, layer {result.layer}, {result.measure}"
    show_table(title, columns, rows)
    typer.echo(f"the word in the middle of {len(result.changes):,} changed by {decimals(result.typical)}")
    for change in result.changes[:top]:
        lines = [(f"{n}: {shown(use)}",) for n, uses in enumerate(change.examples, start=1) for use in uses]
        show_table("", (f"\n{change.word}",), lines)
