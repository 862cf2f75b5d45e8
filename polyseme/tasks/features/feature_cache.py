"""The vectors of a frozen encoder: all layers of every word, computed once and kept on disk.

A set of sentences is one file of the cache, named by the encoder's fingerprint and the sentences, so that all runs and
seeds over the same text share it. The cache is a folder (``features`` in polyseme's, see `formats.vectors.cache`) that
has a budget: what was not used for longest goes first. What has no room is computed anew whenever it is needed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from polyseme.embedding.encoder import Encoder
from polyseme.embedding.interfaces import ArrayType
from polyseme.errors import ConfigError
from polyseme.files import UNFINISHED
from polyseme.formats.vectors.cache import user_folder

BUDGET = 16 << 30  # bytes
_ABANDONED = 3600  # seconds after which nobody is writing any more


class Features(Protocol):
    """The vectors of some sentences, by number."""

    def take(self, numbers: Sequence[int]) -> list[np.ndarray]:
        """For each of these sentences an array (words, layers, dim)."""
        ...


@dataclass(frozen=True, eq=False)
class Kept:
    """Vectors that were computed before, mapped from a file or held in memory."""

    rows: np.ndarray  # (all words, layers, dim)
    ends: np.ndarray  # (sentences + 1,) where each begins and ends

    def take(self, numbers: Sequence[int]) -> list[np.ndarray]:
        """For each of these sentences an array (words, layers, dim)."""
        return [self.rows[self.ends[number] : self.ends[number + 1]] for number in numbers]


@dataclass(frozen=True, eq=False)
class Fresh:
    """Vectors that are computed whenever they are asked for."""

    encoder: Encoder
    sentences: Sequence[Sequence[str]]
    dtype: ArrayType

    def take(self, numbers: Sequence[int]) -> list[np.ndarray]:
        """For each of these sentences an array (words, layers, dim)."""
        return list(embedded(self.encoder, [self.sentences[number] for number in numbers], self.dtype))


class FeatureCache:
    """A folder of computed vectors.

    Args:
        folder: Where; None is the user's.
        budget: Bytes that the folder may take.
        dtype: Of the numbers; half the bits do as well in our tests, and take half the room.

    Attributes:
        remarks: What a person should know, as that something had no room.
    """

    def __init__(self, folder: str | Path | None = None, budget: int = BUDGET, dtype: ArrayType = "float16") -> None:
        if dtype not in ("float16", "float32"):
            raise ConfigError(f"vectors are kept as float16 or float32, not {dtype!r}")
        if budget < 0:
            raise ConfigError(f"the budget is a number of bytes, 0 or more; got {budget}")
        self.folder, self.budget = Path(folder) if folder else None, budget
        self.dtype: ArrayType = dtype
        self.remarks: list[str] = []
        self._used: set[Path] = set()

    def features(self, encoder: Encoder, sentences: Sequence[Sequence[str]]) -> Features:
        """The vectors of these sentences: from the cache, or computed and put there."""
        ends = np.cumsum([0, *map(len, sentences)])
        shape = (int(ends[-1]), encoder.num_layers, encoder.dim)
        size = int(np.prod(shape)) * np.dtype(self.dtype).itemsize
        place = self._place(encoder, sentences)
        if size > self.budget or place is None:
            return self._fresh(encoder, sentences, size, f"the cache's {self.budget / 1e9:.1f} GB" if place else "disk")
        rows = _open(place, shape, self.dtype)
        if rows is None:
            try:
                self._write(place, embedded(encoder, sentences, self.dtype), shape)
            except OSError as error:
                return self._fresh(encoder, sentences, size, f"{place.parent} ({error.strerror or error})")
            rows = _open(place, shape, self.dtype)
        if rows is None:
            return self._fresh(encoder, sentences, size, str(place.parent))
        with contextlib.suppress(OSError):
            os.utime(place)
        self._used.add(place)
        return Kept(rows, ends)

    def _place(self, encoder: Encoder, sentences: Iterable[Sequence[str]]) -> Path | None:
        digest = hashlib.sha256(f"{encoder.fingerprint()} {encoder.settings.precision} {self.dtype}".encode())
        for words in sentences:
            digest.update(json.dumps(words).encode())
        try:
            return (self.folder or user_folder() / "features") / f"{digest.hexdigest()[:40]}.npy"
        except RuntimeError:  # no home
            return None

    def _fresh(self, encoder: Encoder, sentences: Sequence[Sequence[str]], size: int, where: str) -> Fresh:
        self.remarks.append(
            f"{size / 1e9:.2f} GB of vectors of {encoder.name} have no room in {where}: computed anew in every epoch"
        )
        return Fresh(encoder, sentences, self.dtype)

    def _write(self, place: Path, vectors: Iterator[np.ndarray], shape: tuple[int, ...]) -> None:
        """Under a name of its own, for another process may be doing the same; then it is renamed."""
        place.parent.mkdir(parents=True, exist_ok=True)
        self._make_room(place.parent, int(np.prod(shape)) * np.dtype(self.dtype).itemsize)
        descriptor, name = tempfile.mkstemp(UNFINISHED, f".{place.name}.", place.parent)
        try:
            with os.fdopen(descriptor, "w+b") as file:
                header = {"descr": np.lib.format.dtype_to_descr(np.dtype(self.dtype)), "fortran_order": False}
                np.lib.format.write_array_header_1_0(file, {**header, "shape": shape})
                for array in vectors:
                    file.write(np.ascontiguousarray(array).data)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(place)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise

    def _make_room(self, folder: Path, needed: int) -> None:
        """Take away what was not used for longest, and what a killed process left."""
        for left in folder.glob(f".*{UNFINISHED}"):
            with contextlib.suppress(OSError):
                if time.time() - left.stat().st_mtime > _ABANDONED:
                    left.unlink()
        files = [(path.stat(), path) for path in folder.glob("*.npy") if path not in self._used]
        total = needed + sum(path.stat().st_size for path in folder.glob("*.npy"))
        for facts, path in sorted(files, key=lambda file: file[0].st_mtime):
            if total <= self.budget:
                return
            with contextlib.suppress(OSError):
                path.unlink()
                total -= facts.st_size


def embedded(encoder: Encoder, sentences: Iterable[Sequence[str]], dtype: ArrayType) -> Iterator[np.ndarray]:
    """For each sentence an array (words, layers, dim), rounded as the cache rounds it."""
    for vectors in encoder.embed(sentences):
        with np.errstate(over="ignore"):
            rounded = vectors.astype(dtype, copy=False)
        if dtype == "float16" and not np.isfinite(rounded).all():
            raise ConfigError(f"vectors of {encoder.name} hold values beyond float16; keep them as float32")
        yield rounded.transpose(1, 0, 2)


def _open(place: Path, shape: tuple[int, ...], dtype: str) -> np.ndarray | None:
    """What is kept, unless it is damaged; no words at all cannot be mapped."""
    if not shape[0]:
        return np.zeros(shape, dtype=dtype)
    try:
        rows = np.load(place, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return rows if rows.shape == shape and rows.dtype == dtype else None
