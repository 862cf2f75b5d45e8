"""``polyseme analogy``: relations between words by arithmetic."""

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
    open_embedder,
    percent,
    show_table,
    working,
    write_json,
)


def analogy(
    model: ModelArgument,
    relations: Annotated[
        Path,
        typer.Argument(metavar="RELATIONS", help="As word2vec's questions-words.txt: a b c d a line, : opens a part."),
    ],
    candidates: Annotated[
        Path | None,
        typer.Option(help="Words to answer with, one a line. [default: a vector file's own; else those of RELATIONS]"),
    ] = None,
    layer: LayerOption = "all",
    json: JsonOption = None,
    device: DeviceOption = "cpu",
) -> None:
    """Answer "a is to b as c is to what?" with the word most like b - a + c, the three words excluded.

    Each word is embedded alone. Figures compare only where the candidates are the same.
    """
    from polyseme.analysis.words.analogy import analogy as run
    from polyseme.analysis.words.analogy import read_candidates, read_relations
    from polyseme.embedding.layers import parse_choice

    check_outputs(json)
    choice, sections = parse_choice(layer), read_relations(relations)
    words = read_candidates(candidates) if candidates else None
    embedder = open_embedder(model, device)
    with working("embedding and searching"):
        result = run(embedder, sections, words, choice)
    if json:
        write_json(json, result)
    if json != "-":
        rows = [
            (
                row.section,
                str(row.layer),
                f"{row.questions:,}",
                f"{row.known:,}",
                percent(row.accuracy),
                percent(row.accuracy_all),
            )
            for row in result.rows
        ]
        columns = ("relation", "layer", "questions", "known", "%, known", "%, all")
        show_table(f"{result.model}: relations, among {result.candidates:,} candidates", columns, rows)
