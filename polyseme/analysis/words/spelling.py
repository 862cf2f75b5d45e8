"""Words never seen in training: does their spelling lead to the word that they come from?

Forms and misspellings are made of common words by rule and at random (`generated_words`). Each is embedded without
context, and so are the common words; the question is whether the word that it was made from is among the nearest of
them. It is asked by the cosine of the vectors as they are, and again of *whitened* ones: along each of their principal
directions, the common words then differ equally, so that no few directions (frequency, part of speech) drown the rest.

A model that has a vector for each word of a list, and for no other, finds nothing: its share is 0 by construction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import numpy as np

from polyseme.analysis.layer_vectors import embed_isolated, known_mask
from polyseme.analysis.senses.wic import wilson_interval
from polyseme.analysis.words.generated_words import GeneratedWord, WordLists, generate_forms, generate_misspellings
from polyseme.backends.static import StaticEncoder
from polyseme.embedding.interfaces import Embedder
from polyseme.errors import ConfigError, FormatError, InputError
from polyseme.formats import open_softmax
from polyseme.formats.vectors.search import unit

COMMONEST = 20_000  # words that are looked among
METRICS = ("cosine", "whitened")
_FLAT = 1e-6  # share of the largest variance below which a direction holds nothing but noise
_SCORES = 1 << 23  # cosines held at a time


@dataclass(frozen=True)
class SpellingSettings:
    """How to measure.

    Attributes:
        count: Words of each kind that are made.
        nearest: Neighbours among which the right one may be.
        commonest: Words that are looked among, the first so many of the list.
        seed: Of everything that is drawn.
    """

    count: int = 500
    nearest: int = 10
    commonest: int = COMMONEST
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("count", "nearest", "commonest"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be 1 or more, not {getattr(self, name)}")


@dataclass(frozen=True)
class SpellingAnswer:
    """A made word, its nearest neighbours, and the place of the right one among all (1 is the nearest); 0: none."""

    made: GeneratedWord
    nearest: tuple[str, ...]
    rank: int


@dataclass(frozen=True)
class RuleShare:
    """How many of the words that one rule made were traced back to their origin."""

    rule: str
    count: int
    found: int


@dataclass(frozen=True)
class SpellingScore:
    """One kind of made words by one metric.

    Attributes:
        kind: ``forms`` or ``misspellings``.
        metric: ``cosine`` or ``whitened``.
        count: Words that were made.
        readable: Those of which the model makes any vector.
        found: Those whose origin is among the nearest.
        share: That over the count, with Wilson's 95 % interval.
        low: Its lower end.
        high: Its upper end.
        first: Share of those whose origin is the very nearest.
        rules: The same by rule.
        answers: What was found for each.
    """

    kind: str
    metric: str
    count: int
    readable: int
    found: int
    share: float
    low: float
    high: float
    first: float
    rules: tuple[RuleShare, ...]
    answers: tuple[SpellingAnswer, ...]


@dataclass(frozen=True)
class SpellingResult:
    """What a model makes of words that it never saw.

    Attributes:
        model: Its name.
        among: Words that were looked among.
        excluded: Words that were not to be made, having been seen.
        nearest: Neighbours that counted.
        seed: Of the lot.
        scores: For each kind and metric one.
    """

    model: str
    among: int
    excluded: int
    nearest: int
    seed: int
    scores: tuple[SpellingScore, ...]


def known_words(model: str | Path, embedder: Embedder) -> list[str]:
    """The words that a model has a list of, the commonest first: those of its softmax, or of its static vectors."""
    if isinstance(embedder, StaticEncoder):
        return [embedder.table.word(row) for row in range(embedder.num_words)]
    try:
        vocabulary = open_softmax(model).vocabulary
    except FormatError as error:
        raise FormatError(
            f"{error}. So it has no list of words; give one, the commonest first: --words FILE"
        ) from error
    special = (vocabulary.bos, vocabulary.eos, vocabulary.unk)
    return [word for word in vocabulary if word not in special]


def spelling(
    embedder: Embedder, words: Sequence[str], seen: Collection[str] = (), settings: SpellingSettings | None = None
) -> SpellingResult:
    """Make words, and look for where they come from.

    Args:
        embedder: What is measured, by its layer 0, each word alone.
        words: Known words, the commonest first. None of them is made; the first 20,000 are what is looked among.
        seen: Further words that are not to be made: those of the training text that are too rare for the list.
        settings: How many, and so on.
    """
    settings = settings or SpellingSettings()
    among = list(dict.fromkeys(words))[: settings.commonest]
    lists = WordLists(frozenset(words), frozenset(words).union(seen))
    made = _make(among, lists, settings)
    pool = _Pool(among, embed_isolated(embedder, among, [0])[0])
    scores = []
    for kind, items in made.items():
        asked = [item.word for item in items]
        found = embed_isolated(embedder, asked, [0])
        readable = known_mask(embedder, asked, found)
        for metric in METRICS:
            answers = pool.answer(items, np.where(readable[:, None], found[0], 0), metric, settings.nearest)
            scores.append(_score((kind, metric), answers, int(readable.sum()), settings.nearest))
    return SpellingResult(embedder.name, len(among), len(lists.seen), settings.nearest, settings.seed, tuple(scores))


def _make(among: Sequence[str], lists: WordLists, settings: SpellingSettings) -> dict[str, list[GeneratedWord]]:
    made = {
        "forms": generate_forms(among, lists, settings.count, settings.seed),
        "misspellings": generate_misspellings(among, lists, settings.count, settings.seed),
    }
    for kind, items in made.items():
        if not items:
            raise InputError(
                f"no {kind} can be made of these {len(among):,} words; give English ones, the commonest first"
            )
    return made


class _Pool:
    """The common words as they are looked among."""

    def __init__(self, words: Sequence[str], vectors: np.ndarray) -> None:
        self._words, self._row = words, {word: row for row, word in enumerate(words)}
        self._middle = vectors.mean(axis=0)
        self._axes = _whitening(vectors - self._middle)
        self._vectors = {metric: self._seen_by(metric, vectors) for metric in METRICS}

    def answer(
        self, items: Sequence[GeneratedWord], vectors: np.ndarray, metric: str, nearest: int
    ) -> list[SpellingAnswer]:
        """The nearest of each made word; none for one without a vector."""
        answers = []
        there = np.asarray(vectors.any(axis=1))
        step = max(1, _SCORES // len(self._words))
        for first in range(0, len(items), step):
            some = slice(first, first + step)
            cosines = self._seen_by(metric, vectors[some]) @ self._vectors[metric].T
            answers += map(self._answer, items[some], cosines, there[some], repeat(nearest))
        return answers

    def _answer(self, item: GeneratedWord, cosines: np.ndarray, there: bool, nearest: int) -> SpellingAnswer:
        if not there:
            return SpellingAnswer(item, (), 0)
        best = np.argsort(-cosines, kind="stable")[:nearest].tolist()
        rank = 1 + int((cosines > cosines[self._row[item.base]]).sum())
        return SpellingAnswer(item, tuple(self._words[int(row)] for row in best), rank)

    def _seen_by(self, metric: str, vectors: np.ndarray) -> np.ndarray:
        return unit(vectors) if metric == "cosine" else unit((vectors - self._middle) @ self._axes)


def _whitening(centred: np.ndarray) -> np.ndarray:
    """Directions (dim, kept) along which vectors vary equally; those in which they do not vary are left out."""
    variances, directions = np.linalg.eigh(centred.T.astype(np.float64) @ centred / max(1, len(centred)))
    kept = variances > _FLAT * variances.max(initial=0)
    return (directions[:, kept] / np.sqrt(variances[kept])).astype(np.float32)


def _score(which: tuple[str, str], answers: Sequence[SpellingAnswer], readable: int, nearest: int) -> SpellingScore:
    ranks = np.array([answer.rank for answer in answers])
    right = (ranks > 0) & (ranks <= nearest)
    made = Counter(answer.made.rule for answer in answers)
    by_rule = Counter(answer.made.rule for answer, hit in zip(answers, right, strict=True) if hit)
    return SpellingScore(
        *which,
        count=len(answers),
        readable=readable,
        found=int(right.sum()),
        share=float(right.mean()),
        **dict(zip(("low", "high"), wilson_interval(int(right.sum()), len(answers)), strict=True)),
        first=float((ranks == 1).mean()),
        rules=tuple(RuleShare(rule, count, by_rule[rule]) for rule, count in made.items()),
        answers=tuple(answers),
    )
