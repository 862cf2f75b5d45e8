"""On-disk cache of arrays: one file per entry, written atomically, memory-mapped, evicted least recently used.

Several processes may use one folder at once: each writes under a name of its own and then renames, and a file that
another process evicts stays readable for those who have mapped it.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

from polyseme.files import UNFINISHED

VARIABLE = "POLYSEME_CACHE"
BUDGET = 16 << 30  # bytes
_ABANDONED = 3600  # seconds after which an unfinished file is taken for that of a killed process

Entry = TypeVar("Entry")


def user_cache_folder(name: str) -> Path | None:
    """A folder in the user's cache: in ``$POLYSEME_CACHE``, or in ``polyseme`` in ``$XDG_CACHE_HOME`` or ``~/.cache``.

    None where there is no home directory.
    """
    try:
        if folder := os.environ.get(VARIABLE):
            return Path(folder).expanduser() / name
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "polyseme" / name
    except RuntimeError:
        return None


class ArrayCache:
    """On-disk cache of arrays in one folder, with least-recently-used eviction under a byte budget.

    Args:
        folder: Where the files lie; made when the first is written.
        suffix: How their names end; other files in the folder are left alone.
        budget: Bytes that the folder may take. An entry larger than that stays, alone.
    """

    def __init__(self, folder: Path, suffix: str, budget: int = BUDGET) -> None:
        self.folder, self.suffix, self.budget = folder, suffix, budget
        self._used: set[Path] = set()  # what this process works with is not evicted by it

    def path(self, key: str) -> Path:
        """The file of an entry, whether it is there or not."""
        return self.folder / f"{key}{self.suffix}"

    def fetch(
        self, key: str, read: Callable[[Path], Entry | None], write: Callable[[BinaryIO], object], size: int = 0
    ) -> Entry | None:
        """The entry of a key: read from its file, which is written first where it is missing, stale or damaged.

        Args:
            key: A fingerprint of everything that the arrays depend on.
            read: Maps a file; None, or an error, says that it is stale or damaged.
            write: Writes the arrays into an open file.
            size: Bytes that will be written, where they are known: room is made before.

        Raises:
            OSError: Nothing can be written there.
        """
        path = self.path(key)
        entry = _read(path, read)
        if entry is None:
            self._write(path, write, size)
            entry = _read(path, read)
        with suppress(OSError):
            os.utime(path)  # the time of change is the time of use
        self._used.add(path)
        return entry

    def _write(self, path: Path, write: Callable[[BinaryIO], object], size: int) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._remove_abandoned()
        self._evict(size, keep=path)
        descriptor, name = tempfile.mkstemp(UNFINISHED, f".{path.name}.", self.folder)
        try:
            with os.fdopen(descriptor, "w+b") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
        self._evict(0, keep=path)

    def _evict(self, needed: int, keep: Path) -> None:
        """Remove the least recently used entries until the others, and what is needed, fit the budget."""
        files = []
        for path in self.folder.glob(f"[!.]*{self.suffix}"):
            with suppress(OSError):  # another process has just evicted it
                files.append((path.stat(), path))
        total = needed + sum(facts.st_size for facts, _ in files)
        for facts, path in sorted(files, key=lambda file: file[0].st_mtime):
            if total <= self.budget:
                return
            if path != keep and path not in self._used:
                with suppress(OSError):
                    path.unlink()
                    total -= facts.st_size

    def _remove_abandoned(self) -> None:
        for left in self.folder.glob(f".*{UNFINISHED}"):
            with suppress(OSError):
                if time.time() - left.stat().st_mtime > _ABANDONED:
                    left.unlink()


def _read(path: Path, read: Callable[[Path], Entry | None]) -> Entry | None:
    try:
        return read(path)
    except (OSError, ValueError, TypeError, LookupError, AttributeError, EOFError):  # missing, or damaged in any way
        return None
