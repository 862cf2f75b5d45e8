"""What a person sees while sentences are embedded: a line that moves on a terminal, one line at the end anywhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.progress import Progress as RichProgress
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

from polyseme.cli.output import counted_as

if TYPE_CHECKING:
    from polyseme.embedding.encoder import Encoder

_EVERY = 0.1  # seconds between two drawings


def size(count: int) -> str:
    """Bytes as people say them."""
    return f"{count / 1e6:,.1f} MB" if count >= 1e6 else f"{count / 1e3:,.1f} kB"


class Progress:
    """Counts sentences and words."""

    def __init__(self, already: int) -> None:
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
