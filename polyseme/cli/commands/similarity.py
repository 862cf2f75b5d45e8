"""``polyseme similarity``: how alike words are, to a model and to people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polyseme.cli.output import (
    DeviceOption,
    JsonOption,
    LayerOption,
    ModelArgument,
    check_outputs,
    decimals,
    open_embedder,
    show_table,
    working,
    write_json,
)


def similarity(
    model: ModelArgument,
    inputs: Annotated[
        list[Path], typer.Argument(metavar="PAIRS", help="Files of rated pairs: two words and a number a line.")
    ],
    layer: LayerOption = "all",
    json: JsonOption = None,
    device: DeviceOption = "cpu",
) -> None:
    """Spearman's correlation between cosines and people's ratings: WordSim, SimLex, MEN, rare words.

    Each word is embedded alone. Pairs with unknown words are left out, and in the last column count as a cosine of 0.
    """
    from polyseme.analysis.words.similarity import read_pairs
    from polyseme.analysis.words.similarity import similarity as run
    from polyseme.embedding.layers import parse_choice

    check_outputs(json)
    choice = parse_choice(layer)
    alike = len({path.stem for path in inputs}) < len(inputs)
    sets = {str(path) if alike else path.stem: read_pairs(path) for path in inputs}
    embedder = open_embedder(model, device)
    with working("embedding"):
        result = run(embedder, sets, choice)
    if json:
        write_json(json, result)
    if json != "-":
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
        show_table(f"{result.model}: words alone, Spearman's ρ with people's ratings", columns, rows)
