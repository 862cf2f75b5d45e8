"""The vectors of a frozen encoder: all layers of every word, computed once and kept on disk.

A set of sentences is one file of the cache, named by the encoder's fingerprint and the sentences, so that all runs and
seeds over the same text share it. The cache is an `ArrayCache`, by default in ``features`` of the user's cache folder.
What has no room is computed again whenever it is needed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np

from polyseme.array_cache import BUDGET, ArrayCache, user_cache_folder
from polyseme.embedding.encoder import Encoder
from polyseme.embedding.interfaces import ArrayType
from polyseme.errors import ConfigError


class SentenceFeatures(Protocol):
    """The vectors of a set of sentences, looked up by sentence number."""

    def take(self, numbers: Sequence[int]) -> list[np.ndarray]:
        """For each of these sentences an array (words, layers, dim)."""
        ...


@dataclass(frozen=True, eq=False)
class CachedFeatures:
    """Precomputed vectors, memory-mapped from a cache file or held in memory."""

    rows: np.ndarray  # (all words, layers, dim)
    ends: np.ndarray  # (sentences + 1,) where each begins and ends

    def take(self, numbers: Sequence[int]) -> list[np.ndarray]:
        """For each of these sentences an array (words, layers, dim)."""
        return [self.rows[self.ends[number] : self.ends[number + 1]] for number in numbers]


@dataclass(frozen=True, eq=False)
class UncachedFeatures:
    """Vectors that are computed again at every look-up, for sets that do not fit the cache."""

    encoder: Encoder
    sentences: Sequence[Sequence[str]]
    dtype: ArrayType

    def take(self, numbers: Sequence[int]) -> list[np.ndarray]:
        """For each of these sentences an array (words, layers, dim)."""
        return list(embedded(self.encoder, [self.sentences[number] for number in numbers], self.dtype))


class FeatureCache:
    """On-disk cache of the vectors of frozen encoders, with a budget.

    Args:
        folder: Where to keep them; None is the user's cache folder.
        budget: Bytes that the folder may take.
        dtype: Precision on disk; float16 scored as well as float32 in our tests, and takes half the space.

    Attributes:
        remarks: Messages for the user, as that a set did not fit the budget.
    """

    def __init__(self, folder: str | Path | None = None, budget: int = BUDGET, dtype: ArrayType = "float16") -> None:
        if dtype not in ("float16", "float32"):
            raise ConfigError(f"vectors are kept as float16 or float32, not {dtype!r}")
        if budget < 0:
            raise ConfigError(f"the budget is a number of bytes, 0 or more; got {budget}")
        self.folder, self.budget = Path(folder) if folder else None, budget
        self.dtype: ArrayType = dtype
        self.remarks: list[str] = []

    def features(self, encoder: Encoder, sentences: Sequence[Sequence[str]]) -> SentenceFeatures:
        """The vectors of these sentences: from the cache, or computed and put there."""
        ends = np.cumsum([0, *map(len, sentences)])
        shape = (int(ends[-1]), encoder.num_layers, encoder.dim)
        size = int(np.prod(shape)) * np.dtype(self.dtype).itemsize
        if not size:  # nothing cannot be mapped
            return CachedFeatures(np.zeros(shape, dtype=self.dtype), ends)
        if self._arrays is None or size > self.budget:
            where = f"the cache's {self.budget / 1e9:.1f} GB" if self._arrays else "disk"
            return self._uncached(encoder, sentences, size, where)
        try:
            rows = self._arrays.fetch(
                self._key(encoder, sentences),
                lambda path: _open(path, shape, self.dtype),
                lambda file: _write(file, embedded(encoder, sentences, self.dtype), shape, self.dtype),
                size,
            )
        except OSError as error:
            return self._uncached(encoder, sentences, size, f"{self._arrays.folder} ({error.strerror or error})")
        if rows is None:
            return self._uncached(encoder, sentences, size, str(self._arrays.folder))
        return CachedFeatures(rows, ends)

    @cached_property
    def _arrays(self) -> ArrayCache | None:
        folder = self.folder or user_cache_folder("features")
        return ArrayCache(folder, ".npy", self.budget) if folder else None

    def _key(self, encoder: Encoder, sentences: Iterable[Sequence[str]]) -> str:
        digest = hashlib.sha256(f"{encoder.fingerprint()} {encoder.settings.precision} {self.dtype}".encode())
        for words in sentences:
            digest.update(json.dumps(words).encode())
        return digest.hexdigest()[:40]

    def _uncached(
        self, encoder: Encoder, sentences: Sequence[Sequence[str]], size: int, where: str
    ) -> UncachedFeatures:
        self.remarks.append(
            f"{size / 1e9:.2f} GB of vectors of {encoder.name} do not fit into {where}: "
            "they are computed again in every epoch"
        )
        return UncachedFeatures(encoder, sentences, self.dtype)


def embedded(encoder: Encoder, sentences: Iterable[Sequence[str]], dtype: ArrayType) -> Iterator[np.ndarray]:
    """Embed each sentence as an array (words, layers, dim), rounded as the cache rounds it."""
    for vectors in encoder.embed(sentences):
        with np.errstate(over="ignore"):
            rounded = vectors.astype(dtype, copy=False)
        if dtype == "float16" and not np.isfinite(rounded).all():
            raise ConfigError(f"vectors of {encoder.name} hold values beyond float16; keep them as float32")
        yield rounded.transpose(1, 0, 2)


def _open(path: Path, shape: tuple[int, ...], dtype: str) -> np.ndarray | None:
    rows = np.load(path, mmap_mode="r", allow_pickle=False)
    return rows if rows.shape == shape and rows.dtype == dtype else None


def _write(file: BinaryIO, vectors: Iterator[np.ndarray], shape: tuple[int, ...], dtype: str) -> None:
    header = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    for array in vectors:
        file.write(np.ascontiguousarray(array).data)
