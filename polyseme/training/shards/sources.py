"""Text sources: input files, their split into training and held-out text, and chunks for worker processes.

A document is the lines up to a blank one, or to the end of the file. The split is made by units: a unit is a document
or, where a text has too few of those, a run of lines of one. Whether a unit is held out depends on nothing but its
text, so it is the same in every run, on every machine, and for every copy of the text: the SHA-256 of the text, as a
number in [0, 1), is below the held-out fraction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from polyseme.errors import InputError
from polyseme.text.corpus import Paths, Source, expand, open_text, split_lines

COMPRESSION_RATIOS = {".gz": 3.0, ".bz2": 4.0, ".xz": 3.5, ".zst": 3.0}  # rough bytes of text per byte of file
LONGEST_UNIT = 1 << 20  # characters; the rest of a longer document follows the decision on its first unit
CHUNK_BYTES = 1 << 21  # text that a worker process takes at a time
RUN_LINES = 20  # most lines of a unit that is not a document

SAMPLE = 20_000_000  # characters at the start of the text by which the rule is chosen
USUAL_FRACTION = 1 / 256
LARGEST_FRACTION = 1 / 20
HELD_OUT_WORDS = 20_000
HELD_OUT_DOCUMENTS = 8  # expected number; with 8, the held-out split is empty once in 3,000 texts
HELD_OUT_RUNS = 20  # shorter runs are taken, rather than fewer


@dataclass(frozen=True)
class TextSources:
    """Text files to train on, and files to evaluate on where these are given separately."""

    training: tuple[Source, ...]
    held_out: tuple[Source, ...] = ()

    @classmethod
    def find(cls, paths: Paths, held_out: Paths, folder: Path) -> TextSources:
        """Find the files; none is in both splits, and none lies in the output folder."""
        separate = _outside(folder, expand(held_out), ())
        found = expand(paths)
        training = _outside(folder, found, separate)
        if not training:
            names = ", ".join(map(str, found[:3])) or "nothing"
            raise InputError(
                f"{names}: no text is left to train on besides held-out files and files in {folder}; give other files"
            )
        return cls(tuple(training), tuple(separate))

    @property
    def read_once(self) -> bool:
        """Whether standard input is among them, which cannot be read twice."""
        return "-" in (*self.training, *self.held_out)

    @property
    def size(self) -> int | None:
        """Size of the text in bytes, estimated for compressed files, or None for standard input."""
        return (
            None
            if self.read_once
            else int(sum(_size(path) * COMPRESSION_RATIOS.get(path.suffix, 1) for path in self._paths()))
        )

    @property
    def bytes_total(self) -> int | None:
        """Exact size of the text in bytes, or None where it is not known."""
        return None if any(path.suffix in COMPRESSION_RATIOS for path in self._paths()) else self.size

    def identities(self) -> list[dict[str, Any]]:
        """What identifies the files when shards are reused: path, size and modification time."""
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
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


@dataclass(frozen=True)
class HeldOutRule:
    """Rule of the held-out split, by a hash of the text.

    Attributes:
        share: Fraction of the text that is held out, about.
        lines: Most lines of a unit, or None where documents are the units.
    """

    share: float = 0.0
    lines: int | None = None

    def holds(self, encoded: bytes) -> bool:
        """Whether the unit with this text (UTF-8, its lines joined by one newline) is held out."""
        if not self.share:
            return False
        return int.from_bytes(hashlib.sha256(encoded).digest()[:8], "big") < self.share * 2**64


class TextUnit(NamedTuple):
    """A unit of text, which is trained on or held out as a whole; a very long document has several.

    Attributes:
        text: The lines, joined by newlines.
        size: Size of the text in bytes.
        starts: Whether a document starts here, or the unit before it is in the other split.
        held_out: Whether it is held out.
    """

    text: str
    size: int
    starts: bool
    held_out: bool


class TextChunk(NamedTuple):
    """Consecutive units of one split, for one worker process."""

    texts: list[str]
    starts: list[bool]
    size: int
    held_out: bool


def read_lines(sources: Iterable[Source]) -> Iterator[str]:
    """Read the lines of all files, with a blank line after each, since no document crosses files."""
    for source in sources:
        with open_text(source) as lines:
            yield from lines
        yield ""


def cut_units(lines: Iterable[str], rule: HeldOutRule) -> Iterator[TextUnit]:
    """Group lines into units, and decide for each whether it is held out."""
    gathered: list[str] = []
    characters = 0
    decided: bool | None = None  # the decision for the rest of a document longer than a unit
    starts, before = True, False
    for line in lines:
        blank = not line or line.isspace()
        if not blank:
            gathered.append(line)
            characters += len(line) + 1
        if gathered and (blank or len(gathered) == rule.lines or characters >= LONGEST_UNIT):
            text = "\n".join(gathered)
            encoded = text.encode()
            held_out = rule.holds(encoded) if decided is None else decided
            yield TextUnit(text, len(encoded) + 1, starts or held_out != before, held_out)
            decided = held_out if rule.lines is None else None
            starts, before = False, held_out
            gathered, characters = [], 0
        if blank:
            starts, decided = True, None


def gather_chunks(units: Iterable[TextUnit]) -> Iterator[TextChunk]:
    """Gather units into chunks of a few megabytes, training and held-out text separately."""
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
    texts, sizes, starts, held_out = zip(*units, strict=True)
    return TextChunk(list(texts), list(starts), sum(sizes), held_out[0])


def take_sample(lines: Iterator[str]) -> list[str]:
    """Read the first lines of a text, up to `SAMPLE` characters."""
    sample: list[str] = []
    characters = 0
    for line in lines:
        sample.append(line)
        characters += len(line) + 1
        if characters >= SAMPLE:
            break
    return sample


def choose_rule(sample: Sequence[str], raw: bool, size: int, share: float | None, unit: str) -> HeldOutRule:
    """Choose the held-out fraction and the units that the user has not set, by a sample of the text.

    Args:
        sample: The first lines of the text.
        raw: Whether it is raw text.
        size: Estimated bytes of the whole text; ignored where it is smaller than the sample.
        share: The held-out fraction, if it is set.
        unit: ``documents``, ``lines``, or ``auto``.
    """
    characters = sum(map(len, sample)) + len(sample)
    if share is None:
        share = USUAL_FRACTION if characters >= SAMPLE else _fraction_of_small_text(sample, raw)
    documents, lines = _count_documents(sample)
    larger = max(1.0, size / max(1, characters)) if characters >= SAMPLE else 1.0
    if unit == "documents" or (unit == "auto" and documents * larger * share >= HELD_OUT_DOCUMENTS):
        return HeldOutRule(share)
    run = int(lines * larger * share / HELD_OUT_RUNS)
    return HeldOutRule(share, min(RUN_LINES, max(1, run)))


def _fraction_of_small_text(sample: Sequence[str], raw: bool) -> float:
    """The held-out fraction of a small text that gives enough words; words are counted in a subset of the lines."""
    runs = [sample[start : start + RUN_LINES] for start in range(0, len(sample), len(sample) // 20 + RUN_LINES)]
    characters = sum(len(line) for run in runs for line in run)
    words = sum(len(words) for run in runs for words in split_lines(run, raw))
    total = words * sum(map(len, sample)) / max(1, characters)
    return min(LARGEST_FRACTION, max(USUAL_FRACTION, HELD_OUT_WORDS / max(1.0, total)))


def _count_documents(lines: Iterable[str]) -> tuple[int, int]:
    """Count documents, and lines that are not blank."""
    documents = filled = 0
    before_blank = True
    for line in lines:
        blank = not line or line.isspace()
        documents += before_blank and not blank
        filled += not blank
        before_blank = blank
    return documents, filled
