"""Labelled sentences and sentence pairs from TSV, CSV or label-first files, one example per line.

Files may be compressed. Two layouts are distinguished by the first line:

- *columns separated by tabs*, or by commas in a ``.csv`` file. The first line is a header if it has requested names, or
  names that such files usually have (``sentence`` and ``label``; ``sentence_A``, ``sentence_B``,
  ``entailment_judgment`` and ``relatedness_score``, as in SICK), or if the caller says so. Without a header the columns
  are label and sentence; for pairs the two sentences and the label. Columns count from 1, as with ``cut``.
- *label first*: ``3 a gorgeous , witty movie .``, the label up to the first blank. Pairs cannot be written this way.

Blank lines are skipped. A sentence is words separated by white space, or raw text that is tokenised here.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Literal, NamedTuple

from polyseme.errors import ConfigError, FormatError, InputError, nearest
from polyseme.text.corpus import expand, open_text
from polyseme.text.tokenizer import tokenize

Kind = Literal["label", "number", "none"]
Column = str | int  # a name, or a number from 1, possibly as a string
_FIRST = ("sentence", "text", "question", "review", "sentence_a", "sentence1", "premise", "question1", "#1 string")
_SECOND = ("sentence_b", "sentence2", "hypothesis", "question2", "#2 string")
_LABEL = ("label", "gold_label", "entailment_judgment", "class", "category", "quality", "is_duplicate")
_NUMBER = ("score", "relatedness_score", "similarity", "relatedness", "label")


@dataclass(frozen=True)
class ColumnSpec:
    """Which columns of a file hold the sentences and the label, and of what kind the label is.

    Attributes:
        sentences: 1, or 2 for pairs.
        text: Their columns; None are the usual ones.
        label: The column of the label; None is the usual one.
        kind: What the label is: a ``label``, a ``number``, or ``none`` where there is none.
        coarse: Keep only what stands before the colon of a label like ``DESC:manner``.
        raw: The text is raw, and tokenised here.
        header: Whether the first line names the columns; None detects it.
    """

    sentences: int = 1
    text: tuple[Column, ...] | None = None
    label: Column | None = None
    kind: Kind = "label"
    coarse: bool = False
    raw: bool = False
    header: bool | None = None

    def __post_init__(self) -> None:
        if self.text is not None and len(self.text) != self.sentences:
            raise ConfigError(
                f"there should be {self.sentences} {'column' if self.sentences == 1 else 'columns'} of text, "
                f"not {len(self.text)}: {', '.join(map(str, self.text))}"
            )
        if self.header is False and self.named:
            raise ConfigError(f"without a header there is no column {self.named[0]!r}; give column numbers instead")

    @property
    def named(self) -> list[str]:
        """Columns that are requested by name."""
        requested = [*(self.text or ()), *([] if self.label is None else [self.label])]
        return [str(column) for column in requested if not str(column).isdecimal()]


class LabelledText(NamedTuple):
    """Labelled example: one or two sentences, and their label, number, or nothing."""

    sentences: tuple[list[str], ...]
    label: str | float | None


def read_labelled_text(path: str | PathLike[str], spec: ColumnSpec | None = None) -> Iterator[LabelledText]:
    """Read labelled examples from a file, a folder or a pattern; ``-`` is standard input."""
    spec, found = spec or ColumnSpec(), False
    for source in expand(path):
        with open_text(source) as lines:
            numbered = _csv_rows(lines, source) if ".csv" in Path(str(source)).suffixes else enumerate(lines, start=1)
            for example in _read(numbered, str(source), spec):
                found = True
                yield example
    if not found:
        raise InputError(f"{path}: holds no examples; expected one per line, with {_described(spec)}")


def _csv_rows(lines: Iterable[str], source: object) -> Iterator[tuple[int, str]]:
    """Rows of a CSV file as lines with tabs, and the number of the line that each ends on."""
    rows = csv.reader(line + "\n" for line in lines)
    try:
        for row in rows:
            yield rows.line_num, "\t".join(" ".join(cell.split()) for cell in row)
    except csv.Error as error:
        raise FormatError(f"{source}, line {rows.line_num}: cannot be read as CSV: {error}") from error


def split_words(text: str, raw: bool) -> list[str]:
    """Tokenise a text into words, all of them as one sentence."""
    return [word for sentence in tokenize(text) for word in sentence.words] if raw else text.split()


def _read(lines: Iterator[tuple[int, str]], name: str, spec: ColumnSpec) -> Iterator[LabelledText]:
    filled = ((number, line) for number, line in lines if line.strip())
    first = next(filled, None)
    if first is None:
        return
    place = f"{name}, line {first[0]}"
    if "\t" not in first[1] and not (spec.kind == "none" and spec.sentences == 1):
        _refuse_columns(spec, place)
        yield from (_label_first(line, spec, f"{name}, line {number}") for number, line in chain([first], filled))
        return
    layout = _Layout.of(first[1].split("\t"), spec, place)
    for number, line in filled if layout.has_header else chain([first], filled):
        yield layout.example(line.split("\t"), spec, f"{name}, line {number}")


@dataclass(frozen=True)
class _Layout:
    """Column layout of one file; columns count from 0."""

    width: int
    has_header: bool
    text: tuple[int, ...]
    label: int | None

    @classmethod
    def of(cls, first: Sequence[str], spec: ColumnSpec, place: str) -> _Layout:
        names = [name.strip().lower() for name in first]
        has_header = spec.header
        if has_header is None:
            has_header = bool(spec.named) or _is_header(names, spec)
        usual_text, usual_label = _default_columns(names if has_header else None, spec, len(first), place)
        text = tuple(_column_index(column, names, place) for column in spec.text or usual_text)
        if spec.kind == "none":
            return cls(len(first), has_header, text, None)
        label = _column_index(usual_label if spec.label is None else spec.label, names, place)
        return cls(len(first), has_header, text, label)

    def example(self, columns: Sequence[str], spec: ColumnSpec, place: str) -> LabelledText:
        if len(columns) != self.width:
            raise FormatError(f"{place}: has {len(columns)} columns, but the file's first line has {self.width}")
        sentences = tuple(split_words(columns[column], spec.raw) for column in self.text)
        return LabelledText(sentences, None if self.label is None else _parse_label(columns[self.label], spec, place))


def _is_header(names: Sequence[str], spec: ColumnSpec) -> bool:
    """Whether the first line is a header: it has usual names for the text and, where one is read, the label."""
    labels = {"label": _LABEL, "number": _NUMBER, "none": names}[spec.kind]
    text = [_FIRST, _SECOND][: spec.sentences]
    return all(any(name in known for name in names) for known in (*text, labels))


def _default_columns(
    names: Sequence[str] | None, spec: ColumnSpec, width: int, place: str
) -> tuple[tuple[Column, ...], Column]:
    """Default columns of text and label: by their usual names, or by their order."""
    if names is not None:
        known = [_FIRST, _SECOND][: spec.sentences]
        labels = _NUMBER if spec.kind == "number" else _LABEL
        found = [next((name for name in each if name in names), each[0]) for each in (*known, labels)]
        return tuple(found[:-1]), found[-1]
    needed = spec.sentences + (spec.kind != "none")
    if width < needed and (spec.text is None or (spec.label is None and spec.kind != "none")):
        raise FormatError(f"{place}: has {_counted(width)} separated by tabs; expected {_described(spec)}")
    if spec.sentences == 2:
        return (1, 2), 3
    return (1 if spec.kind == "none" else 2,), 1


def _column_index(column: Column, names: Sequence[str], place: str) -> int:
    if str(column).isdecimal():
        if not 1 <= int(column) <= len(names):
            raise InputError(f"{place}: there is no column {column}; the file has columns 1 to {len(names)}")
        return int(column) - 1
    name = str(column).lower()
    if name not in names:
        shown = ", ".join(f"{each:.30}" for each in names[:8])
        raise InputError(
            f"{place}: there is no column {column!r}; the first line has {shown}.{nearest(name, names)} "
            "Without a header, give column numbers"
        )
    return names.index(name)


def _label_first(line: str, spec: ColumnSpec, place: str) -> LabelledText:
    label, *text = line.split(maxsplit=1)
    return LabelledText((split_words(text[0] if text else "", spec.raw),), _parse_label(label, spec, place))


def _parse_label(text: str, spec: ColumnSpec, place: str) -> str | float:
    text = text.strip()
    if spec.kind == "number":
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise FormatError(f"{place}: expected a number, got {text!r:.40}; is it the right column?")
        return number
    label = text.split(":", 1)[0] if spec.coarse else text
    if not label:
        raise FormatError(f"{place}: has no label")
    return label


def _refuse_columns(spec: ColumnSpec, place: str) -> None:
    """Refuse requested columns where lines have no tabs, and so no columns."""
    if spec.sentences == 2:
        raise FormatError(f"{place}: has no tabs; expected {_described(spec)}")
    if spec.text or spec.label is not None:
        requested = ", ".join(str(column) for column in (*(spec.text or ()), spec.label) if column is not None)
        raise InputError(f"{place}: has no tabs, so there is no column {requested}; such lines begin with their label")


def _described(spec: ColumnSpec) -> str:
    text = "a sentence" if spec.sentences == 1 else "two sentences"
    if spec.kind == "none":
        return text if spec.sentences == 1 else f"{text} separated by tabs"
    what = f"a {spec.kind}"
    return f"{what} and {text}" if spec.sentences == 1 else f"{text} and {what} separated by tabs"


def _counted(width: int) -> str:
    return "one column" if width == 1 else f"{width} columns"
