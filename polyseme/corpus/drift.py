"""Semantic drift: which words are used differently in two corpora, of two periods or two domains.

Uses of a word are sampled from both, and compared by their vectors. Two samples of the same corpus differ too, the more
the smaller they are. So a permutation test shuffles the uses of both many times: a word has changed by what it differs
beyond that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from polyseme.corpus.uses import Reservoir, Use, embed_uses
from polyseme.embedding.interfaces import Embedder
from polyseme.embedding.layers import LayerChoice, layer_weights
from polyseme.embedding.similarity import unit
from polyseme.errors import ConfigError, InputError, nearest
from polyseme.plots import COLOURS, FAINT, LEGEND, new_figure, tidy
from polyseme.progress import stage, track

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURES = ("prototype", "pairwise")


@dataclass(frozen=True)
class DriftSettings:
    """Settings of the comparison of two corpora.

    Attributes:
        words: The words to compare; by default the most frequent that both corpora have.
        most: Maximum number of words to compare then.
        skip: Number of most frequent words to leave out then: articles, pronouns and the like.
        least: How often a word must occur in each corpus.
        uses: How many uses to sample from each.
        measure: ``prototype``, the cosine distance of the two mean vectors, or ``pairwise``, the mean over all pairs.
        permutations: How often the permutation test shuffles the uses.
        examples: Example uses to keep of each word from each corpus.
        seed: Seed of the random number generator.
    """

    words: tuple[str, ...] = ()
    most: int = 500
    skip: int = 100
    least: int = 20
    uses: int = 30
    measure: str = "prototype"
    permutations: int = 200
    examples: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            near = nearest(str(self.measure), MEASURES)
            raise ConfigError(f"measure must be prototype or pairwise, not {self.measure!r}.{near}")
        for name, smallest in (("most", 1), ("permutations", 1), ("skip", 0)):
            if getattr(self, name) < smallest:
                raise ConfigError(f"{name} must be {smallest} or more, not {getattr(self, name)}")
        if min(self.least, self.uses) < 2:
            raise ConfigError(f"least and uses must be 2 or more, not {self.least} and {self.uses}")


@dataclass(frozen=True)
class Change:
    """How much the use of one word changed between the corpora.

    Attributes:
        word: In lower case.
        counts: How often it occurs in each corpus.
        compared: How many of these uses were compared.
        distance: Between the uses in the one and those in the other, by the chosen measure.
        by_chance: The mean distance when the uses are shuffled.
        change: The distance less that.
        p: P value of the permutation test: how often shuffling gives at least this distance.
        examples: For each corpus its most characteristic uses.
    """

    word: str
    counts: tuple[int, int]
    compared: tuple[int, int]
    distance: float
    by_chance: float
    change: float
    p: float
    examples: tuple[tuple[Use, ...], tuple[Use, ...]]


@dataclass(frozen=True)
class Drift:
    """The words ranked by how much their use differs between two corpora.

    Attributes:
        model: The name of the model.
        layer: The layer whose vectors were compared.
        measure: ``prototype`` or ``pairwise``.
        typical: The median change: how far the corpora differ as a whole.
        changes: The words, the most changed first.
    """

    model: str
    layer: LayerChoice
    measure: str
    typical: float
    changes: tuple[Change, ...]


def compare_corpora(
    embedder: Embedder,
    first: Iterable[Sequence[str]],
    second: Iterable[Sequence[str]],
    layer: LayerChoice = "top",
    settings: DriftSettings | None = None,
) -> Drift:
    """Rank words by how differently two corpora use them; each corpus is read twice."""
    settings = settings or DriftSettings()
    corpora = (first, second)
    if any(iter(corpus) is corpus for corpus in corpora):
        raise ConfigError("each corpus is read twice, but an iterator can be read only once; give lists")
    layer_weights(layer, embedder.num_layers)
    with stage("counting words"):
        counts = [_count(corpus) for corpus in corpora]
    words = _choose_words(counts, settings)
    samples = [_Sample(embedder, corpus, words, layer, settings) for corpus in corpora]
    changes = [_change(word, counts, samples, settings) for word in track(words, "comparing", unit="words")]
    changes.sort(key=lambda change: -change.change)
    typical = float(np.median([change.change for change in changes]))
    return Drift(embedder.name, layer, settings.measure, typical, tuple(changes))


def draw_drift(drift: Drift, top: int = 20) -> Figure:
    """Plot the most changed words: the distance of their uses, and that of shuffled uses."""
    changes = drift.changes[:top][::-1]
    figure = new_figure(6.5, 1.2 + 0.26 * len(changes))
    axes = figure.subplots()
    heights = range(len(changes))
    for height, change in zip(heights, changes, strict=True):
        axes.plot([change.by_chance, change.distance], [height, height], color="#dddddd", zorder=1)
    axes.scatter([change.by_chance for change in changes], heights, color=FAINT, label="shuffled uses")
    axes.scatter([change.distance for change in changes], heights, color=COLOURS[0], label="between the corpora")
    title = f"Words used most differently ({drift.model}, layer {drift.layer})"
    tidy(axes, title, f"cosine distance ({drift.measure})", "")
    axes.set_yticks(heights, [change.word for change in changes])
    axes.grid(visible=False)
    axes.set_xlim(left=0)
    axes.legend(loc="lower right", **LEGEND)
    return figure


class _Sample:
    """A random sample of the uses of each word in one corpus, embedded, each sentence once."""

    def __init__(
        self,
        embedder: Embedder,
        corpus: Iterable[Sequence[str]],
        words: Sequence[str],
        layer: LayerChoice,
        settings: DriftSettings,
    ) -> None:
        reservoirs = {word: Reservoir(settings.uses, settings.seed + number) for number, word in enumerate(words)}
        for sentence in map(tuple, corpus):  # one copy for all uses in it
            for place, word in enumerate(sentence):
                if (reservoir := reservoirs.get(word.lower())) is not None:
                    reservoir.add(Use(sentence, place))
        uses = sorted((use for reservoir in reservoirs.values() for use in reservoir.uses()), key=lambda use: use.words)
        self.uses = embed_uses(embedder, uses, layer)
        self.vectors = unit(self.uses.vectors(layer))
        self.rows: dict[str, list[int]] = {word: [] for word in words}
        for row, use in enumerate(uses):
            self.rows[use.word.lower()].append(row)


def _count(corpus: Iterable[Sequence[str]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for words in corpus:
        counts.update(map(str.lower, words))
    if not counts:
        raise InputError("one of the two corpora has no words in it; give text in both")
    return counts


def _choose_words(counts: Sequence[Counter[str]], settings: DriftSettings) -> list[str]:
    """The given words, or else the most frequent in both corpora after those to skip."""
    least = settings.least
    requested = [word.lower() for word in dict.fromkeys(settings.words)]
    for word in requested:
        if min(count[word] for count in counts) < least:
            found = " and ".join(f"{count[word]:,}" for count in counts)
            raise InputError(
                f"{word!r} occurs {found} times in the corpora, and {least} in each are needed; "
                "give more text, or a lower least"
            )
    if requested:
        return requested
    both = [word for word in counts[0] if word.isalpha() and min(count[word] for count in counts) >= least]
    both.sort(key=lambda word: (-min(count[word] for count in counts), word))
    chosen = both[settings.skip :][: settings.most]
    if not chosen:
        raise InputError(
            f"the corpora share {len(both):,} words that occur {least} times or more in each, and the "
            f"{settings.skip} most frequent are skipped: nothing is left; give more text, or a lower least or skip"
        )
    return chosen


def _change(word: str, counts: Sequence[Counter[str]], samples: Sequence[_Sample], settings: DriftSettings) -> Change:
    groups = [sample.vectors[sample.rows[word]] for sample in samples]
    pooled, size = np.concatenate(groups), len(groups[0])
    rng = np.random.default_rng(settings.seed)
    shuffled = rng.random((settings.permutations, len(pooled))).argsort(axis=1) < size
    chance = _distances(pooled, shuffled, settings.measure)
    real = np.arange(len(pooled)) < size
    distance = float(_distances(pooled, real[None], settings.measure)[0])
    by_chance = float(chance.mean())
    return Change(
        word,
        (counts[0][word], counts[1][word]),
        (size, len(pooled) - size),
        distance,
        by_chance,
        distance - by_chance,
        float((1 + (chance >= distance).sum()) / (1 + len(chance))),
        (
            _typical(samples[0], samples[1], word, settings),
            _typical(samples[1], samples[0], word, settings),
        ),
    )


def _distances(pooled: np.ndarray, inside: np.ndarray, measure: str) -> np.ndarray:
    """For each split (splits, uses) of the uses into two groups, the distance between the groups."""
    first = inside.astype(np.float32)
    one = first @ pooled / first.sum(axis=1, keepdims=True)
    other = (1 - first) @ pooled / (1 - first).sum(axis=1, keepdims=True)
    if measure == "prototype":
        one, other = unit(one), unit(other)
    cosines = (one * other).sum(axis=1)  # of averages as they are, this is the average cosine of all pairs
    return (1 - cosines).clip(0)  # rounding may put equal vectors below 0


def _typical(mine: _Sample, theirs: _Sample, word: str, settings: DriftSettings) -> tuple[Use, ...]:
    """The most characteristic uses of one corpus: nearest to its mean and farthest from the other's."""
    rows = mine.rows[word]
    vectors = mine.vectors[rows]
    direction = unit(vectors.mean(axis=0)) - unit(theirs.vectors[theirs.rows[word]].mean(axis=0))
    order = np.argsort(-(vectors @ direction), kind="stable")
    return tuple(dict.fromkeys(mine.uses[rows[number]] for number in order))[: settings.examples]
