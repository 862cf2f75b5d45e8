"""Word similarity: Spearman correlation of cosines with human ratings of word pairs (WordSim, SimLex, MEN, ...).

Words are rated without context, so each is embedded in isolation. Only static vectors lack words. A pair with a word
that the model does not know is left out of one figure, and counts as a cosine of 0 in the other (as in gensim).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from polyseme.analysis.layer_vectors import embed_isolated, known_mask, layer_choices, layer_name
from polyseme.embedding.interfaces import Embedder
from polyseme.embedding.layers import LayerChoice
from polyseme.embedding.similarity import unit
from polyseme.errors import FormatError, InputError
from polyseme.tasks.metrics import spearman
from polyseme.text.corpus import open_text

_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d+)?|\.\d+)")


@dataclass(frozen=True)
class RatedPair:
    """A word pair and its similarity as rated by people."""

    first: str
    second: str
    rating: float


@dataclass(frozen=True)
class SetSimilarity:
    """Spearman correlation of one layer on one set of rated pairs.

    Attributes:
        name: Name of the set.
        layer: Layer of the model.
        pairs: Number of pairs in the set.
        known: Number of pairs with both words known to the model.
        spearman: Over the known pairs; NaN if they are too few, or all equal.
        spearman_all: Over all pairs, unknown ones with a cosine of 0.
    """

    name: str
    layer: int | str
    pairs: int
    known: int
    spearman: float
    spearman_all: float


@dataclass(frozen=True)
class SimilarityResult:
    """Spearman correlations of a model on several sets of rated pairs."""

    model: str
    rows: tuple[SetSimilarity, ...]


def read_pairs(path: str | Path) -> list[RatedPair]:
    """Read rated pairs: two words and a number a line, separated by tabs, semicolons, commas or spaces.

    Columns between the words and the first number, and all after it, are ignored, and so is a heading without a number:
    the published files can be read as they are.
    """
    with open_text(path) as lines:
        rows = [(number, _columns(line)) for number, line in enumerate(lines, start=1) if line.strip()]
    if not rows:
        raise InputError(f"{path} is empty; expected two words and a number a line")
    if _rating(rows[0][1]) is None:
        rows = rows[1:]
    pairs = [_pair(columns, f"{path}, line {number}") for number, columns in rows]
    if not pairs:
        raise FormatError(f"{path} has no numbers; expected two words and a number a line")
    return pairs


def similarity(
    embedder: Embedder, sets: Mapping[str, Sequence[RatedPair]], layers: LayerChoice = "all"
) -> SimilarityResult:
    """Spearman correlation between cosine similarities and ratings, for each set and layer."""
    if not sets:
        raise InputError("there is no set of rated pairs; give at least one")
    for name, pairs in sets.items():
        if not pairs:
            raise InputError(f"the set {name} has no pairs; give at least one")
    choices = layer_choices(layers, embedder.num_layers)
    words = list(dict.fromkeys(word for pairs in sets.values() for each in pairs for word in (each.first, each.second)))
    arrays = embed_isolated(embedder, words, choices)
    row = {word: number for number, word in enumerate(words)}
    is_known = known_mask(embedder, words, arrays)
    rows = []
    for name, pairs in sets.items():
        places = np.array([(row[each.first], row[each.second]) for each in pairs]).T
        ratings = np.array([each.rating for each in pairs])
        both = is_known[places].all(axis=0)
        for choice, vectors in zip(choices, arrays, strict=True):
            cosines = np.where(both, (unit(vectors[places[0]]) * unit(vectors[places[1]])).sum(axis=1), 0)
            figures = spearman(cosines[both], ratings[both]), spearman(cosines, ratings)
            rows.append(SetSimilarity(name, layer_name(choice), len(pairs), int(both.sum()), *figures))
    return SimilarityResult(embedder.name, tuple(rows))


def _columns(line: str) -> list[str]:
    separator = next((mark for mark in ("\t", ";", ",") if mark in line), None)
    return [column.strip() for column in line.split(separator)]


def _rating(columns: Sequence[str]) -> float | None:
    """The rating in a line: the first number after the two words."""
    return next((float(column) for column in columns[2:] if _NUMBER.fullmatch(column)), None)


def _pair(columns: Sequence[str], place: str) -> RatedPair:
    rating = _rating(columns)
    if rating is None or not all(columns[:2]):
        raise FormatError(f"{place}: expected two words and a number, got {' '.join(columns)!r:.60}")
    return RatedPair(columns[0], columns[1], rating)
