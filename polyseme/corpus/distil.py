"""Distil contextual vectors into static ones: for each word the mean over its contexts, or one vector per sense.

The text is read twice: words are counted, then embedded. So the memory needed is known, and refused if it is too much,
before hours of work: a mean takes 8 bytes a number, a use that is clustered 4.
"""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from polyseme.corpus.kmeans import spherical_kmeans
from polyseme.embedding.interfaces import Embedder
from polyseme.embedding.layers import LayerChoice, check_vectors, choose
from polyseme.embedding.similarity import unit
from polyseme.errors import ConfigError, InputError
from polyseme.progress import track

CONTEXT = 12  # words on each side of a use that are shown
SENSE_USES = 100  # uses of a word that are clustered by default


@dataclass(frozen=True)
class DistilSettings:
    """Settings of the distillation into static vectors.

    Attributes:
        layer: A number, ``average`` of all, ``top``, or anything that `choose` knows except ``all``.
        min_count: How often a word must occur; with senses, also the uses needed for each sense.
        max_words: Vocabulary size: only the most frequent words are kept.
        lower: Merge words that differ only in case; the model still reads them as they are.
        uses: Uses of a word to sample at random, at most; None is all of them, or 100 with senses.
        senses: Maximum number of vectors per word.
        examples: Contexts to keep for each sense.
        memory: Memory limit in bytes.
        seed: Seed of the random number generator.
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
        """Maximum number of uses of a word that are embedded."""
        return SENSE_USES if self.uses is None and self.senses > 1 else self.uses


@dataclass(frozen=True)
class Sense:
    """One induced sense of a word: a cluster of its uses."""

    key: str  # bank#1
    uses: int  # in this cluster
    contexts: tuple[str, ...]  # the most typical first, the word in brackets


@dataclass(frozen=True, eq=False)
class Distilled:
    """The distilled words and their static vectors.

    Attributes:
        words: The most frequent first; with senses ``bank#1``, ``bank#2``, the most frequent sense first.
        vectors: Their vectors (words, dim).
        senses: The sense behind each vector; empty if there is one vector per word.
    """

    words: list[str]
    vectors: np.ndarray
    senses: list[Sense]


@dataclass(frozen=True, eq=False)
class DistilPlan:
    """Which uses of which words will be embedded, and the memory that takes.

    Attributes:
        words: The most frequent first, ties in alphabetical order.
        counts: How often each occurs.
        uses: How many uses of each will be embedded.
        dim: Dimension of the vectors.
        bytes: Memory that the vectors take meanwhile.
    """

    words: list[str]
    counts: np.ndarray
    uses: np.ndarray
    dim: int
    bytes: int


def make_plan(embedder: Embedder, sentences: Iterable[Sequence[str]], settings: DistilSettings) -> DistilPlan:
    """Count the words, choose the vocabulary, and refuse what would exceed the memory limit."""
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
    """Embed the sentences of the planned uses, and average or cluster the vectors of each word.

    Args:
        embedder: Any model.
        sentences: The same sentences that `make_plan` counted.
        plan: What `make_plan` returned.
        settings: The settings given to `make_plan`.
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
    """The planned uses in one sentence: places in the sentence, rows of the words, numbers among all uses."""

    words: Sequence[str]
    places: list[int]
    rows: list[int]
    slots: list[int]


def _planned_uses(sentences: Iterable[Sequence[str]], plan: DistilPlan, settings: DistilSettings) -> Iterator[_Planned]:
    """The sentences with planned uses; the others need not be embedded."""
    rows = {word: row for row, word in enumerate(plan.words)}
    ends = np.cumsum(plan.uses).tolist()
    slot = [0, *ends[:-1]]  # where each word's next use goes
    sampled = _sample_uses(plan, settings.seed)
    seen = [0] * len(plan.words)
    for words in sentences:
        found: list[tuple[int, int, int]] = []
        for place, word in enumerate(words):
            row = rows.get(_key(word, settings), -1)
            if row < 0:
                continue
            if slot[row] < ends[row] and (sampled is None or sampled[slot[row]] == seen[row]):
                found.append((place, row, slot[row]))
                slot[row] += 1
            seen[row] += 1
        if found:
            yield _Planned(words, *map(list, zip(*found, strict=True)))
    if slot != ends:
        raise InputError("the text is not the one that was counted; was it changed meanwhile? Run the command again")


def _sample_uses(plan: DistilPlan, seed: int) -> np.ndarray | None:
    """A random sample of each word's uses, as sorted numbers; None if all are taken."""
    if (plan.uses == plan.counts).all():
        return None
    rng = np.random.default_rng(seed)
    return np.concatenate(
        [np.sort(rng.choice(count, uses, replace=False)) for count, uses in zip(plan.counts, plan.uses, strict=True)]
    )


def _embed(embedder: Embedder, uses: Iterable[_Planned], layer: LayerChoice) -> Iterator[tuple[_Planned, np.ndarray]]:
    """Embed sentences: each with the vectors (uses, dim) of its planned uses."""
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
    for word, count in track(
        zip(plan.words, plan.uses.tolist(), strict=True), "clustering uses", len(plan.words), "words"
    ):
        some = slice(first, first := first + count)
        for sense, mean in _senses(word, vectors[some], contexts[some], settings):
            senses.append(sense)
            means.append(mean)
    return Distilled([sense.key for sense in senses], np.array(means), senses)


def _senses(
    word: str, vectors: np.ndarray, contexts: list[str], settings: DistilSettings
) -> Iterator[tuple[Sense, np.ndarray]]:
    """Cluster one word's uses, with a random seed of the word's own: independent of which other words there are."""
    clusters = max(1, min(settings.senses, len(vectors) // settings.min_count))
    digest = hashlib.sha256(f"{settings.seed} {word}".encode("utf-8", "surrogatepass")).digest()
    labels = spherical_kmeans(vectors, clusters, np.random.default_rng(int.from_bytes(digest[:8], "big")))
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
        raise ConfigError("expected one layer, not all: choose a number, average, top or a mix")
    return choose(np.zeros((embedder.num_layers, 1, embedder.dim), dtype=np.float32), layer).shape[-1]


def _context(words: Sequence[str], place: int) -> str:
    before, after = words[max(0, place - CONTEXT) : place], words[place + 1 : place + 1 + CONTEXT]
    shown = " ".join([*before, f"[{words[place]}]", *after])
    return f"{'… ' * (place > CONTEXT)}{shown}{' …' * (place + 1 + CONTEXT < len(words))}"
