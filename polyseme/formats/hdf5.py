"""Safe reading of foreign HDF5 files: datasets are checked before they are used.

Nothing outside the file is read: no soft or external link is followed, no virtual or external storage is opened, and no
filter is run that is not built in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from polyseme.errors import FormatError, nearest, require
from polyseme.formats.budget import Budget, check_plain_file

if TYPE_CHECKING:
    import h5py

FILTERS = {1: "gzip", 2: "shuffle", 3: "fletcher32", 32000: "lzf"}
MAX_CHUNKS = 1 << 17  # HDF5 keeps some hundred bytes for each while it reads a dataset
MAX_NAMES = 1_000  # among which the nearest to a missing one is searched


def open_hdf5(path: Path) -> h5py.File:
    """Open an HDF5 file for reading."""
    h5py = require("h5py", "hdf5")
    check_plain_file(path)
    try:
        return h5py.File(path, "r")
    except OSError as error:
        raise FormatError(f"{path} is not a readable HDF5 file (truncated, or something else): {error}") from error


def read_dataset(file: h5py.File, name: str, shapes: Sequence[tuple[int, ...]], budget: Budget) -> np.ndarray:
    """Read an HDF5 dataset of floating-point numbers that has one of the given shapes."""
    where = f"{file.filename}: dataset {name!r}"
    dataset = find_dataset(file, name)
    if dataset is None:
        raise FormatError(f"{where} is missing.{nearest(name, _names(file))}")
    if dataset.shape not in shapes:
        raise FormatError(f"{where} should have shape {shapes[0]} by the options, not {dataset.shape}")
    if dataset.dtype.kind != "f":
        raise FormatError(f"{where} should hold floating-point numbers, not {dataset.dtype}")
    budget.take_array(dataset.shape, dataset.dtype.itemsize, f"dataset {name!r}")
    _check_storage(dataset, where, budget)
    try:
        return dataset[...]
    except OSError as error:
        raise FormatError(f"{where} cannot be read: {error}") from error


def find_dataset(file: h5py.File, name: str) -> h5py.Dataset | None:
    """Find an HDF5 dataset by its path, refusing links and external data."""
    h5py = require("h5py", "hdf5")
    node: Any = find_object(file, name)
    if not isinstance(node, h5py.Dataset):
        return None
    if node.is_virtual or node.external:
        raise FormatError(f"{file.filename}: the data of {name!r} are in another file; only plain datasets are read")
    return node


def find_object(file: h5py.File, name: str) -> h5py.Group | h5py.Dataset | None:
    """Find a group or dataset by its path, without following soft or external links, which are refused."""
    h5py = require("h5py", "hdf5")
    node: Any = file
    for part in name.split("/"):
        link = node.get(part, getlink=True) if isinstance(node, h5py.Group) else None
        if link is None:
            return None
        if not isinstance(link, h5py.HardLink):
            raise FormatError(f"{file.filename}: {name!r} is a link; only plain datasets are read")
        node = node[part]
    return node


def _check_storage(dataset: h5py.Dataset, where: str, budget: Budget) -> None:
    """Refuse filters that are not built in, and chunks that take far more memory than the dataset."""
    properties = dataset.id.get_create_plist()
    for number in range(properties.get_nfilters()):
        code = properties.get_filter(number)[0]
        if code not in FILTERS:
            known = ", ".join(FILTERS.values())
            raise FormatError(f"{where} is stored with HDF5 filter number {code}; only {known} are read")
    if dataset.chunks:
        chunks = math.prod(-(-size // chunk) for size, chunk in zip(dataset.shape, dataset.chunks, strict=True))
        if chunks > MAX_CHUNKS:
            raise FormatError(f"{where} is stored in {chunks:,} chunks; expected at most {MAX_CHUNKS:,}")
        excess = math.prod(dataset.chunks) * dataset.dtype.itemsize - dataset.nbytes
        Budget(budget.file).take(max(0, excess), f"a chunk of dataset {dataset.name!r}")


def _names(file: h5py.File) -> list[str]:
    names: list[str] = []

    def note(name: str) -> bool | None:
        names.append(name)
        return True if len(names) >= MAX_NAMES else None

    file.visit(note)
    return names
