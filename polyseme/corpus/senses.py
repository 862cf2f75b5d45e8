"""The senses of a word without labels: its uses in a corpus, clustered by their vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import TYPE_CHECKING

import numpy as np

from polyseme.corpus.uses import Use, Uses
from polyseme.embedding.layers import LayerChoice
from polyseme.errors import ConfigError, InputError, require
from polyseme.formats.vectors.search import unit
from polyseme.plots import COLOURS, LEGEND, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TELLING = 1.0  # standard errors by which a word must be more frequent around a cluster to say something about it
_EVERYWHERE = 0.1  # share of the other clusters' sentences above which a word is everywhere and tells nothing
_CHANCES = 5  # clouds without clusters that are drawn to see what silhouette chance gives


@dataclass(frozen=True)
class ClusterSettings:
    """How uses are clustered.

    Attributes:
        clusters: How many; by silhouette where nothing is said.
        most: The largest number that is tried then.
        examples: Typical uses that are shown of each.
        seed: Of everything drawn at random.
    """

    clusters: int | None = None
    most: int = 6
    examples: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("clusters", "most"):
            value = getattr(self, name)
            if value is not None and value < 2:
                raise ConfigError(f"{name} must be 2 or more, not {value}; one cluster tells nothing")


@dataclass(frozen=True)
class Cluster:
    """Uses that are alike.

    Attributes:
        size: How many there are.
        company: Words that stand in their sentences more often than in those of the other clusters.
        typical: The uses nearest to their middle.
    """

    size: int
    company: tuple[str, ...]
    typical: tuple[Use, ...]


@dataclass(frozen=True)
class Senses:
    """The uses of a word in clusters, the largest first.

    Attributes:
        layer: Whose vectors were clustered.
        silhouette: How well the clusters are apart, from -1 to 1; None of a single one.
        by_chance: The silhouette of as many clusters in a cloud of the same spread that has none.
        clusters: What they are.
        labels: For each use, the number of its cluster.
        points: For each use, its place in the plane in which they differ most.
        shares: How much of all variance the two directions of that plane hold.
    """

    layer: LayerChoice
    silhouette: float | None
    by_chance: float | None
    clusters: tuple[Cluster, ...]
    labels: tuple[int, ...]
    points: tuple[tuple[float, float], ...]
    shares: tuple[float, float]


def cluster_uses(uses: Uses, layer: LayerChoice = "top", settings: ClusterSettings | None = None) -> Senses:
    """Cluster the uses of a word by their vectors, compared by cosine; k-means, the best of ten starts."""
    settings = settings or ClusterSettings()
    vectors = unit(uses.vectors(layer))
    distinct = len(np.unique(vectors.round(5), axis=0))
    if settings.clusters and distinct < settings.clusters:
        raise InputError(
            f"the {len(uses):,} uses have {distinct} different vectors in this layer, too few for {settings.clusters} "
            "clusters; choose a layer that looks at context, or more text"
        )
    labels, silhouette, by_chance = _best(vectors, distinct, settings)
    points, shares = _plane(vectors)
    return Senses(
        layer,
        silhouette,
        by_chance,
        tuple(_cluster(uses, vectors, labels == number, settings) for number in range(labels.max(initial=0) + 1)),
        tuple(labels.tolist()),
        tuple((float(across), float(up)) for across, up in points),
        shares,
    )


def draw_senses(senses: Senses, word: str, model: str) -> Figure:
    """The uses in a plane, a colour for each cluster, labelled by the company it keeps."""
    figure = new_figure(7.5, 5.5)
    axes = figure.subplots()
    points, labels = np.array(senses.points), np.array(senses.labels)
    for number, cluster in enumerate(senses.clusters):
        inside = points[labels == number]
        label = ": ".join([str(cluster.size), *([", ".join(cluster.company[:5])] if cluster.company else [])])
        axes.scatter(*inside.T, s=22, alpha=0.7, linewidths=0, color=COLOURS[number % len(COLOURS)], label=label)
    across, up = (f"principal component {n + 1} ({share:.0%})" for n, share in enumerate(senses.shares))
    tidy(axes, f"uses of “{word}”, {model}, layer {senses.layer}", across, up)
    axes.legend(title="uses, and the words around them", alignment="left", fontsize=8, title_fontsize=8, **LEGEND)
    return figure


def _best(
    vectors: np.ndarray, distinct: int, settings: ClusterSettings
) -> tuple[np.ndarray, float | None, float | None]:
    """Labels, the largest cluster first, their silhouette and what chance gives; vectors all alike are one cluster."""
    tried = [settings.clusters] if settings.clusters else range(2, min(settings.most, distinct - 1) + 1)
    results = [(_silhouette(vectors, labels), labels) for labels in (_kmeans(vectors, k, settings.seed) for k in tried)]
    if not results:
        return np.zeros(len(vectors), dtype=np.int64), None, None
    silhouette, labels = max(results, key=lambda result: result[0])
    sizes = np.bincount(labels)
    chance = [
        _silhouette(cloud, _kmeans(cloud, len(sizes), settings.seed)) for cloud in _clouds(vectors, settings.seed)
    ]
    order = np.argsort(np.argsort(-sizes, kind="stable"))
    return order[labels], silhouette, float(np.mean(chance))


def _kmeans(vectors: np.ndarray, clusters: int, seed: int) -> np.ndarray:
    kmeans = require("sklearn.cluster", "analysis").KMeans
    return kmeans(clusters, n_init=10, random_state=seed).fit_predict(vectors)


def _silhouette(vectors: np.ndarray, labels: np.ndarray) -> float:
    if not 1 < len(np.unique(labels)) < len(vectors):
        return 0.0
    return float(require("sklearn.metrics", "analysis").silhouette_score(vectors, labels))


def _clouds(vectors: np.ndarray, seed: int) -> list[np.ndarray]:
    """Vectors drawn from one normal distribution with the mean and the spread of those given."""
    mean = vectors.mean(axis=0)
    _, scales, axes = np.linalg.svd(vectors - mean, full_matrices=False)
    spread = (scales / sqrt(len(vectors)))[:, None] * axes
    draws = np.random.default_rng(seed).standard_normal((_CHANCES, len(vectors), len(scales)))
    return [unit((draw @ spread + mean).astype(np.float32)) for draw in draws]


def _plane(vectors: np.ndarray) -> tuple[np.ndarray, tuple[float, float]]:
    """The plane of most variance: places (uses, 2), and the share of all variance along each direction."""
    left, scales, _ = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    points = np.zeros((len(vectors), 2))
    known = (left * scales)[:, :2]
    points[:, : known.shape[1]] = known
    shares = np.zeros(2)
    shares[: len(scales)] = (scales**2 / max(float((scales**2).sum()), 1e-12))[:2]
    return points, (float(shares[0]), float(shares[1]))


def _cluster(uses: Uses, vectors: np.ndarray, inside: np.ndarray, settings: ClusterSettings) -> Cluster:
    members = np.flatnonzero(inside)
    nearest = members[np.argsort(-(vectors[members] @ vectors[members].mean(axis=0)), kind="stable")]
    typical = list(dict.fromkeys(uses[int(number)] for number in nearest))[: settings.examples]
    others = [uses[int(number)] for number in np.flatnonzero(~inside)]
    return Cluster(len(members), collocates([uses[int(number)] for number in members], others), tuple(typical))


def collocates(uses: Sequence[Use], others: Sequence[Use], most: int = 8) -> tuple[str, ...]:
    """The words around some uses that are rarer around others: those whose odds differ most, in standard errors."""
    if not others:
        return ()
    here, there = _around(uses), _around(others)

    def excess(word: str) -> float:
        odds = [
            (counts[word] + 0.5) / (total - counts[word] + 0.5)
            for counts, total in ((here, len(uses)), (there, len(others)))
        ]
        return log(odds[0] / odds[1]) / sqrt(1 / (here[word] + 0.5) + 1 / (there[word] + 0.5))

    rare = _EVERYWHERE * len(others)
    scores = {word: excess(word) for word in here if here[word] > 1 and there[word] <= rare}
    telling = [word for word, score in scores.items() if score > _TELLING]
    return tuple(sorted(telling, key=lambda word: (-scores[word], word))[:most])


def _around(uses: Sequence[Use]) -> Counter[str]:
    """In how many of the sentences each word stands, but for the word itself."""
    counts: Counter[str] = Counter()
    for use in uses:
        counts.update({word.lower() for word in use.words if word.isalpha() and len(word) > 2} - {use.word.lower()})
    return counts
