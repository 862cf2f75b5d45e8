"""Entities as labels of words, and back.

- *IOB1* (CoNLL-2003 as published): ``I-X`` inside an entity; ``B-X`` only where one entity follows another of its type.
- *IOB2*: every entity begins with ``B-X``.
- *BIOES*: an entity's last word is ``E-X``, and an entity of one word is ``S-X``. It is the scheme inside our models.
- *plain*: labels that are no entities, as parts of speech.

Files are not always what they promise, so labels are read as conlleval and seqeval read them: whatever cannot go on
with the entity before it begins another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

Scheme = Literal["plain", "IOB1", "IOB2", "BIOES"]
OUTSIDE = "O"
_ENTITY = re.compile(r"O|[BIES]-.+", re.DOTALL)


class Span(NamedTuple):
    """An entity: its words are ``begin`` up to, but not including, ``end``."""

    begin: int
    end: int
    type: str


class Constraints(NamedTuple):
    """Which labels may open a sentence, follow each other (from, to), and close a sentence."""

    start: np.ndarray  # (K,) of bool
    between: np.ndarray  # (K, K)
    end: np.ndarray  # (K,)


def detect(sentences: Iterable[Sequence[str]]) -> Scheme:
    """The scheme of some labelled sentences."""
    marks: set[str] = set()
    opened_by_inside = opened_by_begin = False
    for labels in sentences:
        if not all(map(is_entity_label, labels)):
            return "plain"
        marks.update(label[0] for label in labels)
        for before, label in pairwise((OUTSIDE, *labels)):
            follows_own_type = before != OUTSIDE and before[1:] == label[1:]
            opened_by_inside |= label[0] == "I" and not follows_own_type
            opened_by_begin |= label[0] == "B" and not follows_own_type
    if marks <= {OUTSIDE}:
        return "plain"
    if marks & {"E", "S"}:
        return "BIOES"
    return "IOB1" if opened_by_inside and not opened_by_begin else "IOB2"


def is_entity_label(label: str) -> bool:
    """Whether a label is ``O`` or a mark and a type, as ``B-PER``."""
    return _ENTITY.fullmatch(label) is not None


def read_spans(labels: Sequence[str]) -> list[Span]:
    """The entities of a sentence labelled in IOB1, IOB2, BIOES, or a mixture of them."""
    found: list[Span] = []
    begin, before = None, OUTSIDE
    for place, label in enumerate((*labels, OUTSIDE)):
        goes_on = label[0] in "IE" and before[0] in "BI" and label[1:] == before[1:]
        if begin is not None and not goes_on:
            found.append(Span(begin, place, before[2:]))
            begin = None
        if label != OUTSIDE and not goes_on:
            begin = place
        before = label
    return found


def write_spans(spans: Iterable[Span], length: int, scheme: Scheme) -> list[str]:
    """Labels for a sentence of so many words; the entities are in order and do not overlap."""
    labels = [OUTSIDE] * length
    before = Span(0, 0, "")
    for span in spans:
        begin, end, kind = span
        touches = begin > 0 and before.end == begin and before.type == kind
        first = "I" if scheme == "IOB1" and not touches else "B"
        labels[begin:end] = [f"{first}-{kind}", *[f"I-{kind}"] * (end - begin - 1)]
        if scheme == "BIOES":
            labels[end - 1] = f"{'S' if end - begin == 1 else 'E'}-{kind}"
        before = span
    return labels


def convert(labels: Sequence[str], scheme: Scheme) -> list[str]:
    """The same entities in another scheme."""
    return write_spans(read_spans(labels), len(labels), scheme)


def inside_labels(types: Iterable[str]) -> Iterator[str]:
    """All labels of BIOES for some types of entities."""
    yield OUTSIDE
    for kind in sorted(types):
        yield from (f"{mark}-{kind}" for mark in "BIES")


def constraints(labels: Sequence[str], scheme: Scheme) -> Constraints:
    """What a sequence of labels must obey: in BIOES an entity is finished before the next thing; plain is free."""
    count = len(labels)
    if scheme == "plain":
        return Constraints(np.ones(count, bool), np.ones((count, count), bool), np.ones(count, bool))
    opens = np.array([label[0] in "OBS" for label in labels])
    closes = np.array([label[0] in "OES" for label in labels])
    types = np.array([label[1:] for label in labels], dtype=object)
    within = ~closes[:, None] & ~opens & (types[:, None] == types)
    return Constraints(opens, closes[:, None] & opens | within, closes)
