"""How contextual a layer's vectors are, after Ethayarajh (2019).

- *self-similarity*: the mean cosine between a word's uses in different sentences; 1 when context changes nothing.
- *intra-sentence similarity*: the mean cosine between a sentence's words and their average.
- *maximum explainable variance*: the share of a word's uses that their first principal component explains, not centred,
  so that 1 means that one static vector could stand for all of them.

Vectors of a layer may all point one way, and then any two are alike. So each measure is corrected by what random words
give: the mean cosine of words from different sentences, and the variance that is explained for as many random words as
the word has uses. (The paper takes one group of 1,000 for all words; few vectors are explained better than many, so
that would flatter rare words.)

A text of any length is read once; so many of its sentences are chosen by lot and embedded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from polyseme.analysis.layer_vectors import layer_choices, layer_dim, layer_name, temporary_array
from polyseme.corpus.uses import check_vectors
from polyseme.embedding.interfaces import Embedder
from polyseme.embedding.layers import LayerChoice, choose
from polyseme.embedding.sentences import check_sentences
from polyseme.errors import ConfigError, InputError
from polyseme.formats.vectors.search import unit
from polyseme.plots import COLOURS, FAINT, LEGEND, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class GeometrySettings:
    """What is looked at.

    Attributes:
        layers: Which; ``all`` is each by itself.
        sentences: At most so many, by lot.
        words: At most so many distinct words, by lot.
        uses: At most so many of each word, in different sentences, by lot.
        min_uses: Words with fewer are left out.
        random_words: So many for the correction, each from another sentence.
        seed: Of every lot.
    """

    layers: LayerChoice = "all"
    sentences: int = 5_000
    words: int = 500
    uses: int = 20
    min_uses: int = 5
    random_words: int = 1_000
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("sentences", 2), ("words", 1), ("min_uses", 2), ("random_words", 2)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} must be {least} or more, not {getattr(self, name)}")
        if self.uses < self.min_uses:
            raise ConfigError(f"uses must be at least min_uses, {self.min_uses}; got {self.uses}")


@dataclass(frozen=True)
class CorrectedMeasure:
    """A mean, what random words give, and the difference."""

    raw: float
    baseline: float
    corrected: float


@dataclass(frozen=True)
class LayerGeometry:
    """One layer."""

    layer: int | str
    self_similarity: CorrectedMeasure
    intra_sentence: CorrectedMeasure
    explained_variance: CorrectedMeasure


@dataclass(frozen=True)
class WordGeometry:
    """One word: its self-similarity in each layer, not corrected; NaN where the model has no vector for it."""

    word: str
    uses: int
    self_similarity: tuple[float, ...]


@dataclass(frozen=True)
class GeometryResult:
    """How contextual the vectors of each layer are.

    Attributes:
        model: The model's name.
        sentences: That were embedded.
        uses: Of all words together.
        seed: Of every lot.
        layers: A row each.
        words: Those that were looked at, from the most contextual in the last row to the least.
    """

    model: str
    sentences: int
    uses: int
    seed: int
    layers: tuple[LayerGeometry, ...]
    words: tuple[WordGeometry, ...]


def geometry(
    embedder: Embedder, sentences: Iterable[Sequence[str]], settings: GeometrySettings | None = None
) -> GeometryResult:
    """CorrectedMeasure each layer on a text."""
    settings = settings or GeometrySettings()
    choices = layer_choices(settings.layers, embedder.num_layers)
    lot = np.random.default_rng(settings.seed)
    kept = _some_sentences(sentences, settings.sentences, lot)
    uses = _some_uses(kept, settings, lot)
    others = [(number, int(lot.integers(len(kept[number])))) for number in lot.permutation(len(kept))]
    others = others[: settings.random_words]
    places = [place for each in uses.values() for place in each] + others
    arrays, intra = _embed(embedder, kept, places, choices)
    rows, words = zip(*(_measure(array, uses, np.random.default_rng(settings.seed)) for array in arrays), strict=True)
    layers = tuple(
        LayerGeometry(layer_name(choice), row[0], _corrected(within, row[0].baseline), row[1])
        for choice, row, within in zip(choices, rows, intra, strict=True)
    )
    found = [WordGeometry(word, len(uses[word]), tuple(each)) for word, *each in zip(uses, *words, strict=True)]
    order = sorted(found, key=lambda each: (np.isnan(each.self_similarity[-1]), each.self_similarity[-1], each.word))
    return GeometryResult(embedder.name, len(kept), len(places) - len(others), settings.seed, layers, tuple(order))


Place = tuple[int, int]  # the number of a sentence, and of a word in it


def _some_sentences(sentences: Iterable[Sequence[str]], limit: int, lot: np.random.Generator) -> list[list[str]]:
    """Different sentences with two words or more, each as likely as any other."""
    kept: list[list[str]] = []
    seen = 0
    for words in check_sentences(sentences):
        if len(words) < 2:
            continue
        seen += 1
        if len(kept) < limit:
            kept.append(words)
        elif (place := int(lot.integers(seen))) < limit:
            kept[place] = words
    if not kept:
        raise InputError("no sentence of the text has two words or more; words are apart by spaces, or say --raw")
    return list({tuple(words): words for words in kept}.values())


def _some_uses(
    sentences: Sequence[Sequence[str]], settings: GeometrySettings, lot: np.random.Generator
) -> dict[str, list[Place]]:
    """Places of some words, by lot, each in sentences that differ."""
    places: defaultdict[str, list[Place]] = defaultdict(list)
    for number, words in enumerate(sentences):
        for word, place in {word: place for place, word in reversed(list(enumerate(words)))}.items():
            places[word].append((number, place))
    often = sorted(word for word, found in places.items() if len(found) >= settings.min_uses)
    if not often:
        raise InputError(
            f"no word stands in {settings.min_uses} of the {len(sentences):,} sentences; give more text, or a smaller "
            "min_uses"
        )
    chosen = sorted(lot.permutation(len(often))[: settings.words])
    return {
        often[word]: [places[often[word]][use] for use in lot.permutation(len(places[often[word]]))[: settings.uses]]
        for word in chosen
    }


def _embed(
    embedder: Embedder, sentences: Sequence[list[str]], places: Sequence[Place], choices: Sequence[LayerChoice]
) -> tuple[list[np.ndarray], np.ndarray]:
    """The vectors at some places, in that order, for each choice; and the mean similarity within sentences."""
    rows: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for row, (number, place) in enumerate(places):
        rows[number].append((row, place))
    arrays = [temporary_array(len(places), layer_dim(choice, embedder.num_layers, embedder.dim)) for choice in choices]
    within: list[list[float]] = [[] for _ in choices]
    for number, vectors in enumerate(embedder.embed(sentences)):
        check_vectors(vectors, sentences[number])
        for array, means, choice in zip(arrays, within, choices, strict=True):
            layer = choose(vectors, choice).astype(np.float32)
            means.append(_within(layer))
            for row, place in rows[number]:
                array[row] = layer[place]
    return arrays, np.array([_mean(means) for means in within])


def _within(vectors: np.ndarray) -> float:
    """The mean cosine of words with their average; words without a vector are not counted."""
    there = vectors[vectors.any(axis=1)]
    return float((unit(there) @ unit(vectors.mean(axis=0))).mean()) if len(there) > 1 else np.nan


def _measure(
    vectors: np.ndarray, uses: dict[str, list[Place]], lot: np.random.Generator
) -> tuple[tuple[CorrectedMeasure, CorrectedMeasure], list[float]]:
    """Self-similarity and explained variance of all words together, and the former of each."""
    ends = np.cumsum([len(places) for places in uses.values()])
    others = _there(vectors[ends[-1] :])
    groups = [_there(group) for group in np.split(vectors[: ends[-1]], ends[:-1])]
    alike = [_self_similarity(group) for group in groups]
    explained = [_explained(group) for group in groups]
    by_chance = [_explained(others[lot.permutation(len(others))[: len(group)]]) for group in groups]
    return (
        (_corrected(_mean(alike), _self_similarity(others)), _corrected(_mean(explained), _mean(by_chance))),
        alike,
    )


def _there(vectors: np.ndarray) -> np.ndarray:
    """Without those that are all zeros, which say that the model does not know the word."""
    return vectors[vectors.any(axis=1)]


def _self_similarity(vectors: np.ndarray) -> float:
    """The mean cosine of all pairs: of n unit vectors, (‖their sum‖² - n) / n(n - 1)."""
    count = len(vectors)
    if count < 2:
        return np.nan
    total = unit(vectors).sum(axis=0, dtype=np.float64)
    return float((total @ total - count) / (count * (count - 1)))


def _explained(vectors: np.ndarray) -> float:
    """The share of the squared lengths along the best single direction."""
    if len(vectors) < 2:
        return np.nan
    products = vectors.astype(np.float64) @ vectors.astype(np.float64).T
    return float(np.linalg.eigvalsh(products)[-1] / np.trace(products))


def _corrected(raw: float, baseline: float) -> CorrectedMeasure:
    return CorrectedMeasure(float(raw), float(baseline), float(raw - baseline))


def _mean(values: Iterable[float]) -> float:
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else np.nan


def draw_geometry(result: GeometryResult) -> Figure:
    """The three corrected measures by layer, and how alike random words are."""
    figure = new_figure(6.4, 4)
    axes = figure.subplots()
    places = range(len(result.layers))
    lines = {
        "self-similarity": ([row.self_similarity.corrected for row in result.layers], "o-"),
        "intra-sentence similarity": ([row.intra_sentence.corrected for row in result.layers], "s-"),
        "explainable variance": ([row.explained_variance.corrected for row in result.layers], "^-"),
    }
    for colour, (name, (values, style)) in zip(COLOURS, lines.items(), strict=False):
        axes.plot(places, values, style, color=colour, label=name)
    random_words = [row.self_similarity.baseline for row in result.layers]
    axes.plot(places, random_words, ".:", color=FAINT, label="random words (taken off)")
    axes.set_xticks(places, [str(row.layer) for row in result.layers])
    axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))
    axes.legend(fontsize=9, **LEGEND)
    tidy(axes, f"{result.model}: how much context changes vectors", "layer", "cosine, or share of variance")
    return figure
