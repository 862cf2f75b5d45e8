"""Memory-mapped table of word vectors: one file that opens at once, however many words it has.

The file is safetensors, for any program to read:

    vectors  float32 (words, dim)
    hashes   int64 (words), sorted: BLAKE2b of each word's UTF-8, 8 bytes, little-endian
    offsets  int64 (words + 1), of each word in ``text``
    rows     int32 (words): which row has which hash
    mean     float32 (dim)
    text     uint8: the words' UTF-8, one after the other

A dictionary of a million strings takes over 100 MB and a second to build. Here a word is found by its hash and then
compared, so that hash collisions do no harm.
"""

from __future__ import annotations

import hashlib
import io
import json
import mmap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from polyseme.errors import FormatError
from polyseme.formats.vectors.file import Block

if TYPE_CHECKING:
    from hashlib import _Hash

ROWS, NUMBERS = 1 << 14, 1 << 24  # processed together, at most
_TAKEN = 512  # vectors read before pages are released: each may have loaded 64 kB
_HEADER = 4096  # bytes reserved for safetensors' header, which is written last
_TYPES = {"F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "u1"}


class VectorTable:
    """Table of word vectors, looked up by word. Immutable and thread-safe."""

    def __init__(self, buffer: mmap.mmap | memoryview, path: Path | None = None) -> None:
        self.path = path  # None when it is held in memory
        self._buffer = buffer
        arrays, self.about = _read_header(buffer)
        self.vectors, self.mean = arrays["vectors"], arrays["mean"]
        self._hashes, self._rows, self._offsets = arrays["hashes"], arrays["rows"], arrays["offsets"]
        self._text = arrays["text"].data
        self._taken = 0

    @classmethod
    def open(cls, path: Path) -> VectorTable:
        """Open a table by memory-mapping its file."""
        with path.open("rb") as file:
            return cls(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), path)

    def __len__(self) -> int:
        return len(self.vectors)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by path: another process maps the same file; a table in memory is copied."""
        return (_open_path, (self.path,)) if self.path else (_open_bytes, (bytes(self._buffer),))

    @property
    def dim(self) -> int:
        """Dimensions of a word vector."""
        return self.vectors.shape[1]

    def word(self, row: int) -> str:
        """Word of a row of the table."""
        return str(self._text[self._offsets[row] : self._offsets[row + 1]], "utf-8")

    def find(self, words: Sequence[str]) -> np.ndarray:
        """Find the row of each word; -1 for unknown words."""
        rows = np.full(len(words), -1, dtype=np.int64)
        encoded = [word.encode("utf-8", "surrogatepass") for word in words]
        hashes = _hash(encoded)
        places = np.minimum(np.searchsorted(self._hashes, hashes), len(self) - 1)
        for number in np.flatnonzero(self._hashes[places] == hashes).tolist():
            rows[number] = self._compare(encoded[number], int(places[number]), int(hashes[number]))
        return rows

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Copy the vectors of some rows."""
        vectors = self.vectors[rows]
        self._taken += len(rows)
        if self._taken > _TAKEN:
            self._taken = 0
            self._release()
        return vectors

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """Iterate over all vectors in blocks, each with the row of its first; memory does not grow with them."""
        for first in range(0, len(self), ROWS):
            yield first, self.vectors[first : first + ROWS]
            self._release()

    def _release(self) -> None:
        """Release mapped pages; they stay in the system's cache, and come back when needed."""
        if isinstance(self._buffer, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            self._buffer.madvise(mmap.MADV_DONTNEED)

    def _compare(self, word: bytes, place: int, hashed: int) -> int:
        while place < len(self) and self._hashes[place] == hashed:
            row = int(self._rows[place])
            if self._text[self._offsets[row] : self._offsets[row + 1]] == word:
                return row
            place += 1
        return -1


def write_table(blocks: Iterable[Block], dim: int, file: BinaryIO, about: Mapping[str, str]) -> None:
    """Write a table from a stream of blocks; of duplicate words the first is kept.

    Counts (``duplicates``, ``replaced``) and the ``digest`` are added to the metadata ``about``.
    """
    file.seek(_HEADER)
    texts: list[bytes] = []
    lengths: list[np.ndarray] = []
    hashes: list[np.ndarray] = []
    replaced = 0
    for block in blocks:
        encoded = [word.encode("utf-8", "surrogatepass") for word in block.words]
        file.write(block.rows.astype("<f4", copy=False).tobytes())
        texts.append(b"".join(encoded))
        lengths.append(np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded)))
        hashes.append(_hash(encoded))
        replaced += block.replaced
    text, length, hashed = b"".join(texts), np.concatenate(lengths), np.concatenate(hashes)
    kept = _first_of_each(text, length, hashed)
    if not kept.all():
        text = np.frombuffer(text, dtype=np.uint8)[np.repeat(kept, length)].tobytes()
    mean, digest = _compact_rows(file, dim, kept)
    digest.update(text)
    order = np.argsort(hashed[kept], kind="stable")
    arrays = {
        "hashes": hashed[kept][order],
        "offsets": np.concatenate([[0], np.cumsum(length[kept])]).astype("<i8"),
        "rows": order.astype("<i4"),
        "mean": mean,
        "text": np.frombuffer(text, dtype=np.uint8),
    }
    counts = {"duplicates": int((~kept).sum()), "replaced": replaced, "digest": digest.hexdigest()}
    _write_arrays(file, (len(order), dim), arrays, {**about, **{name: str(count) for name, count in counts.items()}})


