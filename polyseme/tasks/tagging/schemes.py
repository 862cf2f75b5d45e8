"""Labelling schemes of entities: IOB1, IOB2 and BIOES, detection, conversion and constraints.

- *IOB1* (CoNLL-2003 as published): ``I-X`` inside an entity; ``B-X`` only where one entity follows another of its type.
- *IOB2*: every entity begins with ``B-X``.
- *BIOES*: an entity's last word is ``E-X``, and an entity of one word is ``S-X``. It is the scheme inside our models.
- *plain*: labels that are no entities, as parts of speech.

Files are not always what they promise, so labels are read as conlleval and seqeval read them: whatever cannot
continue the entity before it starts another.
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
    """Detect the labelling scheme of some sentences."""
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
        continues = label[0] in "IE" and before[0] in "BI" and label[1:] == before[1:]
        if begin is not None and not continues:
            found.append(Span(begin, place, before[2:]))
            begin = None
        if label != OUTSIDE and not continues:
            begin = place
        before = label
    return found


def write_spans(spans: Iterable[Span], length: int, scheme: Scheme) -> list[str]:
    """Entities to labels for a sentence of ``length`` words; entities are in order and do not overlap."""
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
    """Convert the labels of a sentence to another scheme."""
    return write_spans(read_spans(labels), len(labels), scheme)


def inside_labels(types: Iterable[str]) -> Iterator[str]:
    """All BIOES labels for some types of entities."""
    yield OUTSIDE
    for kind in sorted(types):
        yield from (f"{mark}-{kind}" for mark in "BIES")


def constraints(labels: Sequence[str], scheme: Scheme) -> Constraints:
    """Allowed transitions between labels: BIOES finishes an entity before the next label; plain allows all."""
    count = len(labels)
    if scheme == "plain":
        return Constraints(np.ones(count, bool), np.ones((count, count), bool), np.ones(count, bool))
    opens = np.array([label[0] in "OBS" for label in labels])
    closes = np.array([label[0] in "OES" for label in labels])
    types = np.array([label[1:] for label in labels], dtype=object)
    within = ~closes[:, None] & ~opens & (types[:, None] == types)
    return Constraints(opens, closes[:, None] & opens | within, closes)
