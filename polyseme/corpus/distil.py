"""Static vectors out of contextual ones: for each word the average over the contexts it was seen in, or one a sense.

The text is gone through twice: words are counted, then embedded. So what is needed is known, and refused when it is too
much, before the hours of work: an average takes 8 bytes a number, a use that is clustered 4.
"""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from polyseme.corpus.kmeans import spherical_kmeans
from polyseme.corpus.uses import check_vectors
from polyseme.embedding.interfaces import Embedder
from polyseme.embedding.layers import LayerChoice, choose
from polyseme.embedding.similarity import unit
from polyseme.errors import ConfigError, InputError

AROUND = 12  # words to each side that are shown of a context
SENSE_USES = 100  # uses of a word that are clustered, when nothing is said


@dataclass(frozen=True)
class DistilSettings:
    """What is distilled.

    Attributes:
        layer: A number, ``average`` of all, ``top``, or anything that `choose` knows but ``all``.
        min_count: How often a word must occur; with senses, also how many uses there must be for each.
        max_words: So many words at most, the most frequent.
        lower: Take words that differ in case for the same; the model still reads them as they are.
        uses: At most so many uses of a word, by lot; None is all of them, or 100 with senses.
        senses: Vectors a word, at most.
        examples: Contexts that are kept of each sense.
        memory: Bytes that may be taken.
        seed: Of everything drawn at random.
    """

    layer: LayerChoice = "average"
    min_count: int = 5
    max_words: int = 50_000
    lower: bool = False
    uses: int | None = None
    senses: int = 1
    examples: int = 3
    memory: int = 4_000_000_000
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("min_count", "max_words", "uses", "senses", "memory"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name} must be 1 or more, not {value}")

    @property
    def most_uses(self) -> int | None:
        """Uses of a word that are looked at."""
        return SENSE_USES if self.uses is None and self.senses > 1 else self.uses


@dataclass(frozen=True)
class Sense:
    """A cluster of a word's uses."""

    key: str  # bank#1
    uses: int  # in it, of those that were clustered
    contexts: tuple[str, ...]  # the most typical first, the word in brackets


@dataclass(frozen=True, eq=False)
class Distilled:
    """Words and their vectors.

    Attributes:
        words: The most frequent first; with senses ``bank#1``, ``bank#2``, the most frequent sense first.
        vectors: Theirs (words, dim).
        senses: For each of them, what it stands for; empty where there is one vector a word.
    """

    words: list[str]
    vectors: np.ndarray
    senses: list[Sense]


@dataclass(frozen=True, eq=False)
class DistilPlan:
    """Which uses of which words are looked at.

    Attributes:
        words: The most frequent first, of equals the first in the alphabet.
        counts: How often each occurs.
        uses: How many uses of each are looked at.
        dim: Of the vectors that will be made.
        bytes: What the vectors take in memory meanwhile.
    """

    words: list[str]
    counts: np.ndarray
    uses: np.ndarray
    dim: int
    bytes: int


def make_plan(embedder: Embedder, sentences: Iterable[Sequence[str]], settings: DistilSettings) -> DistilPlan:
    """Count the words, and refuse what is too few or too much."""
    dim = _dim(embedder, settings.layer)
    counts = Counter(_key(word, settings) for words in sentences for word in words)
    frequent = sorted((-count, word) for word, count in counts.items() if count >= settings.min_count)
    frequent = frequent[: settings.max_words]
    if not frequent:
        raise InputError(f"no word of the text occurs {settings.min_count} times; give more text, or a lower min_count")
    seen = np.array([-count for count, _ in frequent])
    uses = seen if settings.most_uses is None else np.minimum(seen, settings.most_uses)
    needed = dim * (4 * int(uses.sum()) if settings.senses > 1 else 8 * len(frequent))
    if needed > settings.memory:
        raise ConfigError(
            f"{len(frequent):,} words of {dim:,} dimensions would take {needed / 1e9:,.1f} GB of memory, over the "
            f"{settings.memory / 1e9:,.1f} GB allowed; lower max_words or uses, or raise min_count or memory"
        )
    return DistilPlan([word for _, word in frequent], seen, uses, dim, needed)


def distil(
    embedder: Embedder, sentences: Iterable[Sequence[str]], plan: DistilPlan, settings: DistilSettings
) -> Distilled:
    """Embed the sentences in which the planned uses stand, and average or cluster them.

    Args:
        embedder: Any model.
        sentences: The same as those that were planned with.
        plan: Which words, as `make_plan` says.
        settings: The same as there.
    """
    uses = _planned_uses(sentences, plan, settings)
    if settings.senses > 1:
        return _cluster(embedder, uses, plan, settings)
    sums = np.zeros((len(plan.words), plan.dim))
    for use, vectors in _embed(embedder, uses, settings.layer):
        np.add.at(sums, use.rows, vectors)
    sums /= plan.uses[:, None]
    return Distilled(plan.words, sums.astype(np.float32), [])


