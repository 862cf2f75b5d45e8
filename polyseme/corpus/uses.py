"""Uses (occurrences) of words in sentences, with their contextual vectors: the basis of neighbours, senses and drift.

They come from sentences in three ways: found and embedded on the spot (`find_uses`, `embed_uses`), all words of a few
sentences (`embed_all`), or from a corpus that was indexed once (`polyseme.corpus.index`).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby

import numpy as np

from polyseme.embedding.interfaces import Embedder
from polyseme.embedding.layers import LayerChoice, check_vectors, layer_weights, needed_layers
from polyseme.errors import ConfigError, InputError
from polyseme.text.tokenizer import tokenize


@dataclass(frozen=True)
class Use:
    """One occurrence of a word: a sentence, and the word's place in it."""

    words: tuple[str, ...]
    place: int  # 0 is the first word

    @property
    def word(self) -> str:
        """The word as it is written in the sentence."""
        return self.words[self.place]


@dataclass(frozen=True, eq=False)
class Uses:
    """Many uses with their vectors, in memory or memory-mapped.

    Attributes:
        sentences: The sentences that they occur in.
        owners: For each use, the number of its sentence.
        places: For each use, the place of its word in the sentence.
        layers: For each stored layer, an array (uses, dim).
        numbers: The numbers of the stored layers.
        num_layers: How many layers the model has.
    """

    sentences: Sequence[Sequence[str]]
    owners: np.ndarray
    places: np.ndarray
    layers: Sequence[np.ndarray]
    numbers: tuple[int, ...]
    num_layers: int

    def __len__(self) -> int:
        return len(self.owners)

    def __getitem__(self, number: int) -> Use:
        return Use(tuple(self.sentences[int(self.owners[number])]), int(self.places[number]))

    def __iter__(self) -> Iterator[Use]:
        return (self[number] for number in range(len(self)))

    def take(self, chosen: np.ndarray) -> Uses:
        """Select uses by their numbers, with their vectors in memory."""
        layers = [layer[chosen] for layer in self.layers]
        return Uses(self.sentences, self.owners[chosen], self.places[chosen], layers, self.numbers, self.num_layers)

    def vectors(self, layer: LayerChoice, rows: slice = slice(None)) -> np.ndarray:
        """Vectors (uses, dim) of one layer, or of a mixture of layers; no other layer is read."""
        weights = self._stored_weights(layer)
        parts = [
            weight * array[rows].astype(np.float32)
            for weight, array in zip(weights, self.layers, strict=True)
            if weight
        ]
        return np.sum(parts, axis=0) if len(parts) > 1 else parts[0]

    def _stored_weights(self, layer: LayerChoice) -> np.ndarray:
        weights = layer_weights(layer, self.num_layers)
        missing = [number for number in np.flatnonzero(weights) if number not in self.numbers]
        if missing:
            raise ConfigError(
                f"layer {missing[0]} is not stored here, only {', '.join(map(str, self.numbers))}; "
                "choose one of these, or index the corpus again with --layer all"
            )
        return weights[list(self.numbers)]


def bundled_sentences() -> list[list[str]]:
    """Example sentences that ship with the package: short plain English, many with ambiguous words."""
    text = (files("polyseme.corpus") / "sentences.txt").read_text("utf-8")
    return [[word for sentence in tokenize(line) for word in sentence.words] for line in text.splitlines() if line]


def find_place(words: Sequence[str], word: str, occurrence: int | None = None) -> int:
    """Find the place of a word in a sentence; if it occurs several times, say which occurrence (from 1)."""
    places = [place for place, other in enumerate(words) if other == word]
    places = places or [place for place, other in enumerate(words) if other.casefold() == word.casefold()]
    if not words:
        raise InputError(f"the sentence is empty; give one with the word {word!r} in it")
    if not places:
        raise InputError(f"{word!r} is not in the sentence; its words are: {' '.join(words)}")
    if occurrence is None and len(places) > 1:
        raise InputError(
            f"{word!r} occurs {len(places)} times in the sentence; choose an occurrence from 1 to {len(places)}"
        )
    if not 1 <= (occurrence or 1) <= len(places):
        raise InputError(f"there is no occurrence {occurrence} of {word!r}: the sentence has {len(places)}")
    return places[(occurrence or 1) - 1]


def find_uses(
    sentences: Iterable[Sequence[str]], word: str, match_case: bool = False, limit: int | None = None, seed: int = 0
) -> list[Use]:
    """Find the uses of a word, in order; of more than ``limit``, a uniform random sample."""
    reservoir, folded = Reservoir(limit, seed), word.casefold()
    for words in map(tuple, sentences):  # one copy for all uses in it
        for place, other in enumerate(words):
            if other == word or (not match_case and other.casefold() == folded):
                reservoir.add(Use(words, place))
    if not reservoir.seen:
        raise InputError(f"there is no use of {word!r} in these sentences; try another form of the word, or more text")
    return reservoir.uses()


class Reservoir:
    """Reservoir sampling: a uniform random sample of a stream of unknown length; without a limit, all of it."""

    def __init__(self, limit: int | None, seed: int = 0) -> None:
        self.seen = 0
        self._limit = limit
        self._rng = random.Random(seed)
        self._kept: list[tuple[int, Use]] = []

    def add(self, use: Use) -> None:
        """Take the next use of the stream, and keep it or not."""
        if self._limit is None or len(self._kept) < self._limit:
            self._kept.append((self.seen, use))
        elif (place := self._rng.randrange(self.seen + 1)) < self._limit:
            self._kept[place] = (self.seen, use)
        self.seen += 1

    def uses(self) -> list[Use]:
        """The sampled uses, in the order of the stream."""
        return [use for _, use in sorted(self._kept, key=lambda entry: entry[0])]


def embed_uses(embedder: Embedder, uses: Sequence[Use], layer: LayerChoice = "all") -> Uses:
    """Embed the sentences of some uses, each sentence once if its uses are adjacent.

    A layer other than ``all`` stores only that one, under its own number; a mixture needs all of its layers.
    """
    groups = [list(group) for _, group in groupby(uses, key=lambda use: use.words)]
    numbers = needed_layers(layer, embedder.num_layers)
    rows = [
        check_vectors(vectors, group[0].words)[list(numbers)][:, [use.place for use in group]]
        for group, vectors in zip(groups, embedder.embed(group[0].words for group in groups), strict=True)
    ]
    stacked = np.concatenate(rows, axis=1) if rows else np.zeros((len(numbers), 0, embedder.dim), dtype=np.float32)
    return Uses(
        [group[0].words for group in groups],
        np.repeat(np.arange(len(groups)), [len(group) for group in groups]),
        np.array([use.place for use in uses], dtype=np.int64),
        list(stacked),
        numbers,
        embedder.num_layers,
    )


def embed_all(embedder: Embedder, sentences: Sequence[Sequence[str]], layer: LayerChoice = "all") -> Uses:
    """Embed every word of some sentences as a use; all vectors are held in memory."""
    return embed_uses(embedder, [Use(tuple(words), place) for words in sentences for place in range(len(words))], layer)
