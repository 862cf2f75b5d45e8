"""Word-sense disambiguation (WSD) by nearest neighbour, the protocol of context2vec and ELMo.

The vectors of each sense in a tagged corpus are averaged. A test word gets the sense whose mean vector is nearest by
cosine, among the senses of its lemma and part of speech in training; an unseen lemma gets WordNet's first sense. The
tagged corpus is embedded once, for all layers.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from polyseme.analysis.senses.sense_tagged import Inventory, Lemma, Tag, TaggedSentence, check_gold
from polyseme.embedding.interfaces import Embedder
from polyseme.embedding.layers import LayerChoice, check_vectors, choose
from polyseme.embedding.similarity import unit
from polyseme.errors import ConfigError, FormatError, InputError
from polyseme.plots import COLOURS, FAINT, LEGEND, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALL = "ALL"
DEVELOPMENT = "semeval2007"  # the development set of the unified framework

Sets = Mapping[str, Sequence[TaggedSentence]]
Answers = Sequence[str | None]  # a sense key for each tagged word of a set, in order; None if unanswered


@dataclass(frozen=True)
class WsdScore:
    """F1 on one test set; an answer is correct if it is any of the sense keys that the annotators allow."""

    name: str
    instances: int
    answered: int
    correct: int
    f1: float  # equals precision and recall if everything is answered

    @classmethod
    def of(cls, name: str, instances: int, answered: int, correct: int) -> WsdScore:
        """Compute the F1 score from the counts."""
        return cls(name, instances, answered, correct, 2 * correct / max(1, answered + instances))


@dataclass(frozen=True)
class WsdMethod:
    """A method (a baseline or a layer) with its score on each test set; ALL is all instances together."""

    name: str
    layer: LayerChoice | None
    scores: tuple[WsdScore, ...]


@dataclass(frozen=True)
class WsdResult:
    """WSD scores of a model, layer by layer, with the baselines.

    Attributes:
        model: The model's name.
        tagged: Number of tagged words in training whose keys the inventory has.
        unknown: Number of tagged words in training that were skipped: the inventory has none of their keys.
        unseen: Number of test instances whose lemma training does not have, which get the first sense.
        methods: First sense, most frequent sense, then each layer.
    """

    model: str
    tagged: int
    unknown: int
    unseen: int
    methods: tuple[WsdMethod, ...]


def disambiguate(
    embedder: Embedder,
    training: Iterable[TaggedSentence],
    sets: Sets,
    inventory: Inventory,
    layer: LayerChoice = "all",
) -> WsdResult:
    """Average the vectors of each sense in a tagged corpus, then disambiguate test sets with each layer, or one."""
    baseline = first_sense(sets, inventory)
    tags = _tags(sets)
    senses = SenseVectors({tag.lemma for tag in tags})
    senses.learn(embedder, training, inventory, layer)
    frequent = [senses.most_frequent(tag.lemma, inventory) for tag in tags]
    sentences = (sentence for each in sets.values() for sentence in each)
    answers = [
        senses.nearest(tag.lemma, vectors) or [inventory.first_sense(tag.lemma)] * len(vectors)
        for tag, vectors in embed_tags(embedder, sentences, layer)
    ]
    layers = list(range(embedder.num_layers)) if layer == "all" else [layer]
    by_layer = zip(layers, zip(*answers, strict=True), strict=True)
    methods = [WsdMethod(f"layer {number}", number, _scores(sets, given)) for number, given in by_layer]
    return WsdResult(
        embedder.name,
        senses.tagged,
        senses.unknown,
        sum(not senses.counts[tag.lemma] for tag in tags),
        (baseline, WsdMethod("most frequent in training", None, _scores(sets, frequent)), *methods),
    )


def draw_wsd(result: WsdResult) -> Figure:
    """Plot F1 on all sets together by layer, with the baselines that use no vectors."""
    figure = new_figure(6.5, 4)
    axes = figure.subplots()
    total = next((n for n, score in enumerate(result.methods[0].scores) if score.name == ALL), 0)
    f1 = [100 * method.scores[total].f1 for method in result.methods]
    layers = [str(method.layer) for method in result.methods[2:]]
    axes.plot(layers, f1[2:], marker="o", color=COLOURS[0], label=result.model)
    for height, method, line in zip(f1[:2], result.methods[:2], ("--", ":"), strict=True):
        axes.axhline(height, color=FAINT, linestyle=line, label=method.name)
    tidy(axes, f"Word-sense disambiguation ({result.methods[0].scores[total].name})", "layer", "F1 (%)")
    axes.legend(**LEGEND)
    return figure


def first_sense(sets: Sets, inventory: Inventory) -> WsdMethod:
    """The first-sense baseline: every word gets the sense that WordNet lists first."""
    if not sets:
        raise ConfigError("there is no test set; give at least one")
    for name, sentences in sets.items():
        check_gold(sentences, inventory, name)
    answers = [inventory.first_sense(tag.lemma) for tag in _tags(sets)]
    return WsdMethod("WordNet's first sense", None, _scores(sets, answers))


class SenseVectors:
    """The mean vector of each sense in each layer, and the nearest sense of a vector.

    Args:
        lemmas: The lemmas to keep; by default all of them.
    """

    def __init__(self, lemmas: Container[Lemma] | None = None) -> None:
        self.tagged = self.unknown = 0
        self.counts: defaultdict[Lemma, Counter[str]] = defaultdict(Counter)
        self._lemmas = lemmas
        self._sums: dict[str, np.ndarray] = {}

    def learn(
        self,
        embedder: Embedder,
        sentences: Iterable[TaggedSentence],
        inventory: Inventory,
        layer: LayerChoice = "all",
    ) -> None:
        """Add the senses of a tagged corpus, which is streamed; only sentences with relevant tags are embedded."""
        for tag, vectors in embed_tags(embedder, self._relevant(sentences, inventory), layer):
            for key in tag.keys:
                self.counts[tag.lemma][key] += 1
                if key in self._sums:
                    self._sums[key] += vectors
                else:
                    self._sums[key] = vectors.astype(np.float32)
        if not self.tagged:
            raise InputError("the training corpus has no sense tags; give sense-tagged text, such as SemCor")

    def nearest(self, lemma: Lemma, vectors: np.ndarray) -> list[str]:
        """The nearest sense by cosine in each layer (layers, dim); nothing if the lemma is unseen.

        Ties, such as all senses of a word whose vector does not depend on context, go to the more frequent sense.
        """
        keys = [key for key, _ in self.counts[lemma].most_common()]
        if not keys:
            return []
        sums = np.stack([self._sums[key] for key in keys])  # a sum has the direction of the mean
        cosines = np.einsum("sld,ld->ls", unit(sums), unit(vectors))
        return [keys[best] for best in cosines.round(5).argmax(axis=1)]

    def most_frequent(self, lemma: Lemma, inventory: Inventory) -> str | None:
        """The most frequent sense of a lemma in training; ties and unseen lemmas go by WordNet's order."""
        counts = self.counts[lemma]
        if not counts:
            return inventory.first_sense(lemma)
        return max(counts, key=lambda key: (counts[key], -inventory.ranks[key]))

    def _relevant(self, sentences: Iterable[TaggedSentence], inventory: Inventory) -> Iterator[TaggedSentence]:
        """Sentences with only those tags whose lemma is needed and whose sense keys the inventory has."""
        for sentence in sentences:
            tags = []
            for tag in sentence.tags:
                keys = tuple(key for key in tag.keys if key in inventory)
                self.tagged, self.unknown = self.tagged + bool(keys), self.unknown + (not keys)
                if keys and (self._lemmas is None or tag.lemma in self._lemmas):
                    tags.append(Tag(tag.lemma, tag.first, tag.last, keys))
            if tags:
                yield TaggedSentence(sentence.words, tuple(tags))
        if self.unknown > self.tagged:
            raise FormatError(
                f"{self.unknown:,} of {self.tagged + self.unknown:,} tagged words have sense keys that are not in the "
                "inventory; use the same version of WordNet for both"
            )