@dataclass(frozen=True)
class _Planned:
    """The uses in one sentence: places of words in it, rows of these words, numbers of the uses among all."""

    words: Sequence[str]
    places: list[int]
    rows: list[int]
    slots: list[int]


def _planned_uses(sentences: Iterable[Sequence[str]], plan: DistilPlan, settings: DistilSettings) -> Iterator[_Planned]:
    """Sentences with uses that were drawn; others need not be embedded."""
    rows = {word: row for row, word in enumerate(plan.words)}
    ends = np.cumsum(plan.uses).tolist()
    slot = [0, *ends[:-1]]  # where each word's next use goes
    drawn = _draw(plan, settings.seed)
    seen = [0] * len(plan.words)
    for words in sentences:
        found: list[tuple[int, int, int]] = []
        for place, word in enumerate(words):
            row = rows.get(_key(word, settings), -1)
            if row < 0:
                continue
            if slot[row] < ends[row] and (drawn is None or drawn[slot[row]] == seen[row]):
                found.append((place, row, slot[row]))
                slot[row] += 1
            seen[row] += 1
        if found:
            yield _Planned(words, *map(list, zip(*found, strict=True)))
    if slot != ends:
        raise InputError("the text is not the one that was counted; has it been changed meanwhile?")


def _draw(plan: DistilPlan, seed: int) -> np.ndarray | None:
    """For each word, the numbers of the uses that are looked at, in order; None where that is all."""
    if (plan.uses == plan.counts).all():
        return None
    rng = np.random.default_rng(seed)
    return np.concatenate(
        [np.sort(rng.choice(count, uses, replace=False)) for count, uses in zip(plan.counts, plan.uses, strict=True)]
    )


def _embed(embedder: Embedder, uses: Iterable[_Planned], layer: LayerChoice) -> Iterator[tuple[_Planned, np.ndarray]]:
    """Each sentence with the vectors (uses, dim) of its uses."""
    waiting: deque[_Planned] = deque()

    def sentences() -> Iterator[Sequence[str]]:
        for use in uses:
            waiting.append(use)
            yield use.words

    for vectors in embedder.embed(sentences()):
        use = waiting.popleft()
        yield use, choose(check_vectors(vectors, use.words), layer)[use.places]


def _cluster(embedder: Embedder, uses: Iterable[_Planned], plan: DistilPlan, settings: DistilSettings) -> Distilled:
    total = int(plan.uses.sum())
    vectors = np.zeros((total, plan.dim), dtype=np.float32)
    contexts = [""] * total
    for use, found in _embed(embedder, uses, settings.layer):
        vectors[use.slots] = found
        for place, slot in zip(use.places, use.slots, strict=True):
            contexts[slot] = _context(use.words, place)
    senses: list[Sense] = []
    means: list[np.ndarray] = []
    first = 0
    for word, count in zip(plan.words, plan.uses.tolist(), strict=True):
        some = slice(first, first := first + count)
        for sense, mean in _senses(word, vectors[some], contexts[some], settings):
            senses.append(sense)
            means.append(mean)
    return Distilled([sense.key for sense in senses], np.array(means), senses)


def _senses(
    word: str, vectors: np.ndarray, contexts: list[str], settings: DistilSettings
) -> Iterator[tuple[Sense, np.ndarray]]:
    """The clusters of one word's uses and their means; drawn by lot of the word's own, whatever words come before."""
    clusters = max(1, min(settings.senses, len(vectors) // settings.min_count))
    lot = int.from_bytes(hashlib.sha256(f"{settings.seed} {word}".encode("utf-8", "surrogatepass")).digest()[:8], "big")
    labels = spherical_kmeans(vectors, clusters, np.random.default_rng(lot))
    for number in range(labels.max() + 1):
        members = np.flatnonzero(labels == number)
        mean = vectors[members].mean(axis=0)
        nearest = members[np.argsort(-(unit(vectors[members]) @ mean), kind="stable")]
        typical = list(dict.fromkeys(contexts[member] for member in nearest))[: settings.examples]
        yield Sense(f"{word}#{number + 1}", len(members), tuple(typical)), mean


def _key(word: str, settings: DistilSettings) -> str:
    return word.lower() if settings.lower else word


def _dim(embedder: Embedder, layer: LayerChoice) -> int:
    if layer == "all":
        raise ConfigError("a word gets one vector of the layers: choose a number, average, top or a mix, not all")
    return choose(np.zeros((embedder.num_layers, 1, embedder.dim), dtype=np.float32), layer).shape[-1]


def _context(words: Sequence[str], place: int) -> str:
    before, after = words[max(0, place - AROUND) : place], words[place + 1 : place + 1 + AROUND]
    shown = " ".join([*before, f"[{words[place]}]", *after])
    return f"{'… ' * (place > AROUND)}{shown}{' …' * (place + 1 + AROUND < len(words))}"
