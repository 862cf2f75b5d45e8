"""Two corpora side by side, of two periods or two fields: which words changed their company most.

A word's uses are sampled from both, and compared by their vectors. Two samples of one and the same corpus differ too,
the more the fewer they are: so the uses of both are shuffled together and dealt out again many times, and a word has
changed by what it differs beyond that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from polyseme.corpus.uses import Reservoir, Use, embed_uses, layer_weights
from polyseme.embedding.interfaces import Embedder
from polyseme.embedding.layers import LayerChoice
from polyseme.embedding.similarity import unit
from polyseme.errors import ConfigError, InputError, nearest
from polyseme.plots import COLOURS, FAINT, LEGEND, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURES = ("prototype", "pairwise")


@dataclass(frozen=True)
class DriftSettings:
    """What is compared, and how.

    Attributes:
        words: The words to compare; where nothing is said, the most frequent that both corpora have.
        most: How many words at most are compared then.
        skip: How many of the most frequent words of all are left out then: articles, pronouns and their like.
        least: How often a word must stand in each corpus.
        uses: How many uses are sampled from each.
        measure: The cosine distance of the two average vectors, or the average distance of pairs across the corpora.
        permutations: How often the uses are shuffled and dealt out again.
        examples: Telling uses that are kept of each word from each corpus.
        seed: Of everything drawn at random.
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
            raise ConfigError("least and uses must be 2 or more: one use has no company to compare")


@dataclass(frozen=True)
class Change:
    """How much one word changed.

    Attributes:
        word: In lower case.
        counts: How often it stands in each corpus.
        compared: How many of these uses were compared.
        distance: Between the uses in the one and those in the other, by the measure chosen.
        by_chance: The same when all are shuffled and dealt out again, on average.
        change: What is beyond that.
        p: How likely chance alone gives such a distance; never less than the number of permutations can tell.
        examples: For each corpus the uses that are most of its own kind.
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
    """What changed between two corpora.

    Attributes:
        model: The name of the model.
        layer: Whose vectors were compared.
        measure: And how.
        typical: The change of the word in the middle: what all words changed, since the corpora differ as a whole.
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
    """Rank words by how much their company changed from one corpus to the other, each of which is read twice."""
    settings = settings or DriftSettings()
    corpora = (first, second)
    if any(iter(corpus) is corpus for corpus in corpora):
        raise ConfigError("each corpus is read twice; give lists or other things that can be, not streams")
    layer_weights(layer, embedder.num_layers)
    counts = [_count(corpus) for corpus in corpora]
    words = _choose_words(counts, settings)
    samples = [_Sample(embedder, corpus, words, layer, settings) for corpus in corpora]
    changes = [_change(word, counts, samples, settings) for word in words]
    changes.sort(key=lambda change: -change.change)
    typical = float(np.median([change.change for change in changes]))
    return Drift(embedder.name, layer, settings.measure, typical, tuple(changes))


def draw_drift(drift: Drift, top: int = 20) -> Figure:
    """The most changed words: how far apart their uses are, and how far chance alone would put them."""
    changes = drift.changes[:top][::-1]
    figure = new_figure(6.5, 1.2 + 0.26 * len(changes))
    axes = figure.subplots()
    heights = range(len(changes))
    for height, change in zip(heights, changes, strict=True):
        axes.plot([change.by_chance, change.distance], [height, height], color="#dddddd", zorder=1)
    axes.scatter([change.by_chance for change in changes], heights, color=FAINT, label="dealt out by chance")
    axes.scatter([change.distance for change in changes], heights, color=COLOURS[0], label="between the corpora")
    tidy(axes, f"words whose company changed most, {drift.model}, layer {drift.layer}", f"{drift.measure} distance", "")
    axes.set_yticks(heights, [change.word for change in changes])
    axes.grid(visible=False)
    axes.set_xlim(left=0)
    axes.legend(loc="lower right", **LEGEND)
    return figure


class _Sample:
    """Some uses of each word in one corpus, embedded, each sentence once."""

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
        raise InputError("one of the two corpora has no words in it")
    return counts


def _choose_words(counts: Sequence[Counter[str]], settings: DriftSettings) -> list[str]:
    """The words asked for, or else those frequent in both that are not frequent everywhere."""
    least = settings.least
    wanted = [word.lower() for word in dict.fromkeys(settings.words)]
    for word in wanted:
        if min(count[word] for count in counts) < least:
            told = " and ".join(f"{count[word]:,}" for count in counts)
            raise InputError(
                f"{word!r} stands {told} times in the corpora, and {least} in each are needed; "
                "give more text, or a lower least"
            )
    if wanted:
        return wanted
    both = [word for word in counts[0] if word.isalpha() and min(count[word] for count in counts) >= least]
    both.sort(key=lambda word: (-min(count[word] for count in counts), word))
    chosen = both[settings.skip :][: settings.most]
    if not chosen:
        raise InputError(
            f"the corpora share {len(both):,} words that stand {least} times or more in each, of which the "
            f"{settings.skip} most frequent are skipped: nothing is left; give more text, or ask for less"
        )
    return chosen


def _change(word: str, counts: Sequence[Counter[str]], samples: Sequence[_Sample], settings: DriftSettings) -> Change:
    groups = [sample.vectors[sample.rows[word]] for sample in samples]
    pooled, size = np.concatenate(groups), len(groups[0])
    permutations = (
        np.random.default_rng(settings.seed).random((settings.permutations, len(pooled))).argsort(axis=1) < size
    )
    chance = _distances(pooled, permutations, settings.measure)
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
        (_telling(samples[0], samples[1], word, settings), _telling(samples[1], samples[0], word, settings)),
    )


def _distances(pooled: np.ndarray, inside: np.ndarray, measure: str) -> np.ndarray:
    """For each way to deal (permutations, uses) out, the distance of the one group to the other."""
    share = inside.astype(np.float32)
    one = share @ pooled / share.sum(axis=1, keepdims=True)
    other = (1 - share) @ pooled / (1 - share).sum(axis=1, keepdims=True)
    if measure == "prototype":
        one, other = unit(one), unit(other)
    cosines = (one * other).sum(axis=1)  # of averages as they are, this is the average cosine of all pairs
    return (1 - cosines).clip(0)  # vectors all alike are a rounding below


def _telling(mine: _Sample, theirs: _Sample, word: str, settings: DriftSettings) -> tuple[Use, ...]:
    """The uses most of one corpus's own kind: nearest to its average and farthest from the other's."""
    rows = mine.rows[word]
    vectors = mine.vectors[rows]
    direction = unit(vectors.mean(axis=0)) - unit(theirs.vectors[theirs.rows[word]].mean(axis=0))
    order = np.argsort(-(vectors @ direction), kind="stable")
    return tuple(dict.fromkeys(mine.uses[rows[number]] for number in order))[: settings.examples]
