"""Resumable output: finished sentences saved in part files, merged into the output file at the end.

The parts of ``vectors.h5`` live in the folder ``vectors.h5.parts/``: a ``fingerprint.json`` that says what was asked
for, and parts named after the number of their first sentence. A part appears whole or not at all and carries its own
checksum, so a killed run loses at most the sentences that were still in memory. A part is

    one line of JSON, padded with spaces to a multiple of 64 bytes: what is inside
    the vectors, little-endian, one sentence after another
    the words, one line of ASCII JSON a sentence (any Python string survives this, lone surrogates too)
    the CRC-32 of all the above, 4 bytes, little-endian
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from polyseme.embedding.records import Kind, Record
from polyseme.errors import FormatError, OutputError
from polyseme.files import UNFINISHED, atomic_write
from polyseme.locks import LOCK

Fingerprint = Mapping[str, str | int | bool]

PART_BYTES = 16 << 20
PART_SENTENCES = 10_000
_ALIGNMENT = 64
_CHECKSUM = 4
_LEFTOVERS = (UNFINISHED, LOCK)  # of a run that was killed while it wrote


def parts_folder(output: Path) -> Path:
    """Where the parts of an output are kept: ``vectors.h5`` has ``vectors.h5.parts`` beside it."""
    return output.with_name(f"{output.name}.parts")


class Parts:
    """The finished sentences of one output, on disk and in order. Begin with `create`, continue with `resume`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.done = 0  # sentences that are safe on disk; those still in memory do not count
        self._kind: Kind | None = None
        self._vectors = bytearray()
        self._lines: list[bytes] = []

    @classmethod
    def create(cls, folder: Path, fingerprint: Fingerprint) -> Parts:
        """Start a run in a folder that does not hold the work of another run."""
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise OutputError(f"cannot make the folder {folder}: {error.strerror}") from error
        if any(path.suffix not in _LEFTOVERS for path in folder.iterdir()):
            raise OutputError(
                f"{folder} holds an earlier run: --resume continues it, --overwrite forgets it, or remove the folder"
            )
        with atomic_write(folder / "fingerprint.json") as file:
            file.write(json.dumps(dict(fingerprint), indent=2).encode())
        return cls(folder)

    @classmethod
    def resume(cls, folder: Path, fingerprint: Fingerprint) -> Parts:
        """Continue with all that is sound, from the first part that is damaged or missing; begin where nothing is."""
        if not (folder / "fingerprint.json").exists():
            return cls.create(folder, fingerprint)
        _check_fingerprint(folder, fingerprint)
        parts, sound = cls(folder), {"fingerprint.json"}
        with suppress(FormatError):
            while (path := _part_path(folder, parts.done)).exists():
                part = _Part.load(path)
                parts.done, parts._kind = parts.done + part.sentences, part.kind
                sound.add(path.name)
        _discard(path for path in _own_files(folder) if path.name not in sound)
        return parts

    def append(self, records: Iterable[Record]) -> None:
        """Take the next sentences; they are on disk once a part is full, or after `flush`."""
        for record in records:
            kind = Kind.of(record)
            self._kind = self._kind or kind
            self._kind.check(kind)
            self._vectors += record.vectors.astype(_little_endian(kind), copy=False).tobytes()
            self._lines.append(json.dumps(record.words).encode() + b"\n")
            if len(self._vectors) >= PART_BYTES or len(self._lines) >= PART_SENTENCES:
                self.flush()

    def flush(self) -> None:
        """Put what is in memory on disk, as a part of its own."""
        if not self._lines or self._kind is None:
            return
        part = _Part(len(self._lines), self._kind, self._vectors, b"".join(self._lines))
        part.save(_part_path(self.folder, self.done))
        self.done += part.sentences
        self._vectors, self._lines = bytearray(), []

    def keep(self) -> None:
        """Flush the sentences of an interrupted run; one that finished none leaves no files behind."""
        try:
            self.flush()
        finally:
            if not self.done:
                self.remove()

    def read(self) -> Iterator[Record]:
        """All finished sentences, in order, one part in memory at a time. The vectors are views and read-only."""
        start = 0
        while start < self.done:
            part = _Part.load(_part_path(self.folder, start))
            yield from part.records()
            start += part.sentences

    def remove(self) -> None:
        """Delete the parts, and their folder unless somebody else put something there."""
        _discard(_own_files(self.folder))
        if not any(self.folder.iterdir()):
            self.folder.rmdir()


class _Part(NamedTuple):
    sentences: int
    kind: Kind
    vectors: bytes | bytearray | memoryview
    words: bytes | memoryview

    def save(self, path: Path) -> None:
        about = {"polyseme part": 1, "sentences": self.sentences, "bytes": len(self.vectors), **self.kind._asdict()}
        header = json.dumps(about).encode()
        header += b" " * (-(len(header) + 1) % _ALIGNMENT) + b"\n"
        checksum = 0
        with atomic_write(path) as file:
            for piece in (header, self.vectors, self.words):
                file.write(piece)
                checksum = zlib.crc32(piece, checksum)
            file.write(checksum.to_bytes(_CHECKSUM, "little"))

    @classmethod
    def load(cls, path: Path) -> _Part:
        try:
            data = path.read_bytes()
        except FileNotFoundError as error:
            raise FormatError(f"{path} is missing; do this part again with --resume") from error
        except OSError as error:  # it may be sound: nothing is done again, nor deleted, without being asked
            raise OutputError(f"cannot read {path}: {error.strerror}; mend this, or delete it and --resume") from error
        body = memoryview(data)[:-_CHECKSUM]
        if zlib.crc32(body) != int.from_bytes(data[-_CHECKSUM:], "little") or not body:
            raise FormatError(f"{path} is damaged (its checksum does not fit); do this part again with --resume")
        start = data.index(b"\n") + 1
        about = json.loads(data[:start])
        middle = start + about["bytes"]
        kind = Kind(about["dtype"], tuple(about["shape"]))
        return cls(about["sentences"], kind, body[start:middle], body[middle:])

    def records(self) -> Iterator[Record]:
        flat = np.frombuffer(self.vectors, _little_endian(self.kind))
        start = 0
        for line in bytes(self.words).splitlines():
            words = json.loads(line)
            shape = self.kind.shape_for(len(words))
            end = start + math.prod(shape)
            yield Record(words, flat[start:end].reshape(shape))
            start = end


def _little_endian(kind: Kind) -> np.dtype:
    return np.dtype(kind.dtype).newbyteorder("<")


def _part_path(folder: Path, first: int) -> Path:
    return folder / f"{first:012d}.part"


def _own_files(folder: Path) -> list[Path]:
    """What we have written into a folder, the last part first and the fingerprint at the end."""
    ours = [path for path in folder.iterdir() if path.suffix in (".part", *_LEFTOVERS)]
    return [*sorted(ours, reverse=True), *folder.glob("fingerprint.json")]


def _discard(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink()


def _check_fingerprint(folder: Path, new: Fingerprint) -> None:
    try:
        old = dict(json.loads((folder / "fingerprint.json").read_bytes()))
    except (OSError, ValueError, TypeError) as error:
        raise OutputError(f"{folder}/fingerprint.json cannot be read: remove the folder and start over") from error
    differing = [
        f"{key} was {old.get(key)!r} and is now {new.get(key)!r}"
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    ]
    if differing:
        raise OutputError(
            f"{folder} was begun with other settings: {'; '.join(differing)}. "
            "Resume with the old ones, or remove the folder and start over"
        )
