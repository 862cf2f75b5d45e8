"""Progress of long work: stages that the library counts, and a display that shows them where one was asked for.

The library counts and never prints: long loops run inside `stage` or through `track`, which cost next to nothing. Where
`show_progress` is on, the running stages are shown on standard error: as bars on a terminal, elsewhere as a line every
ten seconds. Commands turn it on by themselves; in Python it is

    with polyseme.show_progress():
        vectors = elmo.encode(texts)
"""

from __future__ import annotations

import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO, TypeVar

if TYPE_CHECKING:
    from rich.console import Console, Group

Item = TypeVar("Item")

SECONDS_BETWEEN_LINES = 10.0
_REFRESHES = 8  # of a bar, a second
_BAR_WIDTH = 24  # characters
_BYTES = "bytes"


@dataclass(eq=False)
class Stage:
    """A stage of long work: what is being done, and how much of it.

    Attributes:
        what: A phrase like ``embedding``.
        total: How many items there are, if that is known.
        unit: Their name in the plural; ``bytes`` are shown as megabytes.
        done: How many are done, those of an earlier run included.
        already: How many an earlier run has done.
        words: Words in the items that are done; the speed is given in words if there are any.
        note: What else to say now, like the loss.
    """

    what: str
    total: int | None = None
    unit: str = "sentences"
    already: int = 0
    done: int = field(init=False)
    words: int = 0
    note: str = ""
    _started: float = field(init=False)

    def __post_init__(self) -> None:
        self.done, self._started = self.already, time.monotonic()

    def advance(self, items: int = 1, words: int = 0) -> None:
        """Count items that are done."""
        self.done += items
        self.words += words

    def restart_clock(self) -> None:
        """Measure speed from here on: what was counted so far took no work."""
        self.already, self._started = self.done, time.monotonic()

    @property
    def fraction(self) -> float | None:
        """The share that is done, 0 to 1, if the total is known."""
        return min(1.0, self.done / self.total) if self.total else None

    def describe(self) -> str:
        """The stage as a line of text: what, how much, how fast, and how long the rest will take."""
        amounts = [part for part in (self._amount(), self._speed(), self._left(), self.note) if part]
        return f"{self.what}: {', '.join(amounts)}" if amounts else f"{self.what} ..."

    def _amount(self) -> str:
        if not self.done and self.total is None:
            return ""
        if self.unit == _BYTES:
            size, name = (1e6, "MB") if (self.total or self.done) >= 1e6 else (1e3, "kB")
            whole = f" of {self.total / size:,.1f}" if self.total else ""
            return f"{self.done / size:,.1f}{whole} {name}"
        whole = f" of {self.total:,}" if self.total is not None else ""
        unit = self.unit.removesuffix("s") if (self.total or self.done) == 1 else self.unit
        return f"{self.done:,}{whole} {unit}"

    def _speed(self) -> str:
        fresh, seconds = self.words or self.done - self.already, time.monotonic() - self._started
        if not fresh or seconds < 1 or self.unit == _BYTES:
            return ""
        speed = fresh / seconds
        return f"{speed:,.{0 if speed >= 10 else 1}f}{' words' if self.words else ''}/s"

    def _left(self) -> str:
        fresh, seconds = self.done - self.already, time.monotonic() - self._started
        if self.total is None or not fresh > 0 or self.done >= self.total or seconds < 1:
            return ""
        return f"about {format_seconds(seconds * (self.total - self.done) / fresh)} left"


def format_seconds(seconds: float) -> str:
    """A duration for people: ``40 s``, ``12 min`` or ``3 h 20 min``."""
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"


@contextmanager
def stage(what: str, total: int | None = None, unit: str = "sentences", already: int = 0) -> Iterator[Stage]:
    """Run the block as a stage of long work; count what is done with its `advance`."""
    now, display = Stage(what, total, unit, already), _display.get()
    if display is None:
        yield now
        return
    display.stages.append(now)
    try:
        yield now
    finally:
        display.stages.remove(now)


def track(
    items: Iterable[Item],
    what: str,
    total: int | None = None,
    unit: str = "sentences",
    words: Callable[[Item], int] | None = None,
) -> Iterator[Item]:
    """The same items, counted by a stage as they are taken.

    Args:
        items: Anything to iterate over.
        what: A phrase like ``embedding``.
        total: How many there are. [what ``len`` says, if anything]
        unit: Their name in the plural.
        words: Number of words of an item, for a speed in words.
    """
    if _display.get() is None:
        return iter(items)
    size = len(items) if total is None and hasattr(items, "__len__") else total  # pyright: ignore[reportArgumentType]
    return _counted(items, what, size, unit, words)


