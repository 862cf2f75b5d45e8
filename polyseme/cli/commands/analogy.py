"""``polyseme analogy``: word analogies, solved by vector arithmetic."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from polyseme.cli.options import DeviceOption, LayerOption, ModelArgument, ResultOptions, expand_options
from polyseme.cli.output import open_embedder, percent, show_table
from polyseme.cli.progress import working

if TYPE_CHECKING:
    from polyseme.analysis.words.analogy import AnalogyResult


@expand_options
def analogy(
    model: ModelArgument,
    relations: Annotated[Path, Argument(metavar="RELATIONS", help="a b c d per line, as in questions-words.txt.")],
    *,
    candidates: Annotated[
        Path | None, Option(help="Words to answer with. [default: those of MODEL or RELATIONS]")
    ] = None,
    layer: LayerOption = "all",
    output: ResultOptions,
    device: DeviceOption = "cpu",
) -> None:
    """Solve word analogies: a is to b as c is to what?

    The answer is the candidate nearest to b - a + c, those three words excluded. Each word is embedded alone. Scores
    are comparable only where the candidates are the same.
    """
    from polyseme.analysis.words.analogy import analogy as run
    from polyseme.analysis.words.analogy import read_candidates, read_relations
    from polyseme.embedding.layers import parse_choice

    output.check()
    choice, sections = parse_choice(layer), read_relations(relations)
    words = read_candidates(candidates) if candidates else None
    embedder = open_embedder(model, device)
    with working("embedding and searching"):
        result = run(embedder, sections, words, choice)
    output.present(result, lambda: _show(result))


def _show(result: AnalogyResult) -> None:
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
    columns = ("relation", "layer", "questions", "known", "% of known", "% of all")
    show_table(f"{result.model}: analogies, among {result.candidates:,} candidates", columns, rows)
