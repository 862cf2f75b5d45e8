"""Geometry of contextual vectors: how contextual each layer is, corrected for anisotropy (Ethayarajh 2019).

- *self-similarity*: the mean cosine between a word's uses in different sentences; 1 if context changes nothing.
- *intra-sentence similarity*: the mean cosine between a sentence's words and their mean.
- *maximum explainable variance*: the share of the variance of a word's uses that their first principal component
  explains, not centred: 1 means that one static vector could replace all of them.

Vectors of a layer may all point the same way (anisotropy), and then any two are similar. So a baseline of random words
is subtracted from each measure: the mean cosine of words from different sentences, and the variance explained for as
many random words as the word has uses. (The paper takes one group of 1,000 for all words; few vectors are explained
better than many, so that would flatter rare words.)

A text of any length is read once; a random sample of its sentences is embedded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from polyseme.analysis.layer_vectors import layer_choices, layer_dim, layer_name, temporary_array
from polyseme.embedding.batching import check_sentences
from polyseme.embedding.interfaces import Embedder
from polyseme.embedding.layers import LayerChoice, check_vectors, choose
from polyseme.embedding.similarity import unit
from polyseme.errors import ConfigError, InputError
from polyseme.plots import COLOURS, FAINT, LEGEND, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class GeometrySettings:
    """Settings of the geometry measurement: what is sampled from the text.

    Attributes:
        layers: Which layers; ``all`` is each separately.
        sentences: Maximum number of sentences, sampled at random.
        words: Maximum number of distinct words, sampled at random.
        uses: Maximum number of uses of each word, in different sentences, sampled at random.
        min_uses: Words with fewer uses are left out.
        random_words: Number of random words for the baseline, each from another sentence.
        seed: Seed of the random number generator.
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
    """A mean over words, the baseline from random words, and their difference: corrected for anisotropy."""

    raw: float
    baseline: float
    corrected: float


@dataclass(frozen=True)
class LayerGeometry:
    """The three measures of contextuality for one layer."""

    layer: int | str
    self_similarity: CorrectedMeasure
    intra_sentence: CorrectedMeasure
    explained_variance: CorrectedMeasure


@dataclass(frozen=True)
class WordGeometry:
    """The self-similarity of one word in each layer, not corrected; NaN if the model has no vector for it."""

    word: str
    uses: int
    self_similarity: tuple[float, ...]


