"""What a page is made of, before anybody thinks of HTML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["held", "did not hold", "not tested here"]
HELD: Outcome = "held"
FAILED: Outcome = "did not hold"
UNTESTED: Outcome = "not tested here"


@dataclass(frozen=True)
class Paragraph:
    """A paragraph; ``**bold**``, ``*emphasis*`` and `` `code` `` are marked as in Markdown."""

    text: str


@dataclass(frozen=True)
class PassRule:
    """What will count as held; it stands before the verdict and the figures."""

    text: str


@dataclass(frozen=True)
class Table:
    """Rows of short cells; the first column is text, the others are numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""


@dataclass(frozen=True)
class Figure:
    """A figure, as SVG that takes its colours from the page."""

    svg: str
    caption: str = ""


@dataclass(frozen=True)
class ExampleSentences:
    """Sentences with one word marked, and a note on each: ``(words, place of the word, note)``."""

    title: str
    lines: tuple[tuple[tuple[str, ...], int, str], ...]


@dataclass(frozen=True)
class ExampleGroups:
    """Sentences under headings of their own, side by side where there is room: ``(heading, lines)``."""

    title: str
    groups: tuple[tuple[str, tuple[tuple[tuple[str, ...], int, str], ...]], ...]


@dataclass(frozen=True)
class Command:
    """What to type to have the numbers again, and the words that lead to it."""

    line: str
    said: str = "The same again:"


Block = Paragraph | PassRule | Table | Figure | ExampleSentences | ExampleGroups | Command


@dataclass(frozen=True)
class Verdict:
    """A claim about one model: what came out, why, and what there is to see."""

    outcome: Outcome
    reason: str
    blocks: tuple[Block, ...] = ()


def percent(share: float) -> str:
    """A share, or how alike two vectors are, as it stands in a text."""
    return f"{round(100 * share)} %"


def capital(text: str) -> str:
    """With a capital at its beginning; names inside stay as they are written."""
    return f"{text[:1].upper()}{text[1:]}"


def sentence_of(words: Sequence[str]) -> str:
    """Words with spaces between, but none before what closes."""
    return re.sub(r" ([.,;:!?’]|n't|'s\b)", r"\1", " ".join(words))
