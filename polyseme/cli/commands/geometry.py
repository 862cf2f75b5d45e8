"""``polyseme geometry``: how contextual each layer's vectors are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.cli.corpus_source import RawOption, TextFiles
from polyseme.cli.output import (
    DeviceOption,
    JsonOption,
    LayerOption,
    ModelArgument,
    PlotOption,
    SeedOption,
    check_outputs,
    decimals,
    open_embedder,
    show_table,
    working,
    write_json,
)

if TYPE_CHECKING:
    from polyseme.analysis.layers.geometry import GeometryResult


def geometry(
    model: ModelArgument,
    inputs: Annotated[list[str], typer.Argument(metavar="TEXT", help="Files, folders, patterns, or - (stdin).")],
    raw: RawOption = False,
    sentences: Annotated[int, typer.Option(help="Embed at most so many, by lot.")] = 5_000,
    words: Annotated[int, typer.Option(help="At most so many distinct words, by lot.")] = 500,
    uses: Annotated[int, typer.Option(help="At most so many uses of each, by lot.")] = 20,
    min_uses: Annotated[int, typer.Option(help="Leave rarer words out.")] = 5,
    layer: LayerOption = "all",
    seed: SeedOption = 0,
    json: JsonOption = None,
    plot: PlotOption = None,
    device: DeviceOption = "cpu",
) -> None:
    """Self-similarity, intra-sentence similarity and explainable variance by layer, corrected for anisotropy.

    After Ethayarajh (2019): what random words give is taken off each, so that 0 is no more alike than chance.
    """
    from polyseme.analysis.layers.geometry import GeometrySettings, draw_geometry
    from polyseme.analysis.layers.geometry import geometry as run
    from polyseme.embedding.layers import parse_choice
    from polyseme.plots import save_figure

    check_outputs(json, plot)
    settings = GeometrySettings(parse_choice(layer), sentences, words, uses, min_uses, seed=seed)
    text = TextFiles(inputs, raw)
    embedder = open_embedder(model, device)
    with working("reading and embedding"):
        result = run(embedder, text, settings)
    if json:
        write_json(json, result)
    if json != "-":
        _show(result)
    if plot:
        save_figure(draw_geometry(result), plot)


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
        typer.echo(f"context changes most, in the last row: {' '.join(known[:12])}")
        typer.echo(f"and least: {' '.join(reversed(known[-12:]))}")
