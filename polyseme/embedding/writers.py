"""The final file of an embedding run, in the format that its name asks for: HDF5, Parquet or npz.

It appears whole or not at all, and is written and read in constant memory (npz: see there).
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from polyseme.embedding import hdf5, npz, parquet
from polyseme.embedding.records import Kind, Record
from polyseme.errors import FormatError, OutputError, PolysemeError, require
from polyseme.files import DeferredErrorFile, atomic_write


class _Format(NamedTuple):
    write: Callable[[Iterable[Record], DeferredErrorFile], None]
    read: Callable[[Path], Iterator[np.ndarray]]
    module: str = ""  # the optional package behind it, and the extra that brings it
    extra: str = ""


_HDF5 = _Format(hdf5.write, hdf5.read, "h5py", "hdf5")
_FORMATS = {
    ".h5": _HDF5,
    ".hdf5": _HDF5,
    ".parquet": _Format(parquet.write, parquet.read, "pyarrow", "parquet"),
    ".npz": _Format(npz.write, npz.read),
}


def check_suffix(path: Path) -> None:
    """Refuse a file that could not be written in the end. To be called before the hours of work."""
    _format_of(path, OutputError)


def write_vectors(records: Iterable[Record], path: Path) -> None:
    """Write sentences and their vectors in one pass, in the format of the path's suffix."""
    form = _format_of(path, OutputError)
    with atomic_write(path) as file:
        form.write(_checked(records, file), file)


def read_vectors(path: str | Path) -> Iterator[np.ndarray]:
    """The vectors of every sentence, in order, as they were given to `write_vectors`."""
    path = Path(path)
    return _read(_format_of(path, FormatError), path)


def _format_of(path: Path, error: type[PolysemeError]) -> _Format:
    form = _FORMATS.get(path.suffix.lower())
    if form is None:
        raise error(f"expected a file that ends in {', '.join(_FORMATS)}; got {path.name!r}")
    if form.module:
        require(form.module, form.extra)
    return form


def _checked(records: Iterable[Record], file: DeferredErrorFile) -> Iterator[Record]:
    """The records, as long as they are alike and the file takes them."""
    expected = None
    for record in records:
        kind = Kind.of(record)
        expected = expected or kind
        expected.check(kind)
        yield record
        file.check()


def _read(form: _Format, path: Path) -> Iterator[np.ndarray]:
    try:
        yield from form.read(path)
    except PolysemeError:
        raise
    except (
        OSError,
        EOFError,
        ValueError,
        LookupError,
        RuntimeError,
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
    ) as e:
        raise FormatError(f"cannot read vectors from {path}: {e}; write it again") from e
