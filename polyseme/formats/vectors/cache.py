"""A file of vectors is read once; what was read is kept in a cache and mapped from then on.

The cache is a folder: as told, or ``$POLYSEME_CACHE``, or ``polyseme`` in ``$XDG_CACHE_HOME`` or in ``~/.cache``. It
holds one file for each file of vectors, made anew when the size or the time of the original has changed. Where nothing
can be written (no room, no permission), vectors are held in memory.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import tempfile
import time
from pathlib import Path

from polyseme.errors import FormatError
from polyseme.files import UNFINISHED
from polyseme.formats.vectors import VectorFile, read_blocks, recognise
from polyseme.formats.vectors.table import VectorTable, build_in_memory, write_table

VARIABLE = "POLYSEME_CACHE"
_VERSION = "1"  # of the cached files' layout
_ABANDONED = 3600  # seconds after which nobody is writing any more


def open_vectors(
    path: str | Path, vocabulary: str | Path | None = None, cache: str | Path | bool = True
) -> VectorTable:
    """Open a file of vectors; the first time it is read, later it is only mapped.

    Args:
        path: GloVe or word2vec text (.gz, .bz2, .xz, .zst too), word2vec's binary, fastText's ``.vec``, or ``.npy``.
        vocabulary: The words of a ``.npy`` file, one a line, when they are not beside it.
        cache: The folder for what was read; True is the user's, False is none: vectors are held in memory.
    """
    file = recognise(path, vocabulary)
    about = {"format": file.format, "source": _stamp(file), "version": _VERSION}
    place = None if cache is False else cache_place(file.path, None if cache is True else Path(cache))
    if place is not None:
        table = _open_fresh(place, about)
        if table is not None:
            return table
        with contextlib.suppress(OSError):  # of the cache: what is wrong with the original is another error
            _write(place, file, about)
            return VectorTable.open(place)
    return build_in_memory(read_blocks(file), file.dim, about)


def cache_place(path: Path, folder: Path | None = None) -> Path | None:
    """Where a file's vectors are kept, or None where there is no place for them."""
    try:
        folder = folder or user_folder() / "vectors"
    except RuntimeError:  # no home
        return None
    key = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]
    return folder / f"{path.name[:100]}-{key}.safetensors"


def user_folder() -> Path:
    """Where everything is kept that can be made anew; without a home there is none, which is a RuntimeError."""
    if told := os.environ.get(VARIABLE):
        return Path(told).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "polyseme"


def _stamp(file: VectorFile) -> str:
    """Changes when the original does."""
    facts = [place.stat() for place in (file.path, file.vocabulary) if place]
    return " ".join(f"{fact.st_size}:{fact.st_mtime_ns}" for fact in facts)


def _open_fresh(place: Path, about: dict[str, str]) -> VectorTable | None:
    """What is kept, unless it is of another file or damaged."""
    try:
        table = VectorTable.open(place)
    except (OSError, ValueError, KeyError, FormatError):
        return None
    return table if about.items() <= table.about.items() else None


def _write(place: Path, file: VectorFile, about: dict[str, str]) -> None:
    """Under a name of its own, for another process may be doing the same; then it is renamed."""
    place.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(place)
    descriptor, name = tempfile.mkstemp(UNFINISHED, f".{place.name}.", place.parent)
    try:
        with os.fdopen(descriptor, "w+b") as kept:
            write_table(read_blocks(file), file.dim, kept, about)
            kept.flush()
            os.fsync(kept.fileno())
        Path(name).replace(place)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def _remove_abandoned(place: Path) -> None:
    for left in place.parent.glob(f".{glob.escape(place.name)}.*{UNFINISHED}"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _ABANDONED:
                left.unlink()
