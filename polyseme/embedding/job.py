"""Resumable embedding jobs: a stream of sentences to finished parts, from where the last run ended.

Work goes by *units*: sentences that must be embedded together. A sentence is a unit of its own, or a document is one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from polyseme.embedding.layers import POOLINGS, LayerChoice, choose, pool
from polyseme.embedding.parts import Parts
from polyseme.embedding.records import Record
from polyseme.errors import ConfigError, OutputError, nearest
from polyseme.progress import skipped_so_far
from polyseme.text.vocabulary import BOS, EOS

Unit = list[list[str]]
EmbedUnits = Callable[[Iterator[Unit]], Iterator[list[np.ndarray]]]


@dataclass(frozen=True)
class OutputSpec:
    """Output of an embedding job: what is made of a sentence's vectors (layers, words, dim).

    Attributes:
        layers: Which of them, or what mixture.
        pool: ``mean`` or ``max`` for one vector a sentence.
        dtype: Of the numbers that are written.
        boundaries: Whether the vectors come with those of the boundary words.
    """

    layers: LayerChoice = "all"
    pool: str | None = None
    dtype: str = "float32"
    boundaries: bool = False

    def __post_init__(self) -> None:
        if self.dtype not in ("float32", "float16"):
            raise ConfigError(f"dtype must be float32 or float16, not {self.dtype!r}")
        if self.pool is None:
            return
        if self.pool not in POOLINGS:
            raise ConfigError(f"pool must be mean or max, not {self.pool!r}.{nearest(self.pool, POOLINGS)}")
        if self.boundaries:
            raise ConfigError("pooling is over real words; leave boundaries out")
        if self.layers == "all":
            raise ConfigError(
                "pooling makes one vector of one layer; choose top, average, a number or a mix for layers"
            )

    def record(self, words: list[str], vectors: np.ndarray) -> Record:
        """The record of a sentence, as it is written."""
        chosen = choose(vectors, self.layers)
        pooled = pool(chosen, self.pool) if self.pool else chosen
        try:
            with np.errstate(over="raise"):
                return Record(self.shown(words), pooled.astype(self.dtype))
        except FloatingPointError:
            raise ConfigError(f"there are values beyond {self.dtype}; use float32, or a smaller gamma") from None

    def shown(self, words: list[str]) -> list[str]:
        """The words that have vectors, boundary words included if asked for."""
        return [BOS, *words, EOS] if self.boundaries else words


def single_sentences(sentences: Iterable[list[str]]) -> Iterator[Unit]:
    """Units of one sentence each, embedded independently."""
    return ([words] for words in sentences)


def documents(sentences: Iterable[list[str]]) -> Iterator[Unit]:
    """Units of one document each, ended by an empty sentence, which is kept so that numbers stay those of the lines."""
    return (list(group) for _, group in groupby(sentences, key=bool))


def embed_into(parts: Parts, units: Iterable[Unit], embed: EmbedUnits, spec: OutputSpec) -> Iterator[list[str]]:
    """Embed all sentences that are not among the parts yet, and give each when it has been taken."""
    done = parts.done
    begun: deque[tuple[Unit, int]] = deque()

    def unfinished() -> Iterator[Unit]:
        number = 0
        for unit in _checked(units, parts, spec):
            before, number = number, number + len(unit)
            if number > done:
                if before <= done:
                    skipped_so_far()
                begun.append((unit, max(0, done - before)))
                yield unit

    for vectors in embed(unfinished()):
        unit, skipped = begun.popleft()
        for words, array in list(zip(unit, vectors, strict=True))[skipped:]:
            parts.append([spec.record(words, array)])
            yield words
    parts.flush()


def _checked(units: Iterable[Unit], parts: Parts, spec: OutputSpec) -> Iterator[Unit]:
    """The same units, after a check that the sentences already done have not changed."""
    stored = parts.read()
    done, number = parts.done, 0
    for unit in units:
        for words in unit:
            if number < done and next(stored).words != spec.shown(words):
                raise OutputError(
                    f"sentence {number} has changed since the run in {parts.folder} started; use --overwrite"
                )
            number += 1
        yield unit
    if number < done:
        raise OutputError(f"the input has {number} sentences, but {parts.folder} has {done}; use --overwrite")
