"""Word analogies by vector arithmetic: *a* is to *b* as *c* is to what?

The answer is the word whose vector has the highest cosine with b - a + c, all of length one (3CosAdd, Mikolov et al.
2013), the three words themselves excluded, case ignored. Candidates are, for static vectors, their first 300,000 words,
since files list the frequent ones first; for any other model the words of the questions, since it has no vocabulary of
its own. Figures are comparable only if the candidates are the same.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from polyseme.analysis.layer_vectors import embed_isolated, known_mask, layer_choices, layer_name
from polyseme.backends.static import StaticEncoder
from polyseme.embedding.interfaces import Embedder
from polyseme.embedding.layers import LayerChoice
from polyseme.embedding.similarity import unit
from polyseme.errors import FormatError, InputError
from polyseme.text.corpus import open_text

MAX_CANDIDATES = 300_000  # as in gensim
TOTAL = "total"
_BLOCK = 1 << 24  # cosines held at a time


class Question(NamedTuple):
    """An analogy question: *a* is to *b* as *c* is to *d*."""

    a: str
    b: str
    c: str
    d: str


@dataclass(frozen=True)
class SectionAnalogy:
    """Analogy accuracy of one layer on one section, or on all of them.

    Attributes:
        section: Name of the section.
        layer: Layer of the model.
        questions: Number of questions in the section.
        known: Number of questions whose words the model knows and whose answer is a candidate.
        correct: Number of correct answers.
        accuracy: Over the known questions; NaN if there are none.
        accuracy_all: Over all questions, unknown ones counted as wrong.
    """

    section: str
    layer: int | str
    questions: int
    known: int
    correct: int
    accuracy: float
    accuracy_all: float


@dataclass(frozen=True)
class AnalogyResult:
    """Analogy accuracy of a model by section and layer; the last row of each layer is the total."""

    model: str
    candidates: int
    rows: tuple[SectionAnalogy, ...]


def read_relations(path: str | Path) -> dict[str, list[Question]]:
    """Read analogy questions by section, laid out as word2vec's ``questions-words.txt``."""
    sections: dict[str, list[Question]] = {}
    name = ""
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            words = line.split()
            if words and words[0].startswith(":"):
                name = line.strip().removeprefix(":").strip()
            elif words:
                if len(words) != 4:
                    raise FormatError(
                        f"{path}, line {number}: expected four words, or a : and a name; got {len(words)} words"
                    )
                sections.setdefault(name or "questions", []).append(Question(*words))
    if not sections:
        raise InputError(f"{path} has no questions; expected four words a line")
    return sections


def read_candidates(path: str | Path) -> list[str]:
    """Read a vocabulary: the first word of each line, so a list with counts or a text file of vectors works too."""
    with open_text(path) as lines:
        words = [line.split(maxsplit=1)[0] for line in lines if line.strip()]
    if not words:
        raise InputError(f"{path} has no words; expected one a line")
    return words


def analogy(
    embedder: Embedder,
    sections: Mapping[str, Sequence[Question]],
    candidates: Sequence[str] | None = None,
    layers: LayerChoice = "all",
) -> AnalogyResult:
    """Answer the analogy questions of each section with each layer."""
    if not any(sections.values()):
        raise InputError("there are no analogy questions; give at least one")
    choices = layer_choices(layers, embedder.num_layers)
    question_words = list(
        dict.fromkeys(word for section in sections.values() for question in section for word in question)
    )
    pool = list(dict.fromkeys(_default_candidates(embedder, question_words) if candidates is None else candidates))
    vectors = embed_isolated(embedder, question_words, choices)
    among = vectors if pool == question_words else embed_isolated(embedder, pool, choices)
    words = _Words(question_words, known_mask(embedder, question_words, vectors))
    answers = _Words(pool, known_mask(embedder, pool, among))
    rows = [
        row
        for choice, one, other in zip(choices, vectors, among, strict=True)
        for row in _layer(layer_name(choice), sections, words.with_vectors(one), answers.with_vectors(other))
    ]
    return AnalogyResult(embedder.name, int(answers.known.sum()), tuple(rows))


def _default_candidates(embedder: Embedder, question_words: Sequence[str]) -> Sequence[str]:
    if not isinstance(embedder, StaticEncoder):
        return question_words
    return [embedder.table.word(row) for row in range(min(MAX_CANDIDATES, embedder.num_words))]


class _Words:
    """The words that a model knows, looked up without regard to case, and their vectors in one layer."""

    def __init__(self, words: Sequence[str], known: np.ndarray) -> None:
        self.known = known
        self.vectors = np.zeros((len(words), 0), dtype=np.float32)
        self.places: defaultdict[str, list[int]] = defaultdict(list)
        for place, (word, there) in enumerate(zip(words, known.tolist(), strict=True)):
            if there:
                self.places[word.casefold()].append(place)

    def with_vectors(self, vectors: np.ndarray) -> _Words:
        """The same words with the vectors of one layer."""
        other = copy.copy(self)
        other.vectors = unit(vectors)
        return other

    def __contains__(self, word: str) -> bool:
        return word.casefold() in self.places

    def vector(self, word: str) -> np.ndarray:
        return self.vectors[self.places[word.casefold()][0]]


def _layer(
    layer: int | str, sections: Mapping[str, Sequence[Question]], words: _Words, pool: _Words
) -> list[SectionAnalogy]:
    rows, totals = [], np.zeros(3, dtype=np.int64)
    for name, questions in sections.items():
        answerable = [each for each in questions if all(word in words for word in each) and each.d in pool]
        counts = (len(questions), len(answerable), _correct(answerable, words, pool))
        totals += counts
        rows.append(_row(name, layer, *counts))
    return [*rows, _row(TOTAL, layer, *totals.tolist())]


def _row(section: str, layer: int | str, questions: int, answerable: int, correct: int) -> SectionAnalogy:
    accuracy = correct / answerable if answerable else float("nan")
    return SectionAnalogy(section, layer, questions, answerable, correct, accuracy, correct / max(questions, 1))


def _correct(questions: Sequence[Question], words: _Words, pool: _Words) -> int:
    correct = 0
    step = max(1, _BLOCK // max(1, len(pool.vectors)))
    for first in range(0, len(questions), step):
        some = questions[first : first + step]
        targets = np.stack([words.vector(each.b) - words.vector(each.a) + words.vector(each.c) for each in some])
        cosines = targets @ pool.vectors.T
        cosines[:, ~pool.known] = -np.inf
        for row, each in zip(cosines, some, strict=True):
            row[[place for word in each[:3] for place in pool.places.get(word.casefold(), ())]] = -np.inf
            correct += int(row.argmax()) in pool.places[each.d.casefold()]
    return correct
