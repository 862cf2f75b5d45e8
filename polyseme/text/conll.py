"""CoNLL and CoNLL-U files: labelled text in columns, a word per line, a blank line after each sentence.

Files may be compressed. Two layouts are distinguished by the first line that holds a word:

- *CoNLL-U*: ten columns separated by tabs, the first a word's number. Lines that begin with ``#`` are comments; lines
  of a multiword token (``1-2``) and of an empty node (``8.1``) are skipped, since neither is a word of the sentence;
  ``_`` in a column says that it holds nothing.
- *plain columns* (CoNLL-2000, CoNLL-2003, WNUT and kin): any number of columns, separated by tabs or, where there are
  no tabs, by spaces. Nothing is a comment, for ``#`` is a word; ``-DOCSTART-`` lines are dropped.

All lines of a file have the same number of columns, or it is refused. Columns count from 1, as with ``cut``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from os import PathLike
from typing import NamedTuple

from polyseme.errors import ConfigError, FormatError, InputError, nearest
from polyseme.text.corpus import expand, open_text

CONLLU = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
FEATS = CONLLU.index("feats")
_WORD_NUMBER = re.compile(r"\d+")
_NO_WORD = re.compile(r"\d+[-.]\d+")
_DOCUMENT = "-DOCSTART-"
_FEW = 1000  # lines within which the first row must come
_LOOKED_AT = 200  # lines by which a file of columns is recognised
_ENOUGH = 8  # words that must be among them


@dataclass(frozen=True)
class LabelSpec:
    """Which labels to read from a file: a column, or a morphological feature.

    Attributes:
        column: A number from 1, or in CoNLL-U a name (``upos``). None is ``upos`` in CoNLL-U, else the last column.
        feature: A feature in the ``feats`` column of CoNLL-U, like ``Tense``; instead of a column.
        words: The column of the words; None is the second in CoNLL-U, else the first.
    """

    column: str | int | None = None
    feature: str | None = None
    words: int | None = None

    def __post_init__(self) -> None:
        if self.column is not None and self.feature is not None:
            raise ConfigError(f"labels are a column or a feature; got both {self.column!r} and {self.feature!r}")


class LabelledSentence(NamedTuple):
    """Labelled sentence: words and a label for each; None where a word has none."""

    words: list[str]
    labels: list[str | None]


class ConllRow(NamedTuple):
    """Row of a CoNLL file: a line that holds a word."""

    line: int
    columns: list[str]


class ConllSentence(NamedTuple):
    """Sentence of a CoNLL file: its rows, and whether the file is CoNLL-U."""

    rows: list[ConllRow]
    is_conllu: bool


def read_conll(path: str | PathLike[str]) -> Iterator[ConllSentence]:
    """Read the sentences of one CoNLL file, as rows of columns."""
    with open_text(path) as lines:
        yield from _sentences(enumerate(lines, start=1), str(path))


def read_labelled(path: str | PathLike[str], spec: LabelSpec | None = None) -> Iterator[LabelledSentence]:
    """Read labelled sentences from a file, a folder or a pattern; an error if no word has a label."""
    spec = spec or LabelSpec()
    features: Counter[str] = Counter()
    words = labelled = 0
    for source in expand(path):
        for sentence in read_conll(source):
            found = _labels(sentence, spec, str(source))
            words += len(found.words)
            labelled += sum(label is not None for label in found.labels)
            if spec.feature and not labelled:
                features.update(_features(sentence))
            yield found
    if not words:
        raise InputError(f"{path}: holds no words; expected a word per line and its labels in columns")
    if not labelled:
        raise InputError(f"{path}: no word has {_described(spec)}.{_available(spec, features)}")


def label_name(path: str | PathLike[str], spec: LabelSpec) -> str:
    """Name of the labels for people: the feature, the column's name, or its number."""
    if spec.feature:
        return spec.feature
    first = next(read_conll(expand(path)[0]), None)
    if first is None:
        return "labels"
    width = len(first.rows[0].columns)
    column = _column(spec.column, first.is_conllu, width, str(path))
    return CONLLU[column] if first.is_conllu else f"column {column + 1}"


def _sentences(lines: Iterator[tuple[int, str]], name: str) -> Iterator[ConllSentence]:
    rows: list[ConllRow] = []
    first = list(_lines_to_first_row(islice(lines, _FEW)))
    layout = _Layout.of(first[-1][1]) if first else None
    for number, line in chain(first, lines):
        if not line.strip():
            if rows and layout:
                yield ConllSentence(rows, layout.is_conllu)
            rows = []
        elif layout and (columns := layout.split(line, f"{name}, line {number}")):
            rows.append(ConllRow(number, columns))
    if rows and layout:
        yield ConllSentence(rows, layout.is_conllu)


