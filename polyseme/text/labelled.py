"""Labelled sentences and pairs of sentences, one a line, plain or compressed.

Two layouts are told apart by the first line:

- *columns apart by tabs*. The first line is a header if it has names that are asked for, or names that such files
  usually have (``sentence`` and ``label``; ``sentence_A``, ``sentence_B``, ``entailment_judgment`` and
  ``relatedness_score``, as SICK's), or if one is told so. Without a header the columns are label and sentence; for
  pairs the two sentences and the label. Columns count from 1, as with ``cut``.
- *label first*: ``3 a gorgeous , witty movie .``, the label up to the first blank. Pairs cannot be written so.

Blank lines are skipped. A sentence is words apart by white space, or raw text that is cut into words here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from os import PathLike
from typing import Literal, NamedTuple

from polyseme.errors import ConfigError, FormatError, InputError, nearest
from polyseme.text.corpus import expand, open_text
from polyseme.text.tokenizer import tokenize

Kind = Literal["label", "number", "none"]
Column = str | int  # a name, or a number from 1, which may be typed
_FIRST = ("sentence", "text", "question", "review", "sentence_a", "sentence1", "premise", "question1", "#1 string")
_SECOND = ("sentence_b", "sentence2", "hypothesis", "question2", "#2 string")
_LABEL = ("label", "gold_label", "entailment_judgment", "class", "category", "quality", "is_duplicate")
_NUMBER = ("score", "relatedness_score", "similarity", "relatedness", "label")


@dataclass(frozen=True)
class ColumnSpec:
    """What is to be read out of a file.

    Attributes:
        sentences: 1, or 2 for pairs.
        text: Their columns; None are the usual ones.
        label: The column of the label; None is the usual one.
        kind: What the label is: a ``label``, a ``number``, or ``none`` where there is none.
        coarse: Of a label like ``DESC:manner`` take what stands before the colon.
        raw: The text is raw, and cut into words here.
        header: Whether the first line names the columns; None finds out.
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
            raise ConfigError(f"without a header there is no column {self.named[0]!r}; columns go by number then")

    @property
    def named(self) -> list[str]:
        """The columns that are asked for by name."""
        asked = [*(self.text or ()), *([] if self.label is None else [self.label])]
        return [str(column) for column in asked if not str(column).isdecimal()]


class LabelledText(NamedTuple):
    """One or two sentences, and their label, number, or nothing."""

    sentences: tuple[list[str], ...]
    label: str | float | None


def read_labelled_text(path: str | PathLike[str], wanted: ColumnSpec | None = None) -> Iterator[LabelledText]:
    """The examples of a file, or of all files below a folder or of a pattern; ``-`` is standard input."""
    wanted, found = wanted or ColumnSpec(), False
    for source in expand(path):
        with open_text(source) as lines:
            for example in _read(enumerate(lines, start=1), str(source), wanted):
                found = True
                yield example
    if not found:
        raise InputError(f"{path}: holds no examples; expected a line each, with {_described(wanted)}")


def split_words(text: str, raw: bool) -> list[str]:
    """The words of a text, all of them as one sentence."""
    return [word for sentence in tokenize(text) for word in sentence.words] if raw else text.split()


def _read(lines: Iterator[tuple[int, str]], name: str, wanted: ColumnSpec) -> Iterator[LabelledText]:
    filled = ((number, line) for number, line in lines if line.strip())
    first = next(filled, None)
    if first is None:
        return
    place = f"{name}, line {first[0]}"
    if "\t" not in first[1] and not (wanted.kind == "none" and wanted.sentences == 1):
        _refuse_columns(wanted, place)
        yield from (_label_first(line, wanted, f"{name}, line {number}") for number, line in chain([first], filled))
        return
    layout = _Layout.of(first[1].split("\t"), wanted, place)
    for number, line in filled if layout.has_header else chain([first], filled):
        yield layout.example(line.split("\t"), wanted, f"{name}, line {number}")


