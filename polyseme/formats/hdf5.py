"""Safe reading of foreign HDF5 files: datasets are checked before they are used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from polyseme.errors import FormatError, nearest, require
from polyseme.formats.stored import check_finite

if TYPE_CHECKING:
    import h5py


def open_hdf5(path: Path) -> h5py.File:
    """Open an HDF5 file for reading."""
    h5py = require("h5py", "hdf5")
    try:
        return h5py.File(path, "r")
    except OSError as error:
        raise FormatError(f"{path} is not a readable HDF5 file (truncated, or something else): {error}") from error


def read_dataset(file: h5py.File, name: str, shapes: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Read an HDF5 dataset of floating-point numbers that has one of the given shapes."""
    where = f"{file.filename}: dataset {name!r}"
    dataset = find_dataset(file, name)
    if dataset is None:
        names: list[str] = []
        file.visit(names.append)
        raise FormatError(f"{where} is missing.{nearest(name, names)}")
    if dataset.shape not in shapes:
        raise FormatError(f"{where} should have shape {shapes[0]} by the options, not {dataset.shape}")
    if dataset.dtype.kind != "f":
        raise FormatError(f"{where} should hold floating-point numbers, not {dataset.dtype}")
    try:
        array = dataset[...]
    except OSError as error:
        raise FormatError(f"{where} cannot be read: {error}") from error
    check_finite(torch.from_numpy(array), where)
    return array


def find_dataset(file: h5py.File, name: str) -> h5py.Dataset | None:
    """Find an HDF5 dataset by its path, refusing links and external data."""
    h5py = require("h5py", "hdf5")
    node: Any = file
    for part in name.split("/"):
        link = node.get(part, getlink=True) if isinstance(node, h5py.Group) else None
        if link is None:
            return None
        if not isinstance(link, h5py.HardLink):
            raise FormatError(f"{file.filename}: {name!r} is a link; only plain datasets are read")
        node = node[part]
    if not isinstance(node, h5py.Dataset):
        return None
    if node.is_virtual or node.external:
        raise FormatError(f"{file.filename}: the data of {name!r} are in another file; only plain datasets are read")
    return node
