"""Statistics of a text before training: size, scripts, vocabulary coverage, duplicates, signs of trouble."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from polyseme.errors import InputError
from polyseme.parallel import map_processes, number_of_workers
from polyseme.text.corpus import Paths, expand
from polyseme.training.doctor.examine import ChunkStatistics, examine_chunk, is_cropped
from polyseme.training.shards.sources import HeldOutRule, TextSources, cut_units, gather_chunks, read_lines
from polyseme.training.shards.writer import WordCounts

SIZES = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 800)  # of vocabularies, in thousands
MAX_TYPES = 4_000_000
MAX_LINES = 4_000_000  # hashes of lines in memory


@dataclass(frozen=True)
class TextStatistics:
    """Statistics of a text before training, as `examine` computes them.

    Attributes:
        tokenized: Whether it was read as one sentence per line.
        documents: Number of documents, which blank lines separate.
        lines: Lines that are not blank.
        sentences: Sentences.
        words: Running words.
        types: Distinct words; beyond `MAX_TYPES` the rarest are not counted.
        types_once: Distinct words that occur once.
        characters: Characters, including line ends.
        bytes: Bytes in UTF-8.
        scripts: Running words by script, most frequent first.
        coverage: Vocabulary size to the fraction of running words that it covers.
        frequent: Number of words that occur at least 2, 3, 5 and 10 times.
        cropped: Running words longer than a model reads, counted by bytes.
        cropped_types: Distinct words longer than a model reads.
        cropped_by_characters: Running words that would still be too long if characters were counted.
        duplicate_lines: Fraction of lines that are copies of an earlier one.
        duplicates_estimated: Whether that is an estimate, from a sample of all distinct lines.
        longest_sentence: Words of the longest sentence.
        long_sentences: Sentences that training would split.
        signs: Lines that look like trouble, by kind.
    """

    tokenized: bool
    documents: int
    lines: int
    sentences: int
    words: int
    types: int
    types_once: int
    characters: int
    bytes: int
    scripts: Mapping[str, int]
    coverage: Mapping[int, float]
    frequent: Mapping[int, int]
    cropped: int
    cropped_types: int
    cropped_by_characters: int
    duplicate_lines: float
    duplicates_estimated: bool
    longest_sentence: int
    long_sentences: int
    signs: Mapping[str, int]


def examine(paths: Paths, tokenized: bool = False, workers: int | None = None) -> TextStatistics:
    """Compute the statistics of a text: reads it once, in parallel and in bounded memory."""
    sources = TextSources(tuple(expand(paths)))
    chunks = gather_chunks(cut_units(read_lines(sources.training), HeldOutRule()))
    work = partial(examine_chunk, tokenized=tokenized)
    tally = _Tally()
    for examined in map_processes(work, chunks, number_of_workers(workers, sources.size)):
        tally.add(examined)
    if not tally.amounts["words"]:
        raise InputError(f"there are no words in {', '.join(map(str, sources.training[:3]))}; give a file with text")
    return tally.facts(tokenized)


class _Tally:
    def __init__(self) -> None:
        self.amounts: Counter[str] = Counter()
        self.scripts: Counter[str] = Counter()
        self.longest = 0
        self.words = WordCounts(MAX_TYPES)
        self.lines = DuplicateLines(MAX_LINES)

    def add(self, examined: ChunkStatistics) -> None:
        self.amounts.update(examined.amounts)
        self.scripts.update(examined.scripts)
        self.longest = max(self.longest, examined.longest)
        self.words.add(examined.words.split("\n") if examined.words else [], examined.counts.tolist())
        self.lines.add(examined.lines)

    def facts(self, tokenized: bool) -> TextStatistics:
        amounts, known = self.amounts, self.words.counts
        counts = -np.sort(-np.fromiter(known.values(), np.int64, len(known)))
        words = max(1, amounts["words"])
        return TextStatistics(
            tokenized=tokenized,
            **{name: amounts.pop(name) for name in ("documents", "lines", "sentences", "words", "characters", "bytes")},
            types=len(counts),
            types_once=int((counts == 1).sum()),
            scripts=dict(self.scripts.most_common()),
            coverage={1000 * size: float(counts[: 1000 * size].sum()) / words for size in SIZES},
            frequent={times: int((counts >= times).sum()) for times in (2, 3, 5, 10)},
            cropped=amounts.pop("cropped_by_bytes", 0),
            cropped_types=sum(is_cropped(word, by_bytes=True) for word in known),
            cropped_by_characters=amounts.pop("cropped_by_characters", 0),
            duplicate_lines=self.lines.duplicate_fraction(),
            duplicates_estimated=self.lines.sampled,
            longest_sentence=self.longest,
            long_sentences=amounts.pop("long_sentences", 0),
            signs=dict(amounts),
        )


class DuplicateLines:
    """Fraction of duplicate lines in bounded memory: exact up to a limit, then estimated from a sample.

    The sample is of distinct lines, each with all of its copies: those whose hash ends in a number of zero bits.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bits = 0
        self._hashes = np.zeros(0, np.uint64)
        self._counts = np.zeros(0, np.int64)
        self._new: list[np.ndarray] = []
        self._waiting = 0

    @property
    def sampled(self) -> bool:
        """Whether the fraction is an estimate."""
        return self._bits > 0

    def add(self, hashes: np.ndarray) -> None:
        """Add lines, given by their 64-bit hashes."""
        chosen = hashes[self._is_chosen(hashes)]
        self._new.append(chosen)
        self._waiting += len(chosen)
        if self._waiting > self._limit // 4:
            self._merge()

    def duplicate_fraction(self) -> float:
        """Fraction of lines that are copies of an earlier one."""
        self._merge()
        return 1 - len(self._hashes) / max(1, int(self._counts.sum()))

    def _merge(self) -> None:
        hashes, counts = np.unique(np.concatenate([np.zeros(0, np.uint64), *self._new]), return_counts=True)
        both = np.concatenate([self._hashes, hashes])
        self._hashes, places = np.unique(both, return_inverse=True)
        self._counts = np.bincount(places, np.concatenate([self._counts, counts]), len(self._hashes)).astype(np.int64)
        self._new, self._waiting = [], 0
        while len(self._hashes) > self._limit:
            self._bits += 1
            kept = self._is_chosen(self._hashes)
            self._hashes, self._counts = self._hashes[kept], self._counts[kept]

    def _is_chosen(self, hashes: np.ndarray) -> np.ndarray:
        return (hashes & np.uint64((1 << self._bits) - 1)) == 0
