"""Output files of word vectors, by suffix: HDF5, Parquet or npz, written atomically.

They are written and read in constant memory, but for npz, which is for small outputs: one array a sentence, under its
number (``np.load(path)["17"]`` reads one), without the words. A zip archive keeps its table of contents in memory,
about half a kilobyte a sentence. Two runs give the same bytes.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from polyseme.embedding import hdf5, parquet
from polyseme.embedding.records import Kind, Record
from polyseme.errors import FormatError, OutputError, PolysemeError, require
from polyseme.files import DeferredErrorFile, atomic_write

_NO_TIME = (1980, 1, 1, 0, 0, 0)


class _Format(NamedTuple):
    write: Callable[[Iterable[Record], DeferredErrorFile], None]
    read: Callable[[Path], Iterator[np.ndarray]]
    module: str = ""  # the optional package behind it, and the extra that brings it
    extra: str = ""


def _write_npz(records: Iterable[Record], file: IO[bytes]) -> None:
    """Write one array after another, uncompressed, as `numpy.savez` would."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for number, record in enumerate(records):
            entry = zipfile.ZipInfo(f"{number}.npy", date_time=_NO_TIME)
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(record.vectors), allow_pickle=False)


def _read_npz(path: Path) -> Iterator[np.ndarray]:
    """Read the arrays of an npz file, in the order of their numbers."""
    with zipfile.ZipFile(path) as archive:
        for number in range(len(archive.infolist())):
            with archive.open(f"{number}.npy") as member:
                yield np.lib.format.read_array(member, allow_pickle=False)


_HDF5 = _Format(hdf5.write, hdf5.read, "h5py", "hdf5")
_FORMATS = {
    ".h5": _HDF5,
    ".hdf5": _HDF5,
    ".parquet": _Format(parquet.write, parquet.read, "pyarrow", "parquet"),
    ".npz": _Format(_write_npz, _read_npz),
}


def check_suffix(path: Path) -> None:
    """Refuse a file name whose format cannot be written, before hours of work."""
    _format_of(path, OutputError)


def write_vectors(records: Iterable[Record], path: Path) -> None:
    """Write sentences and their vectors in one pass, in the format of the path's suffix."""
    form = _format_of(path, OutputError)
    with atomic_write(path) as file:
        form.write(_checked(records, file), file)


def read_vectors(path: str | Path) -> Iterator[np.ndarray]:
    """Read the vectors of every sentence, in order, from a file that `write_vectors` or `polyseme embed` wrote."""
    path = Path(path)
    form = _format_of(path, FormatError)
    if not path.exists():
        raise FormatError(f"{path} does not exist; give a file that `polyseme embed` or write_vectors wrote")
    return _read(form, path)


def _format_of(path: Path, error: type[PolysemeError]) -> _Format:
    form = _FORMATS.get(path.suffix.lower())
    if form is None:
        raise error(f"expected a file that ends in {', '.join(_FORMATS)}; got {path.name!r}")
    if form.module:
        require(form.module, form.extra)
    return form


def _checked(records: Iterable[Record], file: DeferredErrorFile) -> Iterator[Record]:
    """The records, as long as their shapes agree and the file takes them."""
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
