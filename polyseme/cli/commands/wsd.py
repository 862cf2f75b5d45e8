"""``polyseme wsd``: word-sense disambiguation by nearest neighbour."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from polyseme.cli.options import DeviceOption, LayerOption, PlotOptions, ShippedArgument, expand_options
from polyseme.cli.output import open_embedder, percent, show_table
from polyseme.cli.progress import working

if TYPE_CHECKING:
    from polyseme.analysis.senses.wsd import WsdResult


@expand_options
def wsd(
    train: Annotated[Path, Option(help="A sense-tagged corpus: SemCor as JSON lines, or X.data.xml.")],
    test: Annotated[list[Path], Option(help="Test sets: X.data.xml, or a folder with several.")],
    inventory: Annotated[Path, Option(help="WordNet's index.sense.")],
    *,
    model: ShippedArgument = None,
    layer: LayerOption = "all",
    limit: Annotated[int | None, Option(min=1, help="Learn from only this many sentences.")] = None,
    output: PlotOptions,
    device: DeviceOption = "cpu",
) -> None:
    """Disambiguate word senses by nearest neighbour.

    F1 for each layer, measured as for context2vec and ELMo: the vectors of each sense in the tagged corpus are
    averaged; a test word takes the nearest sense of its lemma, or WordNet's first sense if the lemma was never seen.
    """
    from itertools import islice

    from polyseme.analysis.senses.sense_tagged import find_sets, read_inventory, read_tagged
    from polyseme.analysis.senses.wsd import disambiguate, draw_wsd, first_sense
    from polyseme.embedding.layers import parse_choice

    output.check()
    choice, senses = parse_choice(layer), read_inventory(inventory)
    sets = {name: list(read_tagged(path)) for name, path in find_sets(test).items()}
    first_sense(sets, senses)  # faults of the test sets are reported before hours of work
    encoder = open_embedder(model, device)
    with working("learning senses and choosing among them"):
        result = disambiguate(encoder, islice(read_tagged(train), limit), sets, senses, choice)
    output.draw(lambda: draw_wsd(result))
    output.present(result, lambda: _show(result))


def _show(result: WsdResult) -> None:
    columns = ["", *(score.name for score in result.methods[0].scores)]
    rows = [[method.name, *(percent(score.f1) for score in method.scores)] for method in result.methods]
    counts = ["instances", *(f"{score.instances:,}" for score in result.methods[0].scores)]
    show_table(f"{result.model}: F1 of word senses", columns, [*rows, counts])
    typer.echo(
        f"learned from {result.tagged:,} tagged words; {result.unseen:,} test words had a lemma never seen there"
    )
    if result.unknown:
        typer.echo(f"{result.unknown:,} more were left out: their sense keys are not in the inventory")
