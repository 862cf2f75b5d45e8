"""Archives of models, zip and tar, unpacked with checks: plain files only, inside a folder, of bounded number and size.

`zipfile` and `tarfile` read a whole header at once, however long it says that it is, so they read through a file that
refuses long reads.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from polyseme.errors import FormatError
from polyseme.formats.budget import Budget

MAX_MEMBERS = 1_000  # files and folders of an archive
MAX_DEPTH = 16  # folders inside each other
LONGEST_HEADER = 1 << 20  # bytes
_COMPRESSED = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open, b"\xfd7": lzma.open}
# zipfile unpacks what it read of these at once, up to 40,000 times as much: so it reads little.
_PIECE = {zipfile.ZIP_STORED: 1 << 16, zipfile.ZIP_DEFLATED: 1 << 16}
_SMALL_PIECE = 1 << 10
_DAMAGE = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError)


class _Member(NamedTuple):
    name: str
    size: int
    stream: IO[bytes] | None  # None for a folder
    piece: int = 1 << 16  # bytes to read at a time


class _BoundedFile(io.RawIOBase):
    """File that refuses to read more than ``left`` bytes, which its owner sets anew after each header."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.left = LONGEST_HEADER

    def read(self, size: int = -1, /) -> bytes:
        """Read so many bytes; all, for a negative number."""
        data = self._file.read(size if 0 <= size <= self.left else min(self.left, LONGEST_HEADER) + 1)
        self.left -= len(data)
        if self.left < 0:
            raise FormatError(f"a header of over {LONGEST_HEADER >> 20} MiB; expected a zip or tar of a model")
        return data

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


def is_archive(path: Path) -> bool:
    """Whether a file is an archive: a zip or a tar, compressed or not."""
    if not path.is_file():
        return False
    try:
        return _is_zip(path) or (path.suffix != ".json" and _is_tar(path))
    except (*_DAMAGE, FormatError):
        return False


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """Unpack an archive's plain files into a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="polyseme-") as name:
        try:
            _unpack(path, Path(name))
        except (*_DAMAGE, FormatError, RuntimeError, LookupError, ValueError) as error:
            reason = " ".join(str(error).replace(name, "").split())
            known = isinstance(error, FormatError) and reason.startswith(str(path))
            raise FormatError(reason if known else f"{path} cannot be unpacked: {reason:.300}") from error
        yield Path(name)


def _unpack(path: Path, folder: Path) -> None:
    budget = Budget(path)
    for count, member in enumerate(_zip_members(path) if _is_zip(path) else _tar_members(path), start=1):
        if count > MAX_MEMBERS:
            raise FormatError(f"{path} holds more than {MAX_MEMBERS:,} files; unpack it by hand")
        budget.take(member.size, "what is in it, unpacked,")
        target = folder / _checked_name(member.name, path)
        (target.parent if member.stream else target).mkdir(parents=True, exist_ok=True)
        if member.stream:
            with target.open("wb") as out:
                while block := member.stream.read(member.piece):
                    out.write(block)


def _checked_name(name: str, path: Path) -> PurePosixPath:
    parts = PurePosixPath(name.replace("\\", "/"))
    if parts.is_absolute() or ".." in parts.parts:
        raise FormatError(f"{path}: {name!r:.100} points outside the archive; it is not opened")
    if len(parts.parts) > MAX_DEPTH:
        raise FormatError(f"{path}: {name!r:.100} lies over {MAX_DEPTH} folders deep; unpack it by hand")
    return parts


def open_zip(file: IO[bytes]) -> zipfile.ZipFile:
    """Open a zip whose list of members is of bounded length."""
    bounded = _BoundedFile(file)
    archive = zipfile.ZipFile(bounded)
    bounded.left = sys.maxsize
    return archive


def _is_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return zipfile.is_zipfile(_BoundedFile(file))


def _zip_members(path: Path) -> Iterator[_Member]:
    with path.open("rb") as file, open_zip(file) as archive:
        for entry in archive.infolist():
            if entry.is_dir():
                yield _Member(entry.filename, 0, None)
                continue
            with archive.open(entry) as stream:
                piece = _PIECE.get(entry.compress_type, _SMALL_PIECE)
                yield _Member(entry.filename, entry.file_size, stream, piece)


def _is_tar(path: Path) -> bool:
    with _decompressed(path) as stream:
        try:
            tarfile.TarInfo.frombuf(stream.read(tarfile.BLOCKSIZE), "utf-8", "surrogateescape")
        except tarfile.HeaderError:
            return False
        return True


def _tar_members(path: Path) -> Iterator[_Member]:
    with _decompressed(path) as stream:
        bounded = _BoundedFile(stream)
        with tarfile.open(fileobj=bounded, mode="r:") as archive:
            while entry := archive.next():
                content = archive.extractfile(entry) if entry.isfile() else None
                if content is None and not entry.isdir():
                    raise FormatError(
                        f"{path}: {entry.name!r:.100} is a link or a device, not a plain file; unpack it by hand"
                    )
                bounded.left = entry.size + LONGEST_HEADER
                yield _Member(entry.name, entry.size if content else 0, content)
                bounded.left = LONGEST_HEADER


def _decompressed(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        open_file = _COMPRESSED.get(file.read(2), open)
    return open_file(path, "rb")  # pyright: ignore[reportReturnType]
