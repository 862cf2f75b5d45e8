"""What the instruments' commands share: opening a model, a table for people, JSON for machines."""

from __future__ import annotations

import json
import math
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyseme.files import atomic_write, check_writable

if TYPE_CHECKING:
    from polyseme.embedding.encoder import Encoder

MODELS = "ELMo of any format, a transformers folder or name, a vector file"
ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help=f"{MODELS}; english is the one that ships.")]
ShippedArgument = Annotated[
    str | None,
    typer.Argument(metavar="MODEL", help=f"{MODELS}. [default: the one that ships]", show_default=False),
]
ShippedOption = Annotated[
    str | None, typer.Option("--model", help=f"{MODELS}. [default: the one that ships]", show_default=False)
]
WithSoftmaxOption = Annotated[
    str | None,
    typer.Option("--model", help="One with a softmax, as `polyseme train` makes. [default: the one that ships]"),
]
JsonOption = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write all of it as JSON; - is standard output.")
]
PlotOption = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Draw a picture: *.png, *.svg or *.pdf.")
]
DeviceOption = Annotated[str, typer.Option(help="cpu, cuda, cuda:1, ...")]
LayerOption = Annotated[str, typer.Option(help="all, or the number of one layer.")]
SeedOption = Annotated[int, typer.Option(min=0, help="Of everything that is drawn at random.")]

_BETWEEN = 3  # places between two columns on a terminal
_EVERY = 0.1  # seconds between two drawings
_NARROWEST = 30  # places that a column of text is folded into


def open_embedder(model: str | None, device: str) -> Encoder:
    """The model that is asked for, whatever its kind, or the one that ships."""
    from polyseme.loading import load

    with working(f"opening {model or 'the model that ships'}"):
        return load(model, device=device)


def check_outputs(json: str | None, plot: Path | None = None) -> None:
    """Refuse what could not be written in the end, before hours of work."""
    if json and json != "-":
        check_writable(Path(json))
    if plot:
        from polyseme.plots import check_picture

        check_picture(plot)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show on a terminal that something takes its time; say nothing elsewhere."""
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(f"{escape(what)} ..."):
        yield


class Progress:
    """Counts sentences and words."""

    def __init__(self, already: int) -> None:
        from rich.console import Console
        from rich.progress import Progress as RichProgress
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        self.sentences = already
        self.already = already
        self.words = 0
        self.misread: Counter[str] = Counter()
        self._begun = self._drawn = time.monotonic()
        self._ended: float | None = None
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        console = Console(stderr=True)
        self._bar = RichProgress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task("reading ...", total=None)

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended = time.monotonic()
        self._bar.stop()

    def advance(self, words: list[str], misread: Mapping[str, int]) -> None:
        """One sentence is done."""
        self.sentences += 1
        self.words += len(words)
        self.misread.update(misread)
        now = time.monotonic()
        if now - self._drawn > _EVERY:
            self._drawn = now
            self._bar.update(self._task, description=self._summary())

    def report(self, encoder: Encoder) -> None:
        """Say what was done."""
        self._bar.stop()
        resumed = f" ({self.already:,} of them from before)" if self.already else ""
        layers = counted_as(encoder.num_layers, "layer")
        typer.echo(f"{self._summary()}{resumed}; {layers} of {encoder.dim}", err=True)
        for remark in encoder.remarks():
            typer.echo(remark, err=True)
        for what, count in self.misread.items():
            if count:
                typer.echo(f"{count:,} words were {what}", err=True)

    def _summary(self) -> str:
        seconds = max((self._ended or time.monotonic()) - self._begun, 1e-9)
        counts = f"{counted_as(self.sentences, 'sentence')}, {counted_as(self.words, 'word')}"
        return f"{counts}, {self.words / seconds:,.0f} words/s"


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on standard output: drawn with lines on a terminal, plain elsewhere, and cut nowhere.

    The first column is text, and folded where a terminal is narrow; the others are aligned as numbers are. Where not
    even these fit, the table is plain.
    """
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    widths = [max(map(len, column)) + _BETWEEN for column in zip(columns, *rows, strict=True)]
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
    """A result as JSON, into a file that appears whole or, for ``-``, on standard output.

    A result is a dataclass, or mappings, lists and plain values; a number that is not finite becomes ``null``, since
    JSON has no word for it.
    """
    text = json.dumps(_jsonable(payload), indent=2, ensure_ascii=False, allow_nan=False)
    if str(target) == "-":
        typer.echo(text)
        return
    with atomic_write(Path(target)) as file:
        file.write(text.encode("utf-8", "backslashreplace") + b"\n")


def counted_as(count: int, what: str) -> str:
    """``1 use``, ``2 uses``."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def size(count: int) -> str:
    """Bytes as people say them."""
    return f"{count / 1e6:,.1f} MB" if count >= 1e6 else f"{count / 1e3:,.1f} kB"


def percent(share: float | None) -> str:
    """A share of one, as people say it; a dash where there is none."""
    return "–" if share is None or math.isnan(share) else f"{100 * share:.1f}"


def decimals(value: float | None, places: int = 3) -> str:
    """A number with so many decimals; a dash where there is none."""
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
