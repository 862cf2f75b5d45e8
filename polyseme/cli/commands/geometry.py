"""``polyseme geometry``: how contextual the vectors of each layer are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from polyseme.cli.corpus_source import TextFiles
from polyseme.cli.options import (
    DeviceOption,
    LayerOption,
    ModelArgument,
    PlotOptions,
    RawOption,
    SeedOption,
    expand_options,
)
from polyseme.cli.output import decimals, open_embedder, show_table
from polyseme.cli.progress import working

if TYPE_CHECKING:
    from polyseme.analysis.layers.geometry import GeometryResult


@expand_options
def geometry(
    model: ModelArgument,
    inputs: Annotated[list[str], Argument(metavar="TEXT", help="Files, folders, patterns, or - (stdin).")],
    *,
    raw: RawOption = False,
    sentences: Annotated[int, Option(help="Embed at most this many sentences, sampled at random.")] = 5_000,
    words: Annotated[int, Option(help="At most this many distinct words, sampled at random.")] = 500,
    uses: Annotated[int, Option(help="At most this many uses of each word, sampled at random.")] = 20,
    min_uses: Annotated[int, Option(help="Leave out words with fewer uses.")] = 5,
    layer: LayerOption = "all",
    seed: SeedOption = 0,
    output: PlotOptions,
    device: DeviceOption = "cpu",
) -> None:
    """Measure how contextual the vectors of each layer are.

    Self-similarity, intra-sentence similarity and maximum explainable variance after Ethayarajh (2019), corrected for
    anisotropy: the value for random words is subtracted, so that 0 means no more similar than chance.
    """
    from polyseme.analysis.layers.geometry import GeometrySettings, draw_geometry
    from polyseme.analysis.layers.geometry import geometry as run
    from polyseme.embedding.layers import parse_choice

    output.check()
    settings = GeometrySettings(parse_choice(layer), sentences, words, uses, min_uses, seed=seed)
    text = TextFiles(inputs, raw)
    embedder = open_embedder(model, device)
    with working("reading and embedding"):
        result = run(embedder, text, settings)
    output.present(result, lambda: _show(result))
    output.draw(lambda: draw_geometry(result))


def _show(result: GeometryResult) -> None:
    rows = [
        (
            str(row.layer),
            decimals(row.self_similarity.baseline),
            *(
                decimals(measure.corrected)
                for measure in (row.self_similarity, row.intra_sentence, row.explained_variance)
            ),
        )
        for row in result.layers
    ]
    title = (
        f"{result.model}: {result.uses:,} uses of {len(result.words):,} words in {result.sentences:,} sentences, "
        "corrected for anisotropy"
    )
    columns = ("layer", "random words", "self-similarity", "intra-sentence", "explainable variance")
    show_table(title, columns, rows)
    known = [each.word for each in result.words if each.self_similarity[-1] == each.self_similarity[-1]]
    if len(result.layers) > 1 and known:
        typer.echo(f"most changed by context, in the last row: {' '.join(known[:12])}")
        typer.echo(f"least changed: {' '.join(reversed(known[-12:]))}")
