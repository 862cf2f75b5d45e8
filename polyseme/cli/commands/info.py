"""``polyseme info``: format, size and layers of a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from polyseme.cli.options import ShippedArgument, VocabularyOption
from polyseme.cli.output import plural

if TYPE_CHECKING:
    from polyseme.formats import StoredModel


def info(
    model: ShippedArgument = None,
    as_json: Annotated[bool, Option("--json", help="Print everything as JSON.")] = False,
    vocabulary: VocabularyOption = None,
) -> None:
    """Describe a model: format, size, layers, how it reads words."""
    from polyseme.formats import resolve_model_path

    place = Path(resolve_model_path(model))
    facts, config = _read(place, vocabulary)
    if as_json:
        typer.echo(json.dumps({**facts, **config}, indent=2))
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(str(place)), show_header=False, title_justify="left", title_style="bold")
    table.add_column()
    table.add_column(overflow="fold")  # a path is useful only in full
    for name, value in facts.items():
        table.add_row(name, f"{value:,}" if isinstance(value, int) else escape(str(value)))
    Console().print(table)


def _read(model: Path, vocabulary: Path | None) -> tuple[dict[str, str | int], dict[str, Any]]:
    """Facts about a model for people, and its configuration for JSON."""
    from polyseme.formats import open_model
    from polyseme.loading import ELMO, backend_of, load, refuse_task_model
    from polyseme.model.config import to_dict

    refuse_task_model(model)
    if backend_of(model) is not ELMO:
        return load(model, vocabulary=vocabulary).describe(), {}
    stored = open_model(model, vocabulary)
    return _facts(stored), {"config": to_dict(stored.config)}


def _facts(stored: StoredModel) -> dict[str, str | int]:
    config = stored.config
    lstm = config.lstm
    clips = f"cells ±{lstm.cell_clip or '∞'}, outputs ±{lstm.output_clip or '∞'}"
    return {
        "format": stored.format,
        **({"made from": stored.origin} if stored.origin else {}),
        "stored in": stored.precision,
        "parameters": sum(weight.numel() for weight in stored.weights.values()),
        "layers of vectors": config.num_layers,
        "dimensions": config.dim,
        "reads": " and ".join(config.directions),
        "words by": _input(stored),
        "LSTM": f"{plural(lstm.num_layers, 'layer')} of {lstm.cells:,} cells, {lstm.dim} dimensions per direction",
        "clipped": clips,
        "residual": "yes" if lstm.residual else "no",
        "predicts words": _softmax(stored),
    }


def _softmax(stored: StoredModel) -> str:
    if stored.softmax is None:
        return "no: it has no softmax"
    clusters = f" in {len(stored.softmax.cutoffs) + 1} clusters" if stored.softmax.cutoffs else ""
    return f"yes, by a softmax over {stored.softmax.num_words:,} words{clusters}"


def _input(stored: StoredModel) -> str:
    ways = []
    if characters := stored.config.input.characters:
        unit = "UTF-8 bytes" if stored.words.characters and stored.words.characters.size == 261 else "characters"
        ways.append(
            f"spelling, up to {characters.max_characters - 2} {unit} through {characters.num_filters:,} filters "
            f"and {plural(characters.num_highway, 'highway layer')}"
        )
    if stored.config.input.num_words:
        ways.append(f"a table of {stored.config.input.num_words:,} words")
    return ", and ".join(ways)