@dataclass(frozen=True)
class _Layout:
    """How the lines of one file are cut; columns count from 0."""

    width: int
    has_header: bool
    text: tuple[int, ...]
    label: int | None

    @classmethod
    def of(cls, first: Sequence[str], wanted: ColumnSpec, place: str) -> _Layout:
        names = [name.strip().lower() for name in first]
        has_header = wanted.header
        if has_header is None:
            has_header = bool(wanted.named) or _has_usual(names, wanted)
        usual_text, usual_label = _usual(names if has_header else None, wanted, len(first), place)
        text = tuple(_place(column, names, place) for column in wanted.text or usual_text)
        if wanted.kind == "none":
            return cls(len(first), has_header, text, None)
        label = _place(usual_label if wanted.label is None else wanted.label, names, place)
        return cls(len(first), has_header, text, label)

    def example(self, columns: Sequence[str], wanted: ColumnSpec, place: str) -> LabelledText:
        if len(columns) != self.width:
            raise FormatError(f"{place}: has {len(columns)} columns, but the file's first line has {self.width}")
        sentences = tuple(split_words(columns[column], wanted.raw) for column in self.text)
        return LabelledText(sentences, None if self.label is None else _answer(columns[self.label], wanted, place))


def _has_usual(names: Sequence[str], wanted: ColumnSpec) -> bool:
    """Whether a first line is a header that nobody asked for: it names text and, where one is wanted, a label."""
    labels = {"label": _LABEL, "number": _NUMBER, "none": names}[wanted.kind]
    text = [_FIRST, _SECOND][: wanted.sentences]
    return all(any(name in known for name in names) for known in (*text, labels))


def _usual(
    names: Sequence[str] | None, wanted: ColumnSpec, width: int, place: str
) -> tuple[tuple[Column, ...], Column]:
    """The columns where nothing else is said: by usual names, or by their order."""
    if names is not None:
        known = [_FIRST, _SECOND][: wanted.sentences]
        labels = _NUMBER if wanted.kind == "number" else _LABEL
        found = [next((name for name in each if name in names), each[0]) for each in (*known, labels)]
        return tuple(found[:-1]), found[-1]
    needed = wanted.sentences + (wanted.kind != "none")
    if width < needed and (wanted.text is None or (wanted.label is None and wanted.kind != "none")):
        raise FormatError(f"{place}: has {_counted(width)} apart by tabs; expected {_described(wanted)}")
    if wanted.sentences == 2:
        return (1, 2), 3
    return (1 if wanted.kind == "none" else 2,), 1


def _place(column: Column, names: Sequence[str], place: str) -> int:
    if str(column).isdecimal():
        if not 1 <= int(column) <= len(names):
            raise InputError(f"{place}: there is no column {column}; the file has columns 1 to {len(names)}")
        return int(column) - 1
    wanted = str(column).lower()
    if wanted not in names:
        shown = ", ".join(f"{name:.30}" for name in names[:8])
        raise InputError(
            f"{place}: there is no column {column!r}; the first line has {shown}.{nearest(wanted, names)} "
            "Without a header, columns go by number"
        )
    return names.index(wanted)


def _label_first(line: str, wanted: ColumnSpec, place: str) -> LabelledText:
    label, *text = line.split(maxsplit=1)
    return LabelledText((split_words(text[0] if text else "", wanted.raw),), _answer(label, wanted, place))


def _answer(text: str, wanted: ColumnSpec, place: str) -> str | float:
    text = text.strip()
    if wanted.kind == "number":
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise FormatError(f"{place}: should have a number, not {text!r:.40}; is it the right column?")
        return number
    label = text.split(":", 1)[0] if wanted.coarse else text
    if not label:
        raise FormatError(f"{place}: has no label")
    return label


def _refuse_columns(wanted: ColumnSpec, place: str) -> None:
    """A line without tabs has no columns."""
    if wanted.sentences == 2:
        raise FormatError(f"{place}: has no tabs; expected {_described(wanted)}")
    if wanted.text or wanted.label is not None:
        asked = ", ".join(str(column) for column in (*(wanted.text or ()), wanted.label) if column is not None)
        raise InputError(f"{place}: has no tabs, so there is no column {asked}; such lines begin with their label")


def _described(wanted: ColumnSpec) -> str:
    text = "a sentence" if wanted.sentences == 1 else "two sentences"
    if wanted.kind == "none":
        return text if wanted.sentences == 1 else f"{text} apart by tabs"
    what = f"a {wanted.kind}"
    return f"{what} and {text}" if wanted.sentences == 1 else f"{text} and {what} apart by tabs"


def _counted(width: int) -> str:
    return "one column" if width == 1 else f"{width} columns"
