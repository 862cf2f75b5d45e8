"""Content of the report page, independent of HTML: paragraphs, tables, figures, example sentences, verdicts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["held", "did not hold", "inconclusive", "not tested here"]
HELD: Outcome = "held"
FAILED: Outcome = "did not hold"
INCONCLUSIVE: Outcome = "inconclusive"
UNTESTED: Outcome = "not tested here"


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of text with Markdown's ``**bold**``, ``*emphasis*`` and `` `code` ``; ``## `` makes it a heading."""

    text: str


@dataclass(frozen=True)
class PassRule:
    """The condition under which a claim holds; the page shows it before the verdict and the figures."""

    text: str


@dataclass(frozen=True)
class Table:
    """A table of short cells; columns of numbers are aligned to the right."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""


@dataclass(frozen=True)
class Figure:
    """A chart as SVG, which takes its colours from the page, and its caption."""

    svg: str
    caption: str = ""


@dataclass(frozen=True)
class ExampleSentences:
    """Example sentences with one word highlighted, and a note on each: ``(words, place of the word, note)``."""

    title: str
    lines: tuple[tuple[tuple[str, ...], int, str], ...]


@dataclass(frozen=True)
class ExampleGroups:
    """Groups of example sentences, side by side if there is room: ``(heading, lines as in ExampleSentences)``."""

    title: str
    groups: tuple[tuple[str, tuple[tuple[tuple[str, ...], int, str], ...]], ...]


@dataclass(frozen=True)
class Command:
    """A shell command that reproduces numbers, and the words before it."""

    line: str
    lead: str = "To measure this again:"


Block = Paragraph | PassRule | Table | Figure | ExampleSentences | ExampleGroups | Command


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim for one model: its outcome, the reason, and what the page shows."""

    outcome: Outcome
    reason: str
    blocks: tuple[Block, ...] = ()


def percent(share: float) -> str:
    """A share from 0 to 1 as a percentage for running text."""
    return f"{round(100 * share)} %"


def percent_interval(low: float, high: float) -> str:
    """A 95 % confidence interval of a share, for running text."""
    return f"95 % interval: {100 * low:.0f} to {percent(high)}"


def points(gain: float, interval: Sequence[float]) -> str:
    """A difference of two scores in points with its 95 % confidence interval, for running text."""
    low, high = interval
    return f"{_signed(gain)} points (95 % interval: {_signed(low)} to {_signed(high)})"


def _signed(number: float) -> str:
    return f"{number:+.1f}".replace("-", "−")


def capitalize_first(text: str) -> str:
    """Text with a capital first letter; the rest stays as it is."""
    return f"{text[:1].upper()}{text[1:]}"


def join_words(words: Sequence[str]) -> str:
    """A sentence from its words, without spaces before punctuation."""
    return re.sub(r" ([.,;:!?’]|n't|'s\b)", r"\1", " ".join(words))


def list_words(words: Sequence[str]) -> str:
    """Words as an enumeration: ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