def _lines_to_first_row(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield lines up to the first that is surely a row; until then ``#`` may be a comment or a word."""
    for number, line in lines:
        yield number, line
        if line.strip() and not line.startswith(("#", _DOCUMENT)):
            return


@dataclass(frozen=True)
class _Layout:
    """Column layout of one file, and whether it is CoNLL-U."""

    columns: int
    separator: str | None
    is_conllu: bool

    @classmethod
    def of(cls, line: str) -> _Layout:
        """Detect the layout from the first row."""
        separator = "\t" if "\t" in line.strip() else None
        columns = _split_columns(line, separator)
        numbered = _WORD_NUMBER.fullmatch(columns[0]) or _NO_WORD.fullmatch(columns[0])
        return cls(len(columns), separator, separator == "\t" and len(columns) == len(CONLLU) and bool(numbered))

    def split(self, line: str, place: str) -> list[str] | None:
        """Split a line into columns; None if it holds no word."""
        if self.is_conllu and line.startswith("#"):
            return None
        columns = _split_columns(line, self.separator)
        if columns[0] == _DOCUMENT:
            return None
        if len(columns) != self.columns:
            hash_is_word = " (# begins a comment in CoNLL-U only)" if line.startswith("#") else ""
            raise FormatError(
                f"{place}: has {len(columns)} columns, but the file's first row has {self.columns}{hash_is_word}"
            )
        if not self.is_conllu:
            return columns
        if _NO_WORD.fullmatch(columns[0]):
            return None
        if not _WORD_NUMBER.fullmatch(columns[0]):
            raise FormatError(f"{place}: begins with {columns[0]!r:.60} where CoNLL-U has a word's number")
        return columns


def _split_columns(line: str, separator: str | None) -> list[str]:
    """Split at tabs, or at runs of blanks; not at U+00A0 and the like, which stand inside words."""
    return line.split(separator) if separator else re.split("[ \t]+", line.strip(" \t"))


def _labels(sentence: ConllSentence, spec: LabelSpec, name: str) -> LabelledSentence:
    place = f"{name}, line {sentence.rows[0].line}"
    width = len(sentence.rows[0].columns)
    words = _column_number(spec.words or (2 if sentence.is_conllu else 1), width, place)
    if spec.feature:
        if not sentence.is_conllu:
            raise InputError(f"{place}: only CoNLL-U (ten columns, separated by tabs) has features; give a column")
        labels = [parse_features(row.columns[FEATS]).get(spec.feature) for row in sentence.rows]
    else:
        column = _column(spec.column, sentence.is_conllu, width, place)
        empty = "_" if sentence.is_conllu else None
        labels = [None if row.columns[column] == empty else row.columns[column] for row in sentence.rows]
    return LabelledSentence([row.columns[words] for row in sentence.rows], labels)


def _column(column: str | int | None, is_conllu: bool, width: int, place: str) -> int:
    if column is None:
        return CONLLU.index("upos") if is_conllu else width - 1
    if str(column).isdecimal():
        return _column_number(int(column), width, place)
    if is_conllu and str(column).lower() in CONLLU:
        return CONLLU.index(str(column).lower())
    if is_conllu:
        near = nearest(str(column).lower(), CONLLU)
        raise InputError(f"{place}: CoNLL-U has no column {column!r}; its columns are {', '.join(CONLLU)}.{near}")
    raise InputError(f"{place}: only CoNLL-U has column names; give a number from 1 to {width}, not {column!r}")


def _column_number(column: int, width: int, place: str) -> int:
    if not 1 <= column <= width:
        raise InputError(f"{place}: there is no column {column}; the file has columns 1 to {width}")
    return column - 1


def parse_features(text: str) -> dict[str, str]:
    """Parse the morphological features of a word: ``Number=Sing|Person=3``."""
    return dict(_pair(part) for part in text.split("|") if "=" in part)


def _pair(part: str) -> tuple[str, str]:
    name, _, value = part.partition("=")
    return name, value


def _features(sentence: ConllSentence) -> Iterator[str]:
    for row in sentence.rows:
        yield from parse_features(row.columns[FEATS])


def _described(spec: LabelSpec) -> str:
    return f"the feature {spec.feature!r}" if spec.feature else f"a label in column {spec.column or 'upos'}"


def _available(spec: LabelSpec, features: Counter[str]) -> str:
    if not spec.feature:
        return " Every value is '_', which means that it is unknown."
    if not features:
        return " The file has no features."
    known: Sequence[str] = [f"{name:.30}" for name, _ in features.most_common(12)]
    return f" It has {', '.join(known)}.{nearest(spec.feature, features)}"


def looks_like_columns(path: str | PathLike[str]) -> bool:
    """Whether the beginning of a file looks like CoNLL: lines of equally many columns, and blank lines in between."""
    sources = expand(path)
    with open_text(sources[0]) as lines:
        some = [line.split() for line in islice(lines, _LOOKED_AT) if not line.startswith(("# ", _DOCUMENT))]
    widths = {len(columns) for columns in some if columns}
    filled = sum(map(bool, some))
    return filled >= _ENOUGH and len(widths) == 1 and min(widths) > 1 and any(not columns for columns in some[:-1])
