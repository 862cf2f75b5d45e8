"""Writing of token shards from encoded chunks, and word frequencies in bounded memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import repeat
from operator import add
from pathlib import Path

import numpy as np

from polyseme.training.shards.encode import EncodedChunk

SHARD_WORDS = 1 << 21  # most distinct words of a shard, about, so that text of nothing but new words stays bounded


@dataclass(frozen=True)
class ShardSize:
    """Sizes of the files of a shard, checked when they are opened."""

    name: str
    tokens: int
    words: int
    word_bytes: int
    documents: int


class WordCounts:
    """Word frequencies in bounded memory, with a bound on the counting error, as in lossy counting.

    When there are more than ``max_types`` words, the rarest are dropped, so that at most three quarters of these are
    left. A word that was dropped and comes again is counted too low, by at most `error`: the sum, over all times that
    words were dropped, of the highest count that was dropped. So every word that occurs more often than that is here.
    """

    def __init__(self, max_types: int) -> None:
        self.max_types = max_types
        self.error = 0
        self.counts: dict[str, int] = {}

    def add(self, words: list[str], counts: list[int]) -> None:
        """Add counts of distinct words to the totals."""
        before = map(self.counts.get, words, repeat(0))
        self.counts.update(zip(words, map(add, before, counts), strict=True))
        if len(self.counts) > self.max_types:
            self._drop_rarest()

    def most_common(self) -> Iterator[tuple[str, int]]:
        """Words and counts, most frequent first, ties in alphabetical order."""
        words = sorted(self.counts)
        counts = np.fromiter(map(self.counts.__getitem__, words), np.int64, len(words))
        order = np.argsort(-counts, kind="stable")
        return zip(map(words.__getitem__, order.tolist()), counts[order].tolist(), strict=True)

    def _drop_rarest(self) -> None:
        counts = np.fromiter(self.counts.values(), np.int64, len(self.counts))
        surplus = len(counts) - self.max_types * 3 // 4
        highest = int(np.partition(counts, surplus - 1)[surplus - 1])
        self.error += highest
        self.counts = {word: count for word, count in self.counts.items() if count > highest}


class ShardWriter:
    """Writes encoded chunks to shards; a new shard starts whenever one is full.

    Attributes:
        shards: Shards written so far.
        tokens: Tokens added, including boundaries.
        sentences: Sentences added.
        documents: Documents added.
        characters: Characters of the text added.
    """

    def __init__(self, folder: Path, prefix: str, limit: int, counts: WordCounts | None = None) -> None:
        self.shards: list[ShardSize] = []
        self.tokens = self.sentences = self.documents = self.characters = 0
        self._folder, self._prefix, self._limit, self._counts = folder, prefix, limit, counts
        self._start_shard()

    def add(self, chunk: EncodedChunk) -> None:
        """Add the next chunk; it is split after a sentence where the shard is full."""
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
                self._write_shard()

    def close(self) -> None:
        """Write the last, unfilled shard."""
        if self._filled:
            self._write_shard()

    def summary(self) -> dict[str, object]:
        """The entry of this split in ``index.json``."""
        counted = ("tokens", "sentences", "documents", "characters")
        return {**{name: getattr(self, name) for name in counted}, "shards": [asdict(shard) for shard in self.shards]}

    def _start_shard(self) -> None:
        self._filled = 0
        self._arrays: list[np.ndarray] = []
        self._offsets: list[np.ndarray] = []
        self._numbers: defaultdict[str, int] = defaultdict()
        self._numbers.default_factory = self._numbers.__len__
        self._uses = np.zeros(1 << 12, np.int64)  # of each word id, grown as needed

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

    def _write_shard(self) -> None:
        """Write a shard, with word ids in the order of falling frequency."""
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
        self._start_shard()


def _sentences_within(tokens: np.ndarray, room: int) -> int:
    """Number of tokens of the whole sentences that fit."""
    if len(tokens) <= room:
        return len(tokens)
    ends = np.flatnonzero(tokens[: max(0, room)] == 0)
    return int(ends[-1]) + 1 if len(ends) else 0
