"""What a page is made of, before anybody thinks of HTML."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote
from typing import Literal

from polyseme.report.measure.sizes import Sizes
from polyseme.report.measure.store import Found
from polyseme.report.measure.subject import Data, Subject

Verdict = Literal["held", "did not hold", "not tested here"]
HELD: Verdict = "held"
FAILED: Verdict = "did not hold"
UNTESTED: Verdict = "not tested here"


@dataclass(frozen=True)
class Text:
    """A paragraph; ``**bold**``, ``*emphasis*`` and `` `code` `` are marked as in Markdown."""

    text: str


@dataclass(frozen=True)
class Rule:
    """What will count as held; it stands before the verdict and the figures."""

    text: str


@dataclass(frozen=True)
class Table:
    """Rows of short cells; the first column is text, the others are numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""


@dataclass(frozen=True)
class Picture:
    """A figure, as SVG that takes its colours from the page."""

    svg: str
    caption: str = ""


@dataclass(frozen=True)
class Quotes:
    """Sentences with one word marked, and a note on each: ``(words, place of the word, note)``."""

    title: str
    lines: tuple[tuple[tuple[str, ...], int, str], ...]


@dataclass(frozen=True)
class Groups:
    """Sentences under headings of their own, side by side where there is room: ``(heading, lines as in Quotes)``."""

    title: str
    groups: tuple[tuple[str, tuple[tuple[tuple[str, ...], int, str], ...]], ...]


@dataclass(frozen=True)
class Command:
    """What to type to have the numbers again, and the words that lead to it."""

    line: str
    said: str = "The same again:"


Block = Text | Rule | Table | Picture | Quotes | Groups | Command


@dataclass(frozen=True)
class Told:
    """A claim about one model: what came out, why, and what there is to see."""

    verdict: Verdict
    because: str
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True)
class Part:
    """Something that is measured once.

    Attributes:
        name: Of the part, and of its file in the store.
        measure: What does it; raises `PolysemeError` where this model or this data do not allow it.
        needs: Files below the folder of data, without which it cannot be done.
        sizes: The names of the bounds in `Sizes` that it heeds.
        head: Whether it looks at the language model's head, too.
        uses: Files below the folder of data that it looks at where they are there.
    """

    name: str
    measure: Callable[[Subject, Data, Sizes], Found]
    needs: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    head: bool = False
    uses: tuple[str, ...] = ()


@dataclass(frozen=True)
class Findings:
    """What the parts found for one model.

    Attributes:
        name: What the model is called.
        model: As it was typed.
        data: The folder of data as it was typed; None where there is none.
        full: Whether everything was looked at.
        found: By part.
        missing: For parts that were not done, why.
    """

    name: str
    model: str
    data: str | None
    full: bool
    found: Mapping[str, Found] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)

    def why(self, *parts: str) -> str:
        """Why some parts were not done, in one sentence."""
        return " ".join(dict.fromkeys(self.missing[part] for part in parts if part in self.missing))

    def again(self, *claims: int | str) -> Command:
        """The command that gives a claim's numbers again, in a folder of its own, so that no page is replaced."""
        data = f" --data {quote(self.data)}" if self.data else ""
        only = "".join(f" --only {claim}" for claim in claims)
        output = "-".join(["claim", *map(str, claims)]) if any(isinstance(claim, int) for claim in claims) else "tour"
        full = " --full" if self.full else ""
        return Command(f"polyseme report {quote(self.model)}{data}{only}{full} -o {output}")

    def where(self, path: str) -> str:
        """A file of the data, as it would be typed."""
        return quote(f"{self.data or 'DATA'}/{path}")


@dataclass(frozen=True)
class Claim:
    """One thing that is said of such vectors.

    Attributes:
        number: As in the list of claims.
        title: In plain words, as a sentence.
        said: What the articles assert, and a word of explanation for somebody who has never heard of it.
        parts: What must be measured.
        tell: What comes of it for one model.
        tell_all: What is to be said of all models together.
        hint: A few words for the list of claims, where the title has words that nobody knows yet.
    """

    number: int
    title: str
    said: str
    parts: tuple[Part, ...]
    tell: Callable[[Findings], Told]
    tell_all: Callable[[Sequence[Findings]], tuple[Block, ...]] | None = None
    hint: str = ""


def percent(share: float) -> str:
    """A share, or how alike two vectors are, as it stands in a text."""
    return f"{round(100 * share)} %"


def capital(text: str) -> str:
    """With a capital at its beginning; names inside stay as they are written."""
    return f"{text[:1].upper()}{text[1:]}"


def sentence_of(words: Sequence[str]) -> str:
    """Words with spaces between, but none before what closes."""
    return re.sub(r" ([.,;:!?’]|n't|'s\b)", r"\1", " ".join(words))


def missing_told(findings: Findings, parts: Sequence[str], blocks: tuple[Block, ...] = ()) -> Told:
    """A claim that could not be tested."""
    return Told(UNTESTED, findings.why(*parts) or "Nothing that this needs was given.", blocks)
