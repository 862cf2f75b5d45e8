"""What commands show and write: tables for people, JSON for machines."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from polyseme.cli.progress import working
from polyseme.files import atomic_write

if TYPE_CHECKING:
    from polyseme.embedding.encoder import Encoder

_COLUMN_GAP = 3  # characters between two columns on a terminal
_NARROWEST = 30  # characters that a column of text is folded into


def open_embedder(model: str | None, device: str) -> Encoder:
    """Open an encoder of any kind, by default the English model that comes with polyseme."""
    from polyseme.loading import load

    with working(f"opening {model or 'the English model'}"):
        return load(model, device=device)


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: drawn with lines on a terminal, plain text elsewhere, never truncated.

    The first column is text and is folded on a narrow terminal; the others are right-aligned. Where not even these fit,
    the table is plain.
    """
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    widths = [max(map(len, column)) + _COLUMN_GAP for column in zip(columns, *rows, strict=True)]
    if not sys.stdout.isatty() or sum(widths[1:]) + min(widths[0], _NARROWEST) > console.width:
        typer.echo(_plain_table(title, columns, rows))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(escape(column), justify="right" if number else "left", overflow="fold", no_wrap=number > 0)
    for row in rows:
        table.add_row(*map(escape, row))
    if title:
        console.print(f"[bold]{escape(title)}[/]", soft_wrap=True)
    console.print(table)


def write_json(target: str | Path, payload: object) -> None:
    """Write a result as JSON: to a file in one atomic step or, for ``-``, to standard output.

    A result is a dataclass, or mappings, lists and plain values. NaN and infinity become ``null``, since JSON has
    neither.
    """
    text = json.dumps(_jsonable(payload), indent=2, ensure_ascii=False, allow_nan=False)
    if str(target) == "-":
        typer.echo(text)
        return
    with atomic_write(Path(target)) as file:
        file.write(text.encode("utf-8", "backslashreplace") + b"\n")


def plural(count: int, noun: str) -> str:
    """A count with its noun, in the plural unless it is 1: ``2 uses``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def file_size(count: int) -> str:
    """A number of bytes with a readable unit, kB or MB."""
    return f"{count / 1e6:,.1f} MB" if count >= 1e6 else f"{count / 1e3:,.1f} kB"


def percent(fraction: float | None) -> str:
    """A fraction as a percentage with one decimal; a dash for None and NaN."""
    return "–" if fraction is None or math.isnan(fraction) else f"{100 * fraction:.1f}"


def decimals(value: float | None, places: int = 3) -> str:
    """A number with a fixed number of decimals; a dash for None and NaN."""
    return "–" if value is None or math.isnan(value) else f"{value:.{places}f}"


def _plain_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [list(columns), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = [
        "  ".join(cell.rjust(width) if number else cell.ljust(width) for number, (cell, width) in enumerate(cells))
        for cells in (list(zip(line, widths, strict=True)) for line in lines)
    ]
    return "\n".join(line.rstrip() for line in (*([title] if title else []), *text))


def _jsonable(value: Any) -> Any:  # noqa: ANN401 - whatever a result holds
    if is_dataclass(value) and not isinstance(value, type):
        return _jsonable(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_jsonable(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if to_list := getattr(value, "tolist", None):  # NumPy's scalars and arrays
        return _jsonable(to_list())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
