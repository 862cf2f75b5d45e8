"""Lines to units, which are trained on or held out as a whole, and units to chunks of work.

A document is the lines up to a blank one, or to the end of the file. A unit is a document or, where a text has too few
of those, a stretch of lines of one. Whether a unit is held out depends on nothing but its text, so it is the same in
every run, on every machine, and for every copy of the text: its SHA-256 as a number in [0, 1) is below the share.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from polyseme.errors import InputError
from polyseme.text.corpus import Paths, Source, expand, open_text, split_lines

COMPRESSED = {".gz": 3.0, ".bz2": 4.0, ".xz": 3.5, ".zst": 3.0}  # bytes of text for one of the file, about
LONGEST_UNIT = 1 << 20  # characters; what follows them in a document is held out or not as they are
CHUNK_BYTES = 1 << 21  # bytes that one process works on at a time
STRETCH = 20  # lines of a unit that is no document

SAMPLE = 20_000_000  # characters at the beginning of the text that the choice of a rule looks at
USUAL_SHARE = 1 / 256
LARGEST_SHARE = 1 / 20
WANTED_WORDS = 20_000
WANTED_DOCUMENTS = 8  # to be expected in the held-out part: with these, chance leaves it empty once in 3,000 texts
WANTED_STRETCHES = 20  # shorter ones are taken, rather than fewer


@dataclass(frozen=True)
class TextSources:
    """Files to train on, and files to measure with where these are given apart."""

    training: tuple[Source, ...]
    held_out: tuple[Source, ...] = ()

    @classmethod
    def find(cls, paths: Paths, held_out: Paths, folder: Path) -> TextSources:
        """The files meant: none is in both parts, and none lies in the folder of our own output."""
        apart = _outside(folder, expand(held_out), ())
        found = expand(paths)
        training = _outside(folder, found, apart)
        if not training:
            names = ", ".join(map(str, found[:3])) or "nothing"
            raise InputError(f"{names}: there is no text to train on but what is held out, or lies in {folder}")
        return cls(tuple(training), tuple(apart))

    @property
    def read_once(self) -> bool:
        """Whether standard input is among them, which nobody can compare with what it was."""
        return "-" in (*self.training, *self.held_out)

    @property
    def size(self) -> int | None:
        """Bytes of text, roughly where it is compressed, or None where nobody knows."""
        return (
            None if self.read_once else int(sum(_size(path) * COMPRESSED.get(path.suffix, 1) for path in self._paths()))
        )

    @property
    def bytes_total(self) -> int | None:
        """Bytes of text, where that is known for certain."""
        return None if any(path.suffix in COMPRESSED for path in self._paths()) else self.size

    def identities(self) -> list[dict[str, Any]]:
        """By what the same files are recognised: path, size, and the time of the last change."""
        return [
            {"held_out": held_out, **_identity(source)}
            for held_out, sources in ((False, self.training), (True, self.held_out))
            for source in sources
        ]

    def _paths(self) -> list[Path]:
        return [source for source in (*self.training, *self.held_out) if isinstance(source, Path)]


def _outside(folder: Path, sources: Collection[Source], others: Collection[Source]) -> list[Source]:
    left_out = {_absolute(source) for source in others}
    return [
        source
        for source in sources
        if _absolute(source) not in left_out and not (isinstance(source, Path) and folder in source.absolute().parents)
    ]


def _absolute(source: Source) -> str:
    return "-" if source == "-" else str(source.absolute())


def _identity(source: Source) -> dict[str, Any]:
    if source == "-":
        return {"path": "-"}
    return {"path": _absolute(source), "size": _size(source), "mtime_ns": source.stat().st_mtime_ns}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}.") from error


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


class TextUnit(NamedTuple):
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


class TextChunk(NamedTuple):
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


def cut_units(lines: Iterable[str], rule: HeldOutRule) -> Iterator[TextUnit]:
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
            yield TextUnit(text, len(encoded) + 1, begins or held_out != before, held_out)
            decided = held_out if rule.lines is None else None
            begins, before = False, held_out
            gathered, characters = [], 0
        if blank:
            begins, decided = True, None


def gather_chunks(units: Iterable[TextUnit]) -> Iterator[TextChunk]:
    """Put units together to what is worth a process's while, training and held-out text apart."""
    open_chunks: dict[bool, list[TextUnit]] = {False: [], True: []}
    sizes = {False: 0, True: 0}
    for unit in units:
        part = unit.held_out
        open_chunks[part].append(unit)
        sizes[part] += unit.size
        if sizes[part] >= CHUNK_BYTES:
            yield _chunk(open_chunks[part])
            open_chunks[part], sizes[part] = [], 0
    for units_left in open_chunks.values():
        if units_left:
            yield _chunk(units_left)


def _chunk(units: Sequence[TextUnit]) -> TextChunk:
    texts, sizes, begins, held_out = zip(*units, strict=True)
    return TextChunk(list(texts), list(begins), sum(sizes), held_out[0])


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
