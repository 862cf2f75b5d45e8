"""What commands say while they run: progress, notes and summaries on standard error, none of it with --quiet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from polyseme.errors import PolysemeError

if TYPE_CHECKING:
    from polyseme.embedding.parts import Parts
    from polyseme.progress import Stage

_state = {"quiet": False}  # set anew by every command that runs


def set_quiet(quiet: bool) -> None:
    """Say nothing but results and errors from now on, or say everything again."""
    _state["quiet"] = quiet


def is_quiet() -> bool:
    """Whether --quiet was given."""
    return _state["quiet"]


def note(message: str) -> None:
    """Print a line for people to standard error, unless --quiet was given."""
    if not is_quiet():
        typer.echo(message, err=True)


def nothing_to_resume(output: Path) -> str:
    """What to say where --resume finds nothing: every command then starts from the beginning."""
    return f"there is no unfinished run of {output}; starting from the beginning"


def announce(message: str) -> None:
    """Print a line about a finished output to standard output, unless --quiet was given."""
    if not is_quiet():
        typer.echo(message)


def warn_of_raw_text(sentences: Iterable[list[str]], raw: bool) -> Iterator[list[str]]:
    """The same sentences, with a note about --raw if they were split at spaces and look raw."""
    from polyseme.text.raw_text import watch_for_raw_text

    return iter(sentences) if raw else watch_for_raw_text(sentences, _note_raw_text)


def _note_raw_text(why: str) -> None:
    note(
        f"note: the text looks raw: {why}, but lines are taken as sentences and split at spaces only; "
        "--raw splits raw text into sentences and words"
    )


def shown() -> AbstractContextManager[None]:
    """Show the stages of the work in the block, unless --quiet was given."""
    from polyseme.progress import show_progress

    return nullcontext() if is_quiet() else show_progress()


@contextmanager
def working(what: str, total: int | None = None, unit: str = "sentences", already: int = 0) -> Iterator[Stage]:
    """Run the block as a stage of work, and show it and the stages inside it unless --quiet was given."""
    from polyseme.progress import stage

    with shown(), stage(what, total, unit, already) as now:
        yield now


@contextmanager
def keep_finished(parts: Parts) -> Iterator[None]:
    """Save finished sentences when a run fails or is interrupted, and say how to resume it."""
    try:
        yield
    except (KeyboardInterrupt, PolysemeError, OSError, MemoryError) as error:
        parts.keep()
        if isinstance(error, KeyboardInterrupt):
            kept = f"{parts.done:,} sentences are kept; the same command with --resume continues"
            typer.echo(f"interrupted: {kept if parts.done else 'nothing was finished yet'}", err=True)
            raise SystemExit(130) from None
        raise
