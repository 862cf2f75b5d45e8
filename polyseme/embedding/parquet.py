r"""Vectors as a Parquet table, one row a word: ``sentence``, ``position``, ``word``, ``vector``.

A vector is a fixed-size list of ``dim`` numbers, or of ``layers`` such lists; float16 is Parquet's own half precision.
Pooled vectors have one row a sentence: ``sentence``, ``text``, ``vector``. A sentence without words has no rows, so
the file's metadata tells how many sentences there are (``polyseme.sentences``). Lone surrogates, which UTF-8 cannot
hold, are written as ``\ud800``.

Compression is zstd: it costs no time worth mention and saves some 8 % on vectors, more where words repeat (their
first layer is the same).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import chain, groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from polyseme.embedding.records import Kind, Record
from polyseme.errors import FormatError, require

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.parquet

_COUNT = "polyseme.sentences"
_GROUP_BYTES = 16 << 20


def write(records: Iterable[Record], file: IO[bytes]) -> None:
    """Write row groups of bounded size."""
    pq = require("pyarrow.parquet", "parquet")
    records = iter(records)
    first = next(records, None)
    schema = _schema(Kind.of(first) if first else None)
    plain = [name for name in schema.names if name != "vector"]
    with pq.ParquetWriter(file, schema, compression="zstd", use_dictionary=plain, write_statistics=plain) as writer:
        rows, count = _Rows(schema), 0
        for record in chain([first] if first else [], records):
            rows.add(count, record)
            count += 1
            if rows.bytes >= _GROUP_BYTES:
                writer.write_batch(rows.take())
        if rows.bytes:
            writer.write_batch(rows.take())
        writer.add_key_value_metadata({_COUNT: str(count)})


def read(path: Path) -> Iterator[np.ndarray]:
    """The vectors of every sentence, put together from their rows."""
    pq = require("pyarrow.parquet", "parquet")
    with pq.ParquetFile(path) as file:
        count = int((file.metadata.metadata or {}).get(_COUNT.encode(), -1))
        if count < 0:
            raise FormatError(f"{path} does not tell its number of sentences: expected {_COUNT} in its metadata")
        expected = 0
        for number, pieces in groupby(_runs(file), key=itemgetter(0)):
            yield from _empty(file, number - expected)
            yield _sentence(file, np.concatenate([rows for _, rows in pieces]))
            expected = number + 1
        yield from _empty(file, count - expected)


def _schema(kind: Kind | None) -> pyarrow.Schema:
    """The columns for a kind of vectors; without any sentence nothing is known about the vectors."""
    pa = require("pyarrow", "parquet")
    number, words = ("sentence", pa.int64()), [("position", pa.int32()), ("word", pa.string())]
    if kind is None:
        return pa.schema([number, *words])
    vector = pa.float16() if kind.dtype == "float16" else pa.float32()
    for size in reversed(kind.shape):
        vector = vector if size is None else pa.list_(vector, size)
    return pa.schema([number, *([("text", pa.string())] if len(kind.shape) == 1 else words), ("vector", vector)])


class _Rows:
    """The sentences of a row group that is being filled."""

    def __init__(self, schema: pyarrow.Schema) -> None:
        self._schema = schema
        self._sentences: list[tuple[int, Record]] = []
        self.bytes = 0

    def add(self, number: int, record: Record) -> None:
        if record.vectors.size:
            self._sentences.append((number, record))
            self.bytes += record.vectors.nbytes

    def take(self) -> pyarrow.RecordBatch:
        """The row group; a new one is begun."""
        pa = require("pyarrow", "parquet")
        columns = [pa.array(self._column(field.name), field.type) for field in self._schema if field.name != "vector"]
        cells = np.concatenate([_by_word(record.vectors) for _, record in self._sentences])
        vectors = pa.array(cells.reshape(-1))
        for size in reversed(cells.shape[1:]):
            vectors = pa.FixedSizeListArray.from_arrays(vectors, size)
        self._sentences, self.bytes = [], 0
        return pa.record_batch([*columns, vectors], schema=self._schema)

    def _column(self, name: str) -> list[bytes] | np.ndarray:
        if name == "text":
            return [_utf8(record.text) for _, record in self._sentences]
        if name == "word":
            return [_utf8(word) for _, record in self._sentences for word in record.words]
        lengths = [len(_by_word(record.vectors)) for _, record in self._sentences]
        if name == "position":
            return np.concatenate([np.arange(length) for length in lengths])
        return np.repeat([number for number, _ in self._sentences], lengths)


def _by_word(vectors: np.ndarray) -> np.ndarray:
    """The vectors with one row a word: (words, layers, dim), (words, dim), or (1, dim) for a pooled sentence."""
    return vectors.swapaxes(0, 1) if vectors.ndim == 3 else np.atleast_2d(vectors)


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _cell_shape(file: pyarrow.parquet.ParquetFile) -> tuple[int, ...]:
    """The shape of one row's vector, (layers, dim) or (dim,), as the column's type tells it."""
    kind, shape = file.schema_arrow.field("vector").type, []
    while hasattr(kind, "list_size"):
        shape.append(kind.list_size)
        kind = kind.value_type
    return tuple(shape)


def _runs(file: pyarrow.parquet.ParquetFile) -> Iterator[tuple[int, np.ndarray]]:
    """Rows of the same sentence that stand together, with its number; a sentence may come in several runs."""
    for group in range(file.num_row_groups):  # one by one: pyarrow would keep what it has read of the others
        shape = _cell_shape(file)
        rows = max(1, _GROUP_BYTES // (4 * math.prod(shape)))
        for batch in file.iter_batches(rows, [group], ["sentence", "vector"]):
            numbers, vectors = batch.column("sentence").to_numpy(), batch.column("vector")
            for _ in shape:
                vectors = vectors.flatten()
            cells = vectors.to_numpy().reshape(-1, *shape)
            starts = np.flatnonzero(np.diff(numbers, prepend=-1, append=-1))
            for start, end in pairwise(starts.tolist()):
                yield int(numbers[start]), cells[start:end]


def _sentence(file: pyarrow.parquet.ParquetFile, cells: np.ndarray) -> np.ndarray:
    """The inverse of `_by_word`."""
    if "text" in file.schema_arrow.names:
        return cells[0]
    return np.ascontiguousarray(cells.swapaxes(0, 1)) if cells.ndim == 3 else cells


def _empty(file: pyarrow.parquet.ParquetFile, count: int) -> Iterator[np.ndarray]:
    """So many sentences without words."""
    if count:
        *layers, dim = _cell_shape(file)
        half = "halffloat" in str(file.schema_arrow.field("vector").type)
        for _ in range(count):
            yield np.empty((*layers, 0, dim), np.float16 if half else np.float32)
