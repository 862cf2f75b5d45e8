"""Encoded chunks to shards on the disk, and the counts of all words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import repeat
from operator import add
from pathlib import Path

import numpy as np

from polyseme.training.shards.encode import EncodedChunk

SHARD_WORDS = 1 << 21  # distinct words of a shard at most, about: text of nothing but new words stays bounded too


@dataclass(frozen=True)
class ShardSize:
    """What the files of a shard hold, by which they are checked when they are opened."""

    name: str
    tokens: int
    words: int
    word_bytes: int
    documents: int


class WordCounts:
    """How often each word occurs, in bounded memory.

    When there are more than ``max_types`` words, the rarest are forgotten, so that at most three quarters of these are
    left. A word that was forgotten and comes again is counted too low, by at most `error`: the sum, over the times of
    forgetting, of the highest count that was forgotten. So every word that occurs more often than that is here.
    """

    def __init__(self, max_types: int) -> None:
        self.max_types = max_types
        self.error = 0
        self.counts: dict[str, int] = {}

    def add(self, words: list[str], counts: list[int]) -> None:
        """Count words that differ from each other."""
        before = map(self.counts.get, words, repeat(0))
        self.counts.update(zip(words, map(add, before, counts), strict=True))
        if len(self.counts) > self.max_types:
            self._forget()

    def falling(self) -> Iterator[tuple[str, int]]:
        """Words and counts, the commonest first, ties in alphabetical order."""
        words = sorted(self.counts)
        counts = np.fromiter(map(self.counts.__getitem__, words), np.int64, len(words))
        order = np.argsort(-counts, kind="stable")
        return zip(map(words.__getitem__, order.tolist()), counts[order].tolist(), strict=True)

    def _forget(self) -> None:
        counts = np.fromiter(self.counts.values(), np.int64, len(self.counts))
        surplus = len(counts) - self.max_types * 3 // 4
        highest = int(np.partition(counts, surplus - 1)[surplus - 1])
        self.error += highest
        self.counts = {word: count for word, count in self.counts.items() if count > highest}


class ShardWriter:
    """Takes chunks in order and writes a shard whenever one is full.

    Attributes:
        shards: Those that are written.
        tokens: How many came, boundaries among them.
        sentences: How many came.
        documents: How many began.
        characters: Of the text.
    """

    def __init__(self, folder: Path, prefix: str, limit: int, counts: WordCounts | None = None) -> None:
        self.shards: list[ShardSize] = []
        self.tokens = self.sentences = self.documents = self.characters = 0
        self._folder, self._prefix, self._limit, self._counts = folder, prefix, limit, counts
        self._begin()

    def add(self, chunk: EncodedChunk) -> None:
        """Take the next chunk; it is cut after a sentence where the shard is full."""
        self.tokens += len(chunk.tokens)
        self.sentences += chunk.sentences
        self.documents += len(chunk.documents)
        self.characters += chunk.characters
        words = chunk.words.split("\n") if chunk.words else []
        tokens, documents = chunk.tokens, chunk.documents
        while len(tokens):
            taken = _sentences_within(tokens, self._limit - self._filled)
            if taken:
                here = int(np.searchsorted(documents, taken))
                self._append(words, tokens[:taken], documents[:here])
                tokens, documents = tokens[taken:], documents[here:] - taken
            if len(tokens) or len(self._numbers) > SHARD_WORDS:
                self._finish()

    def close(self) -> None:
        """Write what is left."""
        if self._filled:
            self._finish()

    def summary(self) -> dict[str, object]:
        """What the index says of this part."""
        counted = ("tokens", "sentences", "documents", "characters")
        return {**{name: getattr(self, name) for name in counted}, "shards": [asdict(shard) for shard in self.shards]}

    def _begin(self) -> None:
        self._filled = 0
        self._arrays: list[np.ndarray] = []
        self._offsets: list[np.ndarray] = []
        self._numbers: defaultdict[str, int] = defaultdict()
        self._numbers.default_factory = self._numbers.__len__
        self._uses = np.zeros(1 << 12, np.int64)  # of each number, grown as needed

    def _append(self, words: list[str], tokens: np.ndarray, documents: np.ndarray) -> None:
        numbers = np.empty(len(words) + 1, np.int32)
        numbers[0] = 0
        numbers[1:] = np.fromiter(map(self._numbers.__getitem__, words), np.int32, len(words))
        numbers[1:] += 1
        if len(self._numbers) >= len(self._uses):
            self._uses = np.concatenate([self._uses, np.zeros(len(self._numbers), np.int64)])
        self._uses[numbers] += np.bincount(tokens, minlength=len(numbers))
        self._arrays.append(numbers[tokens])
        self._offsets.append(documents + self._filled)
        self._filled += len(tokens)

    def _finish(self) -> None:
        """Number the words by falling count, and write."""
        uses = self._uses[1 : len(self._numbers) + 1]
        order = np.argsort(-uses, kind="stable")[: np.count_nonzero(uses)]
        ranks = np.zeros(len(uses) + 1, np.dtype("<i4"))
        ranks[order + 1] = np.arange(1, len(order) + 1)
        known = list(self._numbers)
        words = [known[place] for place in order.tolist()]
        text = "".join(f"{word}\n" for word in words).encode()
        documents = np.concatenate(self._offsets).astype("<i8")
        stem = self._folder / f"{self._prefix}{len(self.shards):05d}"
        with stem.with_suffix(".tokens").open("wb") as file:
            for array in self._arrays:
                file.write(ranks[array].data)
        stem.with_suffix(".words").write_bytes(text)
        stem.with_suffix(".documents").write_bytes(documents.tobytes())
        self.shards.append(ShardSize(stem.name, self._filled, len(words), len(text), len(documents)))
        if self._counts is not None:
            self._counts.add(words, uses[order].tolist())
        self._begin()


def _sentences_within(tokens: np.ndarray, room: int) -> int:
    """How many tokens fit, if only whole sentences do."""
    if len(tokens) <= room:
        return len(tokens)
    ends = np.flatnonzero(tokens[: max(0, room)] == 0)
    return int(ends[-1]) + 1 if len(ends) else 0
