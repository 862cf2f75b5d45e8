"""The files of a text: which they are, whether they have changed, how much there is."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyseme.errors import InputError
from polyseme.text.corpus import Paths, Source, expand

COMPRESSED = {".gz": 3.0, ".bz2": 4.0, ".xz": 3.5, ".zst": 3.0}  # bytes of text for one of the file, about


@dataclass(frozen=True)
class Inputs:
    """Files to train on, and files to measure with where these are given apart."""

    training: tuple[Source, ...]
    held_out: tuple[Source, ...] = ()

    @classmethod
    def find(cls, paths: Paths, held_out: Paths, folder: Path) -> Inputs:
        """The files meant: none is in both parts, and none lies in the folder of our own output."""
        apart = _outside(folder, expand(held_out), ())
        found = expand(paths)
        training = _outside(folder, found, apart)
        if not training:
            names = ", ".join(map(str, found[:3])) or "nothing"
            raise InputError(f"{names}: there is no text to train on but what is held out, or lies in {folder}")
        return cls(tuple(training), tuple(apart))

    @property
    def read_once(self) -> bool:
        """Whether standard input is among them, which nobody can compare with what it was."""
        return "-" in (*self.training, *self.held_out)

    @property
    def size(self) -> int | None:
        """Bytes of text, roughly where it is compressed, or None where nobody knows."""
        return (
            None if self.read_once else int(sum(_size(path) * COMPRESSED.get(path.suffix, 1) for path in self._paths()))
        )

    @property
    def bytes_total(self) -> int | None:
        """Bytes of text, where that is known for certain."""
        return None if any(path.suffix in COMPRESSED for path in self._paths()) else self.size

    def identities(self) -> list[dict[str, Any]]:
        """By what the same files are recognised: path, size, and the time of the last change."""
        return [
            {"held_out": held_out, **_identity(source)}
            for held_out, sources in ((False, self.training), (True, self.held_out))
            for source in sources
        ]

    def _paths(self) -> list[Path]:
        return [source for source in (*self.training, *self.held_out) if isinstance(source, Path)]


def _outside(folder: Path, sources: Collection[Source], others: Collection[Source]) -> list[Source]:
    left_out = {_absolute(source) for source in others}
    return [
        source
        for source in sources
        if _absolute(source) not in left_out and not (isinstance(source, Path) and folder in source.absolute().parents)
    ]


def _absolute(source: Source) -> str:
    return "-" if source == "-" else str(source.absolute())


def _identity(source: Source) -> dict[str, Any]:
    if source == "-":
        return {"path": "-"}
    return {"path": _absolute(source), "size": _size(source), "mtime_ns": source.stat().st_mtime_ns}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}.") from error