def _counted(
    items: Iterable[Item], what: str, total: int | None, unit: str, words: Callable[[Item], int] | None
) -> Iterator[Item]:
    with stage(what, total, unit) as now:
        for item in items:
            yield item
            now.advance(1, words(item) if words else 0)


@contextmanager
def reading(sizes: Iterable[int | None]) -> Iterator[None]:
    """Count what is read from files of these sizes in bytes, while the block runs; None for one of unknown size."""
    display, known = _display.get(), list(sizes)
    if display is None:
        yield
        return
    with stage("reading", None if None in known else sum(size or 0 for size in known), _BYTES) as now:
        before, display.reading = display.reading, now
        try:
            yield
        finally:
            display.reading = before


def count_read(size: int) -> None:
    """Count bytes that were read from a file, in the stage that `reading` began, if there is one."""
    display = _display.get()
    if display is not None and display.reading is not None:
        display.reading.advance(size)


def skipped_so_far() -> None:
    """Tell the `reading` stage that what it has counted was only skipped, so that speed is measured from here on."""
    display = _display.get()
    if display is not None and display.reading is not None:
        display.reading.restart_clock()


def remark(message: str) -> None:
    """Print a line that stays, such as the score of an epoch, where progress is shown."""
    display = _display.get()
    if display is not None:
        display.print_line(message)


@contextmanager
def show_progress() -> Iterator[None]:
    """Show the progress of long work in the block on standard error: bars on a terminal, lines elsewhere."""
    if _display.get() is not None:  # one display is enough
        yield
        return
    from rich.console import Console

    console = Console(file=sys.stderr, highlight=False)
    display = _Bars(console) if console.is_terminal and not console.is_jupyter else _Lines(sys.stderr)
    token = _display.set(display)
    try:
        with display.run():
            yield
    finally:
        _display.reset(token)


class _Display(ABC):
    """The stages that are running now, outermost first."""

    def __init__(self) -> None:
        self.stages: list[Stage] = []
        self.reading: Stage | None = None

    @contextmanager
    @abstractmethod
    def run(self) -> Iterator[None]:
        """Show the stages while the block runs."""
        yield

    @abstractmethod
    def print_line(self, line: str) -> None:
        """Print a line above the progress bar, where it stays."""


class _Lines(_Display):
    """Display for log files and pipes: a line now and then."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    @contextmanager
    def run(self) -> Iterator[None]:
        stop = threading.Event()
        thread = threading.Thread(target=self._print, args=(stop,), name="polyseme progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _print(self, stop: threading.Event) -> None:
        while not stop.wait(SECONDS_BETWEEN_LINES):
            if self.stages:
                self.print_line(self.line())

    def line(self) -> str:
        """All running stages in one line."""
        return "; ".join(stage.describe() for stage in list(self.stages)).replace(" ...;", ";")

    def print_line(self, line: str) -> None:
        self._stream.write(f"{line}\n")
        self._stream.flush()


class _Bars(_Display):
    """Display for terminals: a bar or a spinner for each stage, which vanish at the end."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def print_line(self, line: str) -> None:
        self._console.print(line, markup=False, soft_wrap=True)

    @contextmanager
    def run(self) -> Iterator[None]:
        from rich.live import Live
        from rich.spinner import Spinner

        self._spinner = Spinner("dots")
        # Results may go to a file while progress is on the terminal: then they must not be redirected to it.
        with Live(
            console=self._console,
            get_renderable=self._draw,
            refresh_per_second=_REFRESHES,
            transient=True,
            redirect_stdout=sys.stdout.isatty(),
        ):
            yield

    def _draw(self) -> Group:
        from rich.columns import Columns
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.text import Text

        rows = []
        for now in list(self.stages):
            share = now.fraction
            mark = self._spinner if share is None else ProgressBar(total=1.0, completed=share, width=_BAR_WIDTH)
            rows.append(Columns([mark, Text(now.describe(), overflow="ellipsis", no_wrap=True)]))
        return Group(*rows)


_display: ContextVar[_Display | None] = ContextVar("display", default=None)