def build_in_memory(blocks: Iterable[Block], dim: int, about: Mapping[str, str]) -> VectorTable:
    """Build a table of word vectors in memory."""
    buffer = io.BytesIO()
    write_table(blocks, dim, buffer, about)
    return VectorTable(buffer.getbuffer())


def _hash(words: Iterable[bytes]) -> np.ndarray:
    return np.frombuffer(b"".join([hashlib.blake2b(word, digest_size=8).digest() for word in words]), dtype="<i8")


def _first_of_each(text: bytes, lengths: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    """Mask of first occurrences; words are compared only where hashes are equal."""
    kept = np.ones(len(hashes), dtype=bool)
    order = np.argsort(hashes, kind="stable")
    equal = np.flatnonzero(hashes[order][1:] == hashes[order][:-1])
    suspects = np.unique(np.concatenate([order[equal], order[equal + 1]]))
    ends = np.cumsum(lengths)
    seen: set[bytes] = set()
    for row in suspects.tolist():
        word = text[ends[row] - lengths[row] : ends[row]]
        kept[row] = word not in seen
        seen.add(word)
    return kept


def _compact_rows(file: BinaryIO, dim: int, kept: np.ndarray) -> tuple[np.ndarray, _Hash]:
    """Remove the rows of duplicates from the file, and compute mean and digest of the others."""
    total = np.zeros(dim)
    digest = hashlib.sha256()
    place = 0
    step = max(1, min(ROWS, NUMBERS // dim))
    for first in range(0, len(kept), step):
        keep = kept[first : first + step]
        file.seek(_HEADER + 4 * dim * first)
        rows = np.frombuffer(_read_exactly(file, 4 * dim * len(keep)), dtype="<f4").reshape(-1, dim)[keep]
        if place != first or not keep.all():
            file.seek(_HEADER + 4 * dim * place)
            file.write(rows.tobytes())
        place += len(rows)
        total += rows.sum(axis=0, dtype=np.float64)
        digest.update(rows.tobytes())
    file.seek(_HEADER + 4 * dim * place)
    return (total / place).astype("<f4"), digest


def _read_exactly(file: BinaryIO, size: int) -> bytes:
    parts = []
    while size and (part := file.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _write_arrays(file: BinaryIO, shape: tuple[int, int], arrays: dict[str, np.ndarray], about: dict[str, str]) -> None:
    """Write the arrays after the vectors, truncate the rest, and write the safetensors header."""
    header: dict[str, Any] = {"__metadata__": about}
    end = file.tell() - _HEADER
    header["vectors"] = {"dtype": "F32", "shape": shape, "data_offsets": [0, end]}
    if end % 8:  # 8-byte numbers must be aligned to 8 bytes
        arrays = {"padding": np.zeros(4, dtype=np.uint8), **arrays}
    names = {np.dtype(kind): name for name, kind in _TYPES.items()}
    for name, array in arrays.items():
        file.write(array.tobytes())
        header[name] = {
            "dtype": names[array.dtype],
            "shape": array.shape,
            "data_offsets": [end, end := end + array.nbytes],
        }
    file.truncate()
    encoded = json.dumps(header).encode()
    file.seek(0)
    file.write((_HEADER - 8).to_bytes(8, "little") + encoded.ljust(_HEADER - 8))


def _read_header(buffer: mmap.mmap | memoryview) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Parse the safetensors header: arrays as views of the buffer, and the metadata."""
    header = json.loads(bytes(buffer[8:_HEADER]))
    about = header.pop("__metadata__")
    data = np.frombuffer(buffer, dtype=np.uint8)[_HEADER:]
    if max(entry["data_offsets"][1] for entry in header.values()) != len(data):
        raise FormatError("the file is truncated")
    arrays = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        arrays[name] = data[first:last].view(_TYPES[entry["dtype"]]).reshape(entry["shape"])
    return arrays, about


def _open_path(path: Path) -> VectorTable:
    return VectorTable.open(path)


def _open_bytes(data: bytes) -> VectorTable:
    return VectorTable(memoryview(data))