def embed_tags(
    embedder: Embedder, sentences: Iterable[TaggedSentence], layer: LayerChoice = "all"
) -> Iterator[tuple[Tag, np.ndarray]]:
    """Embed tagged words: each tag with its vectors (layers, dim), the mean over the words of a multiword unit."""
    waiting: deque[TaggedSentence] = deque()

    def words() -> Iterator[tuple[str, ...]]:
        for sentence in sentences:
            waiting.append(sentence)
            yield sentence.words

    for vectors in embedder.embed(words()):
        sentence = waiting.popleft()
        chosen = choose(check_vectors(vectors, sentence.words), layer)
        layers = chosen.reshape(-1, *chosen.shape[-2:])
        for tag in sentence.tags:
            yield tag, layers[:, tag.first : tag.last].mean(axis=1, dtype=np.float32)


def _tags(sets: Sets) -> list[Tag]:
    return [tag for sentences in sets.values() for sentence in sentences for tag in sentence.tags]


def _scores(sets: Sets, answers: Answers) -> tuple[WsdScore, ...]:
    """The score on each set; then, of several, on all together, and on all but the development set."""
    scores, rest = [], iter(answers)
    for name, sentences in sets.items():
        pairs = list(zip(_tags({name: sentences}), rest, strict=False))
        answered = sum(answer is not None for _, answer in pairs)
        scores.append(WsdScore.of(name, len(pairs), answered, sum(answer in tag.keys for tag, answer in pairs)))
    together = [_sum(ALL, scores)] if len(scores) > 1 else []
    others = [score for score in scores if score.name != DEVELOPMENT]
    if 1 < len(others) < len(scores):
        together.append(_sum(f"{ALL} but {DEVELOPMENT}", others))
    return (*scores, *together)


def _sum(name: str, scores: Sequence[WsdScore]) -> WsdScore:
    return WsdScore.of(
        name,
        sum(score.instances for score in scores),
        sum(score.answered for score in scores),
        sum(score.correct for score in scores),
    )
