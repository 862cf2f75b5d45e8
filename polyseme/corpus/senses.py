"""Word sense induction: the uses of a word in a corpus, clustered by their vectors without any labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import TYPE_CHECKING

import numpy as np

from polyseme.corpus.kmeans import spherical_kmeans
from polyseme.corpus.uses import Use, Uses
from polyseme.embedding.layers import LayerChoice
from polyseme.embedding.similarity import unit
from polyseme.errors import ConfigError, InputError
from polyseme.plots import COLOURS, LEGEND, new_figure, tidy
from polyseme.progress import track

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MIN_Z = 1.0  # standard errors by which a word must be more frequent around a cluster to be a collocate of it
_COMMON = 0.1  # share of the other clusters' sentences above which a word is common everywhere and tells nothing
_NULL_SAMPLES = 19  # without clusters, to see what silhouette chance gives; beating all of them is p = 1/20
_SIGNIFICANT = 0.05
_RESTARTS = 10


@dataclass(frozen=True)
class ClusterSettings:
    """Settings of the clustering of a word's uses.

    Attributes:
        clusters: How many; by default the number with the best silhouette.
        most: The largest number of clusters to try then.
        examples: Typical uses to show for each cluster.
        seed: Seed of the random number generator.
    """

    clusters: int | None = None
    most: int = 6
    examples: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("clusters", "most"):
            value = getattr(self, name)
            if value is not None and value < 2:
                raise ConfigError(f"{name} must be 2 or more, not {value}; a single cluster separates nothing")


@dataclass(frozen=True)
class Cluster:
    """A cluster of similar uses of a word.

    Attributes:
        size: How many uses it has.
        company: Its collocates: words in their sentences that are rarer in those of the other clusters.
        typical: The uses nearest to the centroid.
    """

    size: int
    company: tuple[str, ...]
    typical: tuple[Use, ...]


@dataclass(frozen=True)
class Senses:
    """Induced senses of a word: its uses in clusters, the largest first.

    Attributes:
        layer: The layer whose vectors were clustered.
        silhouette: How well separated the clusters are, from -1 to 1; None for a single one.
        by_chance: The mean silhouette that the same search finds in normally distributed vectors of the same mean and
            covariance, which have no clusters.
        clusters: What they are.
        labels: For each use, the number of its cluster.
        points: For each use, its first two principal components.
        shares: The share of the variance that each of these explains.
        p: How often the search reaches this silhouette by chance, in 20 tries with this one; None for one cluster.
    """

    layer: LayerChoice
    silhouette: float | None
    by_chance: float | None
    clusters: tuple[Cluster, ...]
    labels: tuple[int, ...]
    points: tuple[tuple[float, float], ...]
    shares: tuple[float, float]
    p: float | None = None

    @property
    def is_evident(self) -> bool:
        """Whether the clusters are better separated than any that were found by chance."""
        return self.p is not None and self.p <= _SIGNIFICANT


def cluster_uses(uses: Uses, layer: LayerChoice = "top", settings: ClusterSettings | None = None) -> Senses:
    """Word sense induction: cluster the uses of a word by spherical k-means of their vectors."""
    settings = settings or ClusterSettings()
    vectors = unit(uses.vectors(layer))
    distinct = len(np.unique(vectors.round(5), axis=0))
    if settings.clusters and distinct < settings.clusters:
        raise InputError(
            f"the {len(uses):,} uses have {distinct} different vectors in this layer, too few for {settings.clusters} "
            "clusters; choose a layer that depends on context, or give more text"
        )
    labels, silhouette, null = _best_clustering(vectors, distinct, settings)
    points, shares = principal_plane(vectors)
    return Senses(
        layer,
        silhouette,
        float(np.mean(null)) if null else None,
        tuple(_cluster(uses, vectors, labels == number, settings) for number in range(labels.max(initial=0) + 1)),
        tuple(labels.tolist()),
        tuple((float(across), float(up)) for across, up in points),
        shares,
        (1 + sum(value >= (silhouette or 0) for value in null)) / (1 + len(null)) if null else None,
    )


def draw_senses(senses: Senses, word: str, model: str) -> Figure:
    """Plot the uses on their first two principal components, a colour for each cluster, with its collocates."""
    figure = new_figure(7.5, 5.5)
    axes = figure.subplots()
    points, labels = np.array(senses.points), np.array(senses.labels)
    for number, cluster in enumerate(senses.clusters):
        inside = points[labels == number]
        label = ": ".join([str(cluster.size), *([", ".join(cluster.company[:5])] if cluster.company else [])])
        axes.scatter(*inside.T, s=22, alpha=0.7, linewidths=0, color=COLOURS[number % len(COLOURS)], label=label)
    across, up = (f"principal component {n + 1} ({share:.0%} of variance)" for n, share in enumerate(senses.shares))
    tidy(axes, f"Uses of “{word}” ({model}, layer {senses.layer})", across, up)
    axes.legend(title="number of uses: words around them", alignment="left", fontsize=8, title_fontsize=8, **LEGEND)
    return figure


def _best_clustering(
    vectors: np.ndarray, distinct: int, settings: ClusterSettings
) -> tuple[np.ndarray, float | None, list[float]]:
    """Labels of the clustering with the best silhouette, that silhouette, and those chance gives; or one cluster."""
    tried = [settings.clusters] if settings.clusters else range(2, min(settings.most, distinct - 1) + 1)
    if not tried:
        return np.zeros(len(vectors), dtype=np.int64), None, []

    def search(points: np.ndarray) -> tuple[float, np.ndarray]:
        distances = _distances(points)
        found = (spherical_kmeans(points, k, np.random.default_rng(settings.seed), _RESTARTS) for k in tried)
        return max(((silhouette(distances, labels), labels) for labels in found), key=lambda result: result[0])

    score, labels = search(vectors)
    samples = track(_null_samples(vectors, settings.seed), "clustering random points", _NULL_SAMPLES, "samples")
    return labels, score, [search(sample)[0] for sample in samples]


def silhouette(distances: np.ndarray, labels: np.ndarray) -> float:
    """Mean silhouette coefficient (Rousseeuw 1987) of a clustering, given the distances (N, N); 0 for one cluster."""
    members = np.eye(labels.max() + 1)[labels]  # (N, clusters)
    sizes = members.sum(axis=0)
    members, sizes = members[:, sizes > 0], sizes[sizes > 0]
    if not 1 < len(sizes) < len(labels):
        return 0.0
    totals, own = distances @ members, members.astype(bool)
    inside = totals[own] / np.maximum(own @ sizes - 1, 1)
    outside = np.where(own, np.inf, totals / sizes).min(axis=1)
    return float(
        np.where(own @ sizes > 1, (outside - inside) / np.maximum(np.maximum(inside, outside), 1e-12), 0).mean()
    )


def _distances(vectors: np.ndarray) -> np.ndarray:
    """Euclidean distances (N, N) of unit vectors."""
    exact = vectors.astype(np.float64)
    return np.sqrt(np.maximum(2 - 2 * (exact @ exact.T), 0)) * (1 - np.eye(len(vectors)))


def _null_samples(vectors: np.ndarray, seed: int) -> Iterator[np.ndarray]:
    """Vectors without clusters: drawn from one normal distribution of the same mean and covariance."""
    mean = vectors.mean(axis=0)
    _, scales, axes = np.linalg.svd(vectors - mean, full_matrices=False)
    spread = (scales / sqrt(len(vectors)))[:, None] * axes
    rng = np.random.default_rng(seed)
    draws = (rng.standard_normal((len(vectors), len(scales))) for _ in range(_NULL_SAMPLES))
    return (unit((draw @ spread + mean).astype(np.float32)) for draw in draws)


def principal_plane(vectors: np.ndarray) -> tuple[np.ndarray, tuple[float, float]]:
    """The first two principal components of vectors (N, dim) as points (N, 2), and the share of variance of each."""
    left, scales, _ = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    points, shares = np.zeros((len(vectors), 2)), np.zeros(2)
    points[:, : len(scales)] = (left * scales)[:, :2]
    shares[: len(scales)] = (scales**2 / max(float((scales**2).sum()), 1e-12))[:2]
    return points, (float(shares[0]), float(shares[1]))


def _cluster(uses: Uses, vectors: np.ndarray, inside: np.ndarray, settings: ClusterSettings) -> Cluster:
    members = np.flatnonzero(inside)
    nearest = members[np.argsort(-(vectors[members] @ vectors[members].mean(axis=0)), kind="stable")]
    typical = list(dict.fromkeys(uses[int(number)] for number in nearest))[: settings.examples]
    others = [uses[int(number)] for number in np.flatnonzero(~inside)]
    return Cluster(len(members), collocates([uses[int(number)] for number in members], others), tuple(typical))


def collocates(uses: Sequence[Use], others: Sequence[Use], most: int = 8) -> tuple[str, ...]:
    """Collocates of some uses that are rarer around the others: the highest log odds ratios, in standard errors."""
    if not others:
        return ()
    here, there = _sentence_counts(uses), _sentence_counts(others)

    def z_score(word: str) -> float:
        odds = [
            (counts[word] + 0.5) / (total - counts[word] + 0.5)
            for counts, total in ((here, len(uses)), (there, len(others)))
        ]
        return log(odds[0] / odds[1]) / sqrt(1 / (here[word] + 0.5) + 1 / (there[word] + 0.5))

    rare = _COMMON * len(others)
    scores = {word: z_score(word) for word in here if here[word] > 1 and there[word] <= rare}
    found = [word for word, score in scores.items() if score > _MIN_Z]
    return tuple(sorted(found, key=lambda word: (-scores[word], word))[:most])


def _sentence_counts(uses: Sequence[Use]) -> Counter[str]:
    """In how many of the sentences each word occurs, except the word itself."""
    counts: Counter[str] = Counter()
    for use in uses:
        counts.update({word.lower() for word in use.words if word.isalpha() and len(word) > 2} - {use.word.lower()})
    return counts