@dataclass(frozen=True)
class GeometryResult:
    """How contextual the vectors of each layer are.

    Attributes:
        model: The model's name.
        sentences: Number of embedded sentences.
        uses: Number of uses of all words together.
        seed: Seed of the random samples.
        layers: One row per layer.
        words: The sampled words, from the most contextual in the last layer to the least.
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
    """Measure self-similarity, intra-sentence similarity and explainable variance of each layer on a text."""
    settings = settings or GeometrySettings()
    choices = layer_choices(settings.layers, embedder.num_layers)
    rng = np.random.default_rng(settings.seed)
    kept = _sample_sentences(sentences, settings.sentences, rng)
    uses = _sample_uses(kept, settings, rng)
    random_words = [(number, int(rng.integers(len(kept[number])))) for number in rng.permutation(len(kept))]
    random_words = random_words[: settings.random_words]
    places = [place for each in uses.values() for place in each] + random_words
    arrays, intra = _embed(embedder, kept, places, choices)
    rows, words = zip(*(_measure(array, uses, np.random.default_rng(settings.seed)) for array in arrays), strict=True)
    layers = tuple(
        LayerGeometry(layer_name(choice), row[0], _corrected(within, row[0].baseline), row[1])
        for choice, row, within in zip(choices, rows, intra, strict=True)
    )
    found = [WordGeometry(word, len(uses[word]), tuple(each)) for word, *each in zip(uses, *words, strict=True)]
    order = sorted(found, key=lambda each: (np.isnan(each.self_similarity[-1]), each.self_similarity[-1], each.word))
    total = sum(map(len, uses.values()))
    return GeometryResult(embedder.name, len(kept), total, settings.seed, layers, tuple(order))


Place = tuple[int, int]  # number of the sentence, place of the word in it


def _sample_sentences(sentences: Iterable[Sequence[str]], limit: int, rng: np.random.Generator) -> list[list[str]]:
    """Reservoir sampling of sentences with two words or more; duplicates are dropped."""
    kept: list[list[str]] = []
    seen = 0
    for words in check_sentences(sentences):
        if len(words) < 2:
            continue
        seen += 1
        if len(kept) < limit:
            kept.append(words)
        elif (place := int(rng.integers(seen))) < limit:
            kept[place] = words
    if not kept:
        raise InputError("no sentence of the text has two words or more; separate words by spaces, or use --raw")
    return list({tuple(words): words for words in kept}.values())


def _sample_uses(
    sentences: Sequence[Sequence[str]], settings: GeometrySettings, rng: np.random.Generator
) -> dict[str, list[Place]]:
    """A random sample of words, and of the uses of each, in different sentences."""
    places: defaultdict[str, list[Place]] = defaultdict(list)
    for number, words in enumerate(sentences):
        for word, place in {word: place for place, word in reversed(list(enumerate(words)))}.items():
            places[word].append((number, place))
    frequent = sorted(word for word, found in places.items() if len(found) >= settings.min_uses)
    if not frequent:
        raise InputError(
            f"no word occurs in {settings.min_uses} of the {len(sentences):,} sentences; give more text, or a smaller "
            "min_uses"
        )
    chosen = [frequent[number] for number in sorted(rng.permutation(len(frequent))[: settings.words])]
    return {word: [places[word][use] for use in rng.permutation(len(places[word]))[: settings.uses]] for word in chosen}


def _embed(
    embedder: Embedder, sentences: Sequence[list[str]], places: Sequence[Place], choices: Sequence[LayerChoice]
) -> tuple[list[np.ndarray], np.ndarray]:
    """The vectors at some places, in that order, and the mean intra-sentence similarity, for each layer choice."""
    rows: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for row, (number, place) in enumerate(places):
        rows[number].append((row, place))
    arrays = [temporary_array(len(places), layer_dim(choice, embedder.num_layers, embedder.dim)) for choice in choices]
    within: list[list[float]] = [[] for _ in choices]
    for number, vectors in enumerate(embedder.embed(sentences)):
        check_vectors(vectors, sentences[number])
        for array, means, choice in zip(arrays, within, choices, strict=True):
            layer = choose(vectors, choice).astype(np.float32)
            means.append(_intra_sentence(layer))
            for row, place in rows[number]:
                array[row] = layer[place]
    return arrays, np.array([_mean(means) for means in within])


def _intra_sentence(vectors: np.ndarray) -> float:
    """Intra-sentence similarity: the mean cosine of words with their mean; words without a vector are not counted."""
    known = _nonzero(vectors)
    return float((unit(known) @ unit(vectors.mean(axis=0))).mean()) if len(known) > 1 else np.nan


def _measure(
    vectors: np.ndarray, uses: dict[str, list[Place]], rng: np.random.Generator
) -> tuple[tuple[CorrectedMeasure, CorrectedMeasure], list[float]]:
    """Self-similarity and explainable variance over all words, corrected, and the self-similarity of each word."""
    ends = np.cumsum([len(places) for places in uses.values()])
    others = _nonzero(vectors[ends[-1] :])
    groups = [_nonzero(group) for group in np.split(vectors[: ends[-1]], ends[:-1])]
    similarities = [_self_similarity(group) for group in groups]
    explained = [_explainable(group) for group in groups]
    by_chance = [_explainable(others[rng.permutation(len(others))[: len(group)]]) for group in groups]
    return (
        (_corrected(_mean(similarities), _self_similarity(others)), _corrected(_mean(explained), _mean(by_chance))),
        similarities,
    )


def _nonzero(vectors: np.ndarray) -> np.ndarray:
    """Without the vectors of zeros, which mean that the model does not know the word."""
    return vectors[vectors.any(axis=1)]


def _self_similarity(vectors: np.ndarray) -> float:
    """Self-similarity: the mean cosine of all pairs, which for n unit vectors is (‖sum‖² - n) / n(n - 1)."""
    count = len(vectors)
    if count < 2:
        return np.nan
    total = unit(vectors).sum(axis=0, dtype=np.float64)
    return float((total @ total - count) / (count * (count - 1)))


def _explainable(vectors: np.ndarray) -> float:
    """Maximum explainable variance: the share of the squared lengths along the first principal component."""
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
    """Plot the three corrected measures by layer, and the anisotropy baseline of random words."""
    figure = new_figure(6.4, 4)
    axes = figure.subplots()
    rows = range(len(result.layers))
    lines = {
        "self-similarity": ([row.self_similarity.corrected for row in result.layers], "o-"),
        "intra-sentence similarity": ([row.intra_sentence.corrected for row in result.layers], "s-"),
        "explainable variance": ([row.explained_variance.corrected for row in result.layers], "^-"),
    }
    for colour, (name, (values, style)) in zip(COLOURS, lines.items(), strict=False):
        axes.plot(rows, values, style, color=colour, label=name)
    random_words = [row.self_similarity.baseline for row in result.layers]
    axes.plot(rows, random_words, ".:", color=FAINT, label="random words (subtracted)")
    axes.set_xticks(rows, [str(row.layer) for row in result.layers])
    axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))
    axes.legend(fontsize=9, **LEGEND)
    tidy(axes, f"{result.model}: how contextual each layer is", "layer", "cosine or share of variance")
    return figure
