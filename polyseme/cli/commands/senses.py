"""``polyseme senses``: the senses of a word without labels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.cli.corpus_source import (
    CaseOption,
    CorpusOption,
    CorpusSource,
    IndexOption,
    ModelOption,
    RawOption,
    shown,
)
from polyseme.cli.output import (
    DeviceOption,
    JsonOption,
    PlotOption,
    SeedOption,
    check_outputs,
    counted_as,
    decimals,
    show_table,
    write_json,
)

if TYPE_CHECKING:
    from polyseme.corpus.senses import ClusterSettings, Senses
    from polyseme.corpus.uses import Uses
    from polyseme.embedding.layers import LayerChoice


def senses(
    word: Annotated[str, typer.Argument(help="The word.")],
    model: ModelOption = None,
    corpus: CorpusOption = None,
    index: IndexOption = None,
    layer: Annotated[str, typer.Option(help="A number, top, average, or all: one table each.")] = "top",
    clusters: Annotated[
        int | None, typer.Option(help="How many. [default: by silhouette, 2 to --most]", show_default=False)
    ] = None,
    most: Annotated[int, typer.Option(help="The largest number that is tried.")] = 6,
    examples: Annotated[int, typer.Option(min=1, help="Typical sentences for each cluster.")] = 3,
    match_case: CaseOption = False,
    raw: RawOption = False,
    limit: Annotated[int, typer.Option(min=1, help="At most so many uses of the word, by lot.")] = 1000,
    seed: SeedOption = 0,
    json: JsonOption = None,
    plot: PlotOption = None,
    device: DeviceOption = "cpu",
) -> None:
    """Cluster a word's uses in a corpus, and show typical sentences of each cluster.

    The silhouette says how well the clusters are apart; beside it stands what a cloud without clusters would give.
    """
    from polyseme.corpus.senses import ClusterSettings, draw_senses
    from polyseme.embedding.layers import parse_choice
    from polyseme.errors import ConfigError, require
    from polyseme.plots import save_figure

    settings, choice = ClusterSettings(clusters, most, examples, seed), parse_choice(layer)
    check_outputs(json, plot)
    if plot and choice == "all":
        raise ConfigError("--plot draws one layer; give its number with --layer")
    require("sklearn.cluster", "analysis")  # before the text is read
    source = CorpusSource(model, device, corpus, index, raw)
    uses = source.of(word, match_case, limit)
    layers = uses.numbers if choice == "all" else [choice]
    results = [_cluster(uses, one, settings, choice == "all") for one in layers]
    name = source.encoder.name
    if json:
        write_json(json, {"word": word, "model": name, "uses": [shown(use) for use in uses], "layers": results})
    if plot:
        save_figure(draw_senses(results[0], word, name), plot)
    if json != "-":
        for number, result in enumerate(results):
            typer.echo("\n" * (number > 0), nl=False)
            _show(word, name, len(uses), result)


def _cluster(uses: Uses, layer: LayerChoice, settings: ClusterSettings, among_others: bool) -> Senses:
    """The clusters of a layer; of one that has fewer than are asked for, what it has, if it is one of several."""
    from polyseme.corpus.senses import cluster_uses
    from polyseme.errors import InputError

    try:
        return cluster_uses(uses, layer, settings)
    except InputError:
        if not among_others:
            raise
        return cluster_uses(uses, layer, replace(settings, clusters=None))


def _show(word: str, model: str, uses: int, result: Senses) -> None:
    apart = (
        f"silhouette {decimals(result.silhouette)}, by chance {decimals(result.by_chance)}"
        if result.silhouette is not None
        else "all alike: this layer does not look at context, or there are too few uses"
    )
    typer.echo(f"{word}: {counted_as(uses, 'use')}, {model}, layer {result.layer}; {apart}")
    for number, cluster in enumerate(result.clusters, start=1):
        around = f"; around them: {', '.join(cluster.company)}" if cluster.company else ""
        title = f"\n{number}. {counted_as(cluster.size, 'use')}{around}"
        show_table(title, ("typical",), [(shown(use),) for use in cluster.typical])
