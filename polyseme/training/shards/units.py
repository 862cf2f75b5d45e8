"""Lines to units, which are trained on or held out as a whole, and units to pieces of work.

A document is the lines up to a blank one, or to the end of the file. A unit is a document or, where a text has too few
of those, a stretch of lines of one. Whether a unit is held out depends on nothing but its text, so it is the same in
every run, on every machine, and for every copy of the text: its SHA-256 as a number in [0, 1) is below the share.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from polyseme.text.corpus import Source, open_text, split_lines

LONGEST_UNIT = 1 << 20  # characters; what follows them in a document is held out or not as they are
PIECE = 1 << 21  # bytes that one process works on at a time
STRETCH = 20  # lines of a unit that is no document

SAMPLE = 20_000_000  # characters at the beginning of the text that the choice of a rule looks at
USUAL_SHARE = 1 / 256
LARGEST_SHARE = 1 / 20
WANTED_WORDS = 20_000
WANTED_DOCUMENTS = 8  # to be expected in the held-out part: with these, chance leaves it empty once in 3,000 texts
WANTED_STRETCHES = 20  # shorter ones are taken, rather than fewer


@dataclass(frozen=True)
class HeldOutRule:
    """Which units are held out.

    Attributes:
        share: How much of the text, about.
        lines: Lines of a unit at most, or None where documents are the units.
    """

    share: float = 0.0
    lines: int | None = None

    def holds(self, encoded: bytes) -> bool:
        """Whether the unit with this text (UTF-8, its lines joined by one newline) is held out."""
        if not self.share:
            return False
        return int.from_bytes(hashlib.sha256(encoded).digest()[:8], "big") < self.share * 2**64


class Unit(NamedTuple):
    """Lines that are kept together, or the first or a further part of very many.

    Attributes:
        text: The lines, joined by newlines.
        size: Its bytes.
        begins: Whether it follows on nothing: a document begins, or what stood before is in the other part.
        held_out: Which part it is in.
    """

    text: str
    size: int
    begins: bool
    held_out: bool


class Piece(NamedTuple):
    """Units of one part, in order, for one process to work on."""

    texts: list[str]
    begins: list[bool]
    size: int
    held_out: bool


def read_lines(sources: Iterable[Source]) -> Iterator[str]:
    """Lines of all files; a blank one after each file, since no document runs over its end."""
    for source in sources:
        with open_text(source) as lines:
            yield from lines
        yield ""


def cut_units(lines: Iterable[str], rule: HeldOutRule) -> Iterator[Unit]:
    """Cut lines into units."""
    gathered: list[str] = []
    characters = 0
    decided: bool | None = None  # for the rest of a document that is longer than a unit
    begins, before = True, False
    for line in lines:
        blank = not line or line.isspace()
        if not blank:
            gathered.append(line)
            characters += len(line) + 1
        if gathered and (blank or len(gathered) == rule.lines or characters >= LONGEST_UNIT):
            text = "\n".join(gathered)
            encoded = text.encode()
            held_out = rule.holds(encoded) if decided is None else decided
            yield Unit(text, len(encoded) + 1, begins or held_out != before, held_out)
            decided = held_out if rule.lines is None else None
            begins, before = False, held_out
            gathered, characters = [], 0
        if blank:
            begins, decided = True, None


def gather_pieces(units: Iterable[Unit]) -> Iterator[Piece]:
    """Put units together to what is worth a process's while, training and held-out text apart."""
    open_pieces: dict[bool, list[Unit]] = {False: [], True: []}
    sizes = {False: 0, True: 0}
    for unit in units:
        part = unit.held_out
        open_pieces[part].append(unit)
        sizes[part] += unit.size
        if sizes[part] >= PIECE:
            yield _piece(open_pieces[part])
            open_pieces[part], sizes[part] = [], 0
    for units_left in open_pieces.values():
        if units_left:
            yield _piece(units_left)


def _piece(units: Sequence[Unit]) -> Piece:
    texts, sizes, begins, held_out = zip(*units, strict=True)
    return Piece(list(texts), list(begins), sum(sizes), held_out[0])


def take_sample(lines: Iterator[str]) -> list[str]:
    """The first lines of a text: all of them, if it is no longer than a sample."""
    sample: list[str] = []
    characters = 0
    for line in lines:
        sample.append(line)
        characters += len(line) + 1
        if characters >= SAMPLE:
            break
    return sample


def choose_rule(sample: Sequence[str], raw: bool, size: int, share: float | None, unit: str) -> HeldOutRule:
    """Choose what nobody has chosen: the share and the units, by a look at the beginning of the text.

    Args:
        sample: The first lines of the text.
        raw: Whether it is raw text.
        size: Bytes of the whole text, about; what is no more than the sample has is not believed.
        share: The share that is held out, if it is chosen.
        unit: ``documents``, ``lines``, or ``auto``.
    """
    characters = sum(map(len, sample)) + len(sample)
    if share is None:
        share = USUAL_SHARE if characters >= SAMPLE else _share_of_small(sample, raw)
    documents, lines = _count_documents(sample)
    larger = max(1.0, size / max(1, characters)) if characters >= SAMPLE else 1.0
    if unit == "documents" or (unit == "auto" and documents * larger * share >= WANTED_DOCUMENTS):
        return HeldOutRule(share)
    stretch = int(lines * larger * share / WANTED_STRETCHES)
    return HeldOutRule(share, min(STRETCH, max(1, stretch)))


def _share_of_small(sample: Sequence[str], raw: bool) -> float:
    """As much as gives enough words, within reason; words are counted in every so many lines only."""
    stretches = [sample[start : start + STRETCH] for start in range(0, len(sample), len(sample) // 20 + STRETCH)]
    characters = sum(len(line) for stretch in stretches for line in stretch)
    words = sum(len(words) for stretch in stretches for words in split_lines(stretch, raw))
    total = words * sum(map(len, sample)) / max(1, characters)
    return min(LARGEST_SHARE, max(USUAL_SHARE, WANTED_WORDS / max(1.0, total)))


def _count_documents(lines: Iterable[str]) -> tuple[int, int]:
    """Documents, and lines that are not blank."""
    documents = filled = 0
    before_blank = True
    for line in lines:
        blank = not line or line.isspace()
        documents += before_blank and not blank
        filled += not blank
        before_blank = blank
    return documents, filled
