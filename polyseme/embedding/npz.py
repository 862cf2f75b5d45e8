"""Vectors as a numpy archive: one array a sentence, under its number. ``np.load(path)["17"]`` reads one.

For small outputs: a zip archive keeps its table of contents in memory, about half a kilobyte a sentence. The words
are not in it. Two runs give the same bytes.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import numpy as np

from polyseme.embedding.records import Record

_NO_TIME = (1980, 1, 1, 0, 0, 0)


def write(records: Iterable[Record], file: IO[bytes]) -> None:
    """Write one array after another, uncompressed, as `numpy.savez` would."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for number, record in enumerate(records):
            entry = zipfile.ZipInfo(f"{number}.npy", date_time=_NO_TIME)
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(record.vectors), allow_pickle=False)


def read(path: Path) -> Iterator[np.ndarray]:
    """The arrays, in the order of their numbers."""
    with zipfile.ZipFile(path) as archive:
        for number in range(len(archive.infolist())):
            with archive.open(f"{number}.npy") as member:
                yield np.lib.format.read_array(member, allow_pickle=False)
