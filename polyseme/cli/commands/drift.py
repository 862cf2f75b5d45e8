"""``polyseme drift``: words whose contexts differ between two corpora."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from polyseme.cli.corpus_source import TextFiles, format_use
from polyseme.cli.options import DeviceOption, PlotOptions, RawOption, SeedOption, ShippedOption, expand_options
from polyseme.cli.output import decimals, open_embedder, show_table
from polyseme.cli.progress import working

if TYPE_CHECKING:
    from polyseme.corpus.drift import Drift


@expand_options
def drift(
    first: Annotated[str, Argument(help="A corpus, one sentence per line: a file, folder or pattern.")],
    second: Annotated[str, Argument(help="Another corpus, of another time or field.")],
    *,
    model: ShippedOption = None,
    layer: Annotated[str, Option(help="A number, top or average.")] = "top",
    word: Annotated[list[str] | None, Option(help="A word to compare; repeatable. [default: frequent ones]")] = None,
    most: Annotated[int, Option(help="How many words to compare.")] = 500,
    skip: Annotated[int, Option(min=0, help="Leave out this many of the most frequent words.")] = 100,
    least: Annotated[int, Option(help="Minimum number of uses in each corpus.")] = 20,
    uses: Annotated[int, Option(help="Uses of each word to sample from each corpus.")] = 30,
    measure: Annotated[str, Option(help="prototype (distance of means) or pairwise (mean distance).")] = "prototype",
    top: Annotated[int, Option(min=1, help="How many words to show.")] = 10,
    raw: RawOption = False,
    limit: Annotated[int | None, Option(min=1, help="Read only this many sentences of each corpus.")] = None,
    seed: SeedOption = 0,
    output: PlotOptions,
    device: DeviceOption = "cpu",
) -> None:
    """Find words whose use differs between two corpora.

    The change is the distance between a word's uses in the two corpora, less the distance between two random halves of
    them (a permutation test); p is how often such halves are at least as far apart.
    """
    from polyseme.corpus.drift import DriftSettings, compare_corpora, draw_drift
    from polyseme.embedding.layers import parse_choice

    settings = DriftSettings(tuple(word or ()), most, skip, least, uses, measure, seed=seed)
    output.check()
    choice = parse_choice(layer)
    one, other = TextFiles([first], raw, limit), TextFiles([second], raw, limit)
    for text in (one, other):
        text.check_rereadable()
    encoder = open_embedder(model, device)
    with working("comparing"):
        result = compare_corpora(encoder, one, other, choice, settings)
    output.draw(lambda: draw_drift(result, top))
    output.present(result, lambda: _show(result, (first, second), top))


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
    typer.echo(f"median change of {len(result.changes):,} words: {decimals(result.typical)}")
    for change in result.changes[:top]:
        lines = [(f"{n}: {format_use(use)}",) for n, uses in enumerate(change.examples, start=1) for use in uses]
        show_table("", (f"\n{change.word}",), lines)
