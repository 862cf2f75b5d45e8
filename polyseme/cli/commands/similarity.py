"""``polyseme similarity``: cosine similarity of words against human ratings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from polyseme.cli.options import DeviceOption, LayerOption, ModelArgument, ResultOptions, expand_options
from polyseme.cli.output import decimals, open_embedder, show_table
from polyseme.cli.progress import working

if TYPE_CHECKING:
    from polyseme.analysis.words.similarity import SimilarityResult


@expand_options
def similarity(
    model: ModelArgument,
    inputs: Annotated[list[Path], Argument(metavar="PAIRS", help="Rated pairs: two words and a number per line.")],
    *,
    layer: LayerOption = "all",
    output: ResultOptions,
    device: DeviceOption = "cpu",
) -> None:
    """Correlate cosine similarity with human ratings.

    Spearman's ρ on rated word pairs, such as WordSim, SimLex, MEN or rare words. Each word is embedded alone. Pairs
    with unknown words are left out, and in the last column count as a cosine of 0.
    """
    from polyseme.analysis.words.similarity import read_pairs
    from polyseme.analysis.words.similarity import similarity as run
    from polyseme.embedding.layers import parse_choice

    output.check()
    choice = parse_choice(layer)
    ambiguous = len({path.stem for path in inputs}) < len(inputs)
    sets = {str(path) if ambiguous else path.stem: read_pairs(path) for path in inputs}
    embedder = open_embedder(model, device)
    with working("embedding"):
        result = run(embedder, sets, choice)
    output.present(result, lambda: _show(result))


def _show(result: SimilarityResult) -> None:
    rows = [
        (
            row.name,
            str(row.layer),
            f"{row.pairs:,}",
            f"{row.known:,}",
            decimals(row.spearman),
            decimals(row.spearman_all),
        )
        for row in result.rows
    ]
    columns = ("set", "layer", "pairs", "known", "ρ, known pairs", "ρ, all pairs")
    show_table(f"{result.model}: words alone, Spearman's ρ with human ratings", columns, rows)
