"""Models inside a zip or a tar: unpacked beside nothing, looked at before they are trusted."""

from __future__ import annotations

import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from polyseme.errors import FormatError

_DAMAGE = (zipfile.BadZipFile, tarfile.TarError, zlib.error)
MAX_MEMBERS = 1_000
MAX_BYTES = 16 << 30


class _Member(NamedTuple):
    name: str
    size: int
    open: IO[bytes]


def is_archive(path: Path) -> bool:
    """Whether the file is a zip or a tar, compressed or not."""
    return path.is_file() and (zipfile.is_zipfile(path) or (path.suffix != ".json" and tarfile.is_tarfile(path)))


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """A folder with the archive's plain files, gone again afterwards."""
    with tempfile.TemporaryDirectory(prefix="polyseme-") as name:
        folder = Path(name)
        total = 0
        try:
            for count, member in enumerate(_members(path), start=1):
                total += member.size
                if count > MAX_MEMBERS or total > MAX_BYTES:
                    raise FormatError(
                        f"{path} holds more than {MAX_MEMBERS} files or {MAX_BYTES >> 30} GiB; unpack it by hand"
                    )
                _extract(member, folder, path)
        except FormatError:
            raise
        except (*_DAMAGE, EOFError, OSError, RuntimeError, LookupError, ValueError) as error:
            raise FormatError(f"{path} cannot be unpacked: {error}") from error
        yield folder


def _members(path: Path) -> Iterator[_Member]:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if not entry.is_dir():
                    with archive.open(entry) as stream:
                        yield _Member(entry.filename, entry.file_size, stream)
        return
    with tarfile.open(path) as archive:
        for entry in archive:
            if entry.isdir():
                continue
            stream = archive.extractfile(entry) if entry.isfile() else None
            if stream is None:
                raise FormatError(f"{path}: {entry.name!r} is a link or a device, not a plain file; unpack it by hand")
            yield _Member(entry.name, entry.size, stream)


def _extract(member: _Member, folder: Path, path: Path) -> None:
    parts = PurePosixPath(member.name.replace("\\", "/"))
    if parts.is_absolute() or ".." in parts.parts:
        raise FormatError(f"{path}: {member.name!r} points outside the archive; it is not opened")
    target = folder / parts
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as out:
        shutil.copyfileobj(member.open, out, 1 << 20)
