"""Vectors in AllenNLP's HDF5 layout: one dataset a sentence, named by its number, and a map from text to number.

``file["17"][...]`` reads one sentence. ``json.loads(file["sentence_to_index"][0])`` gives ``{text: "17", ...}``, where
a text is the words joined by one space, and of equal texts the last one counts. The map is pure ASCII, so slashes,
NULs and lone surrogates are safe in it. Two runs give the same bytes.
"""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from polyseme.embedding.records import Record
from polyseme.errors import FormatError, require
from polyseme.files import DeferredErrorFile

if TYPE_CHECKING:
    import h5py

_INDEX = "sentence_to_index"
_INDEX_LIMIT = 2**31 - 1  # numpy's longest string; HDF5 itself ends at 4 GiB
_COMPACT_LIMIT = 8 << 10  # smaller ones go into the dataset's own header, which halves the number of writes
_METADATA_BLOCK = 1 << 20
_VERSION = ("v108", "v108")  # any h5py reads it; the older layout is faster to write but keeps all names in memory

_log = logging.getLogger(__name__)


def write(records: Iterable[Record], file: DeferredErrorFile) -> None:
    """Write one dataset after another. The map is spooled beside the file and copied into its place at the end."""
    h5 = require("h5py", "hdf5")
    with tempfile.TemporaryFile(dir=Path(str(file.name)).parent) as index:
        with h5.File(file, "w", libver=_VERSION, meta_block_size=_METADATA_BLOCK) as target:
            _write_datasets(records, _Datasets(target), index)
            place = _reserve(target, index.tell())
        if place is not None:
            index.seek(0)
            file.seek(place)
            shutil.copyfileobj(index, file)


def read(path: Path) -> Iterator[np.ndarray]:
    """The datasets, in the order of their numbers."""
    h5 = require("h5py", "hdf5")
    with h5.File(path, "r") as source:
        for number in range(len(source) - (_INDEX in source)):
            try:
                dataset = h5.h5d.open(source.id, str(number).encode())
            except KeyError as error:
                raise FormatError(f"{path} has no dataset {number}: expected 0, 1, 2, ..., one a sentence") from error
            vectors = np.empty(dataset.shape, dataset.dtype)
            if vectors.size:
                dataset.read(h5.h5s.ALL, h5.h5s.ALL, vectors)
            yield vectors


def _write_datasets(records: Iterable[Record], datasets: _Datasets, index: IO[bytes]) -> None:
    index.write(b"{")
    for number, record in enumerate(records):
        datasets.add(str(number).encode(), record.vectors)
        index.write(f'{", " if number else ""}{json.dumps(record.text)}: "{number}"'.encode())
    index.write(b"}")


class _Datasets:
    """Makes a million small datasets cheaply: h5py's low level, with the properties and types made once."""

    def __init__(self, target: h5py.File) -> None:
        self._target = target.id
        self._h5 = h5 = require("h5py", "hdf5")
        self._compact, self._contiguous = _creation(h5.h5d.COMPACT), _creation(h5.h5d.CONTIGUOUS)
        self._types: dict[np.dtype, h5py.h5t.TypeID] = {}

    def add(self, name: bytes, vectors: np.ndarray) -> None:
        h5d, h5s, vectors = self._h5.h5d, self._h5.h5s, np.ascontiguousarray(vectors)
        number = self._types.get(vectors.dtype) or self._new_type(vectors.dtype)
        layout = self._compact if 0 < vectors.nbytes <= _COMPACT_LIMIT else self._contiguous
        dataset = h5d.create(self._target, name, number, h5s.create_simple(vectors.shape), layout)
        if vectors.size:
            dataset.write(h5s.ALL, h5s.ALL, vectors, mtype=number)

    def _new_type(self, dtype: np.dtype) -> h5py.h5t.TypeID:
        return self._types.setdefault(dtype, self._h5.h5t.py_create(dtype))


def _reserve(target: h5py.File, size: int) -> int | None:
    """Make room for a map of ``size`` bytes and tell where in the file it is."""
    h5 = require("h5py", "hdf5")
    if size > _INDEX_LIMIT:
        _log.warning("%s is left out: its %d bytes are more than a string in HDF5 can hold", _INDEX, size)
        return None
    text = h5.h5t.C_S1.copy()
    text.set_size(size)
    text.set_strpad(h5.h5t.STR_NULLPAD)
    creation = _creation(h5.h5d.CONTIGUOUS)
    creation.set_alloc_time(h5.h5d.ALLOC_TIME_EARLY)
    return h5.h5d.create(target.id, _INDEX.encode(), text, h5.h5s.create_simple((1,)), creation).get_offset()


def _creation(layout: int) -> h5py.h5p.PropDCID:
    """How a dataset is made: without times, so that two runs are alike, and not filled before it is written."""
    h5 = require("h5py", "hdf5")
    properties = h5.h5p.create(h5.h5p.DATASET_CREATE)
    properties.set_layout(layout)
    properties.set_obj_track_times(False)
    properties.set_fill_time(h5.h5d.FILL_TIME_NEVER)
    return properties
