"""``polyseme senses``: senses of a word, by clustering its uses."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from polyseme.cli.corpus_source import CorpusOptions, CorpusSource, format_use
from polyseme.cli.options import PlotOptions, SeedOption, expand_options
from polyseme.cli.output import decimals, percent, plural, show_table
from polyseme.cli.progress import working

if TYPE_CHECKING:
    from polyseme.corpus.senses import ClusterSettings, Senses
    from polyseme.corpus.uses import Uses
    from polyseme.embedding.layers import LayerChoice


@expand_options
def senses(
    word: Annotated[str, Argument(help="The word whose uses are clustered.")],
    corpus: CorpusOptions,
    *,
    layer: Annotated[str, Option(help="A number, top, average, or all: one table per layer.")] = "top",
    clusters: Annotated[int | None, Option(help="How many. [default: best silhouette, 2 to --most]")] = None,
    most: Annotated[int, Option(help="The largest number of clusters to try.")] = 6,
    examples: Annotated[int, Option(min=1, help="Typical sentences to show for each cluster.")] = 3,
    limit: Annotated[int, Option(min=1, help="Sample at most this many uses of the word.")] = 1000,
    seed: SeedOption = 0,
    output: PlotOptions,
) -> None:
    """Cluster the uses of a word into senses.

    Shows typical sentences of each cluster. The silhouette says how well the clusters are separated; beside it stands
    the silhouette that random points without clusters
    reach, and p is how often they do. Only if all of 19 such samples are worse (p 0.05) is there evidence of senses.
    """
    from polyseme.corpus.senses import ClusterSettings, draw_senses
    from polyseme.embedding.layers import parse_choice
    from polyseme.errors import ConfigError

    settings, choice = ClusterSettings(clusters, most, examples, seed), parse_choice(layer)
    output.check()
    if output.plot and choice == "all":
        raise ConfigError("--plot draws one layer; give its number with --layer")
    source = CorpusSource(corpus)
    uses = source.find(word, limit)
    layers = uses.numbers if choice == "all" else [choice]
    with working("clustering"):
        results = [_cluster(uses, one, settings, choice == "all") for one in layers]
    name = source.encoder.name
    output.draw(lambda: draw_senses(results[0], word, name))
    table = {"word": word, "model": name, "uses": [format_use(use) for use in uses], "layers": results}
    output.present(table, lambda: _show(f"{word}: {plural(len(uses), 'use')}, {name}", results))


def _cluster(uses: Uses, layer: LayerChoice, settings: ClusterSettings, among_others: bool) -> Senses:
    """The clusters of one layer; as many as it has if fewer than requested and it is one of several."""
    from polyseme.corpus.senses import cluster_uses
    from polyseme.errors import InputError

    try:
        return cluster_uses(uses, layer, settings)
    except InputError:
        if not among_others:
            raise
        return cluster_uses(uses, layer, replace(settings, clusters=None))


def _show(title: str, results: list[Senses]) -> None:
    for place, result in enumerate(results):
        chance = f"by chance {decimals(result.by_chance)}, p {decimals(result.p, 2)}"
        separation = (
            f"silhouette {decimals(result.silhouette)}, {chance}"
            if result.silhouette is not None
            else "all the same: this layer ignores context, or there are too few uses"
        )
        typer.echo("\n" * (place > 0) + f"{title}, layer {result.layer}; {separation}")
        for number, cluster in enumerate(result.clusters, start=1):
            context = f"; words around them: {', '.join(cluster.company)}" if cluster.company else ""
            heading = f"\n{number}. {plural(cluster.size, 'use')}{context}"
            show_table(heading, ("typical",), [(format_use(use),) for use in cluster.typical])
        if result.silhouette is not None and not result.is_evident:
            typer.echo(
                "\nno evidence of two senses or more: clusters of random points, which have no senses, "
                f"are as well separated in {percent(result.p)} % of the cases"
            )
