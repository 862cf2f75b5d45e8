"""Out-of-vocabulary words: is the base word of an unseen form or misspelling among its nearest neighbours?

Forms and misspellings are generated from common words (`generated_words`). Each is embedded without context, and so are
the common words; then its base word should be among the nearest of them. Neighbours go by cosine similarity of the
vectors as they are, and again after *whitening*: the common words then vary equally along each principal component, so
that no few components (frequency, part of speech) drown the rest.

A model that has vectors for the words of a list only, finds nothing: its share is 0 by construction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import numpy as np

from polyseme.analysis.layer_vectors import embed_isolated, known_mask
from polyseme.analysis.words.generated_words import GeneratedWord, WordLists, generate_forms, generate_misspellings
from polyseme.backends.static import StaticEncoder
from polyseme.embedding.interfaces import Embedder
from polyseme.embedding.similarity import unit
from polyseme.errors import ConfigError, FormatError, InputError
from polyseme.formats import open_softmax
from polyseme.tasks.metrics import wilson_interval

COMMONEST = 20_000  # words that neighbours are searched among
METRICS = ("cosine", "whitened")
_NOISE = 1e-6  # share of the largest variance below which a principal component is noise
_BLOCK = 1 << 23  # cosines held at a time


@dataclass(frozen=True)
class SpellingSettings:
    """Settings of the out-of-vocabulary measurement.

    Attributes:
        count: Number of words of each kind to generate.
        nearest: Number of neighbours that count as found.
        commonest: Number of common words to search among, from the start of the list.
        seed: Seed of the random number generator.
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
    """A generated word, its nearest neighbours, and the rank of its base word (1 is the nearest; 0: no vector)."""

    made: GeneratedWord
    nearest: tuple[str, ...]
    rank: int


@dataclass(frozen=True)
class RuleShare:
    """How many of the words that one rule generated have their base word among the nearest."""

    rule: str
    count: int
    found: int


@dataclass(frozen=True)
class SpellingScore:
    """Recall of the base word for one kind of generated words and one metric.

    Attributes:
        kind: ``forms`` or ``misspellings``.
        metric: ``cosine`` or ``whitened``.
        count: Number of generated words.
        readable: Number of words for which the model has a vector.
        found: Number of words whose base word is among the nearest.
        share: ``found`` divided by ``count``.
        low: Lower end of its 95 % Wilson interval.
        high: Upper end of its 95 % Wilson interval.
        first: Share of words whose base word is the nearest.
        rules: Counts by rule.
        answers: The neighbours of each word.
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
    """How well a model traces words that it never saw back to their base words.

    Attributes:
        model: The model's name.
        among: Number of common words that were searched.
        excluded: Number of seen words that were not generated.
        nearest: Number of neighbours that count as found.
        seed: Seed of the random number generator.
        scores: One for each kind and metric.
    """

    model: str
    among: int
    excluded: int
    nearest: int
    seed: int
    scores: tuple[SpellingScore, ...]


def known_words(model: str | Path, embedder: Embedder) -> list[str]:
    """The vocabulary of a model, the most frequent words first: of its softmax, or of its static vectors."""
    if isinstance(embedder, StaticEncoder):
        return [embedder.table.word(row) for row in range(embedder.num_words)]
    try:
        vocabulary = open_softmax(model).vocabulary
    except FormatError as error:
        raise FormatError(
            f"{error}. So it has no vocabulary; give one, the most frequent words first: --words FILE"
        ) from error
    special = (vocabulary.bos, vocabulary.eos, vocabulary.unk)
    return [word for word in vocabulary if word not in special]


def spelling(
    embedder: Embedder, words: Sequence[str], seen: Collection[str] = (), settings: SpellingSettings | None = None
) -> SpellingResult:
    """Generate out-of-vocabulary words, and search for their base words by layer 0.

    Args:
        embedder: The model to measure; its layer 0 embeds each word in isolation.
        words: Known words, the most frequent first. None of them is generated; the first 20,000 are searched.
        seen: Further words not to generate: those of the training text that are too rare for the list.
        settings: How many words, and so on.
    """
    settings = settings or SpellingSettings()
    among = list(dict.fromkeys(words))[: settings.commonest]
    lists = WordLists(frozenset(words), frozenset(words).union(seen))
    generated = _generate(among, lists, settings)
    pool = _Pool(among, embed_isolated(embedder, among, [0])[0])
    scores = []
    for kind, items in generated.items():
        generated = [item.word for item in items]
        found = embed_isolated(embedder, generated, [0])
        readable = known_mask(embedder, generated, found)
        for metric in METRICS:
            answers = pool.answer(items, np.where(readable[:, None], found[0], 0), metric, settings.nearest)
            scores.append(_score((kind, metric), answers, int(readable.sum()), settings.nearest))
    return SpellingResult(embedder.name, len(among), len(lists.seen), settings.nearest, settings.seed, tuple(scores))


def _generate(among: Sequence[str], lists: WordLists, settings: SpellingSettings) -> dict[str, list[GeneratedWord]]:
    made = {
        "forms": generate_forms(among, lists, settings.count, settings.seed),
        "misspellings": generate_misspellings(among, lists, settings.count, settings.seed),
    }
    for kind, items in made.items():
        if not items:
            raise InputError(
                f"no {kind} can be made from these {len(among):,} words; give English ones, the most frequent first"
            )
    return made


class _Pool:
    """The common words that neighbours are searched among, plain and whitened."""

    def __init__(self, words: Sequence[str], vectors: np.ndarray) -> None:
        self._words, self._row = words, {word: row for row, word in enumerate(words)}
        self._mean = vectors.mean(axis=0)
        self._whitening = _whitening(vectors - self._mean)
        self._vectors = {metric: self._transform(metric, vectors) for metric in METRICS}

    def answer(
        self, items: Sequence[GeneratedWord], vectors: np.ndarray, metric: str, nearest: int
    ) -> list[SpellingAnswer]:
        """The nearest neighbours of each generated word; none for one without a vector."""
        answers = []
        readable = np.asarray(vectors.any(axis=1))
        step = max(1, _BLOCK // len(self._words))
        for first in range(0, len(items), step):
            some = slice(first, first + step)
            cosines = self._transform(metric, vectors[some]) @ self._vectors[metric].T
            answers += map(self._answer, items[some], cosines, readable[some], repeat(nearest))
        return answers

    def _answer(self, item: GeneratedWord, cosines: np.ndarray, readable: bool, nearest: int) -> SpellingAnswer:
        if not readable:
            return SpellingAnswer(item, (), 0)
        best = np.argsort(-cosines, kind="stable")[:nearest].tolist()
        rank = 1 + int((cosines > cosines[self._row[item.base]]).sum())
        return SpellingAnswer(item, tuple(self._words[int(row)] for row in best), rank)

    def _transform(self, metric: str, vectors: np.ndarray) -> np.ndarray:
        return unit(vectors) if metric == "cosine" else unit((vectors - self._mean) @ self._whitening)


def _whitening(centred: np.ndarray) -> np.ndarray:
    """The whitening matrix (dim, components); principal components without variance are left out."""
    variances, directions = np.linalg.eigh(centred.T.astype(np.float64) @ centred / max(1, len(centred)))
    kept = variances > _NOISE * variances.max(initial=0)
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
