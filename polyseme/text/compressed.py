"""Decompression of .gz, .bz2, .xz and .zst files: every stream of a file, in constant memory, damage refused.

Such files may hold several streams one after the other (``cat a.xz b.xz``, pzstd, pbzip2). The readers of the standard
library for .bz2 and .xz, and zstandard's own, end silently at a stream whose beginning is damaged, or at the end of a
truncated file; here whatever follows a stream must be another stream, or the padding that the format allows.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast

from polyseme.errors import require

CHUNK = 1 << 16  # bytes of a file read at a time, and of text given out at a time
ZSTD_CHUNK = 1 << 10  # bytes decompressed at a time: a block of 4 bytes may hold 128 kB of text, so 32 MB at most
XZ_MEMORY = 1 << 30  # bytes that an .xz file may ask for; `xz -9` asks for 65 MiB


class CompressedFile(io.RawIOBase):
    """Reader over the concatenated streams of a compressed file.

    Args:
        file: The compressed file.
        make: Makes the decompressor of one stream, with the interface of `bz2.BZ2Decompressor`.
        padding: Zero bytes may follow a stream, in multiples of this; 0 allows none.
    """

    def __init__(self, file: IO[bytes], make: Callable[[], Any], padding: int = 0) -> None:
        self._file, self._make, self._padding = file, make, padding
        self._stream = make()

    def readable(self) -> bool:
        """Whether it can be read: always."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401
        """Decompress into a buffer; 0 at the end of the file."""
        plain = b""
        while not plain:
            data = b""
            if self._stream.eof:
                data = self._next_stream()
                if not data:
                    return 0
            elif self._stream.needs_input:
                data = self._file.read(CHUNK)
                if not data:
                    raise EOFError
            plain = self._stream.decompress(data, len(buffer))
        buffer[: len(plain)] = plain
        return len(plain)

    def _next_stream(self) -> bytes:
        """Begin the next stream: its first bytes, without padding, or nothing at the end of the file."""
        data = self._stream.unused_data or self._file.read(CHUNK)
        zeros = 0
        while self._padding and data.startswith(b"\0"):
            rest = data.lstrip(b"\0")
            zeros += len(data) - len(rest)
            data = rest or self._file.read(CHUNK)
        if self._padding and zeros % self._padding:
            raise OSError("zero bytes follow a stream, but not in multiples of four; the file is damaged")
        if data:
            self._stream = self._make()
        return data

    def close(self) -> None:
        """Close the compressed file underneath too."""
        self._file.close()
        super().close()


class ZstdStream:
    """zstd decompressor of one frame, with the interface of `bz2.BZ2Decompressor`; bounded memory."""

    def __init__(self, zstandard: Any) -> None:  # noqa: ANN401
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._compressed = b""
        self._plain = memoryview(b"")  # sliced without copying, however much a chunk expands to

    @property
    def eof(self) -> bool:
        """Whether the frame has ended, and all of it was given out."""
        return self._frame.eof and not self._plain

    @property
    def needs_input(self) -> bool:
        """Whether `decompress` needs more bytes of the file."""
        return not (self._plain or self._compressed)

    @property
    def unused_data(self) -> bytes:
        """Bytes of the file after the end of the frame."""
        return self._frame.unused_data + self._compressed

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Decompress some bytes, and give out at most ``max_length``."""
        self._compressed += data
        while not (self._plain or self._frame.eof) and self._compressed:
            some, self._compressed = self._compressed[:ZSTD_CHUNK], self._compressed[ZSTD_CHUNK:]
            self._plain = memoryview(self._frame.decompress(some))
        plain, self._plain = self._plain[:max_length], self._plain[max_length:]
        return bytes(plain)


def _open_gz(path: Path) -> io.BufferedReader:
    if path.stat().st_size == 0:
        raise EOFError  # the standard library takes it for an empty text
    return cast("io.BufferedReader", gzip.open(path, "rb"))


def _open_bz2(path: Path) -> io.BufferedReader:
    return io.BufferedReader(CompressedFile(path.open("rb"), bz2.BZ2Decompressor))


def _open_xz(path: Path) -> io.BufferedReader:
    def make() -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)  # .lzma has no checksum

    return io.BufferedReader(CompressedFile(path.open("rb"), make, padding=4))


def _open_zst(path: Path) -> io.BufferedReader:
    zstandard = require("zstandard", "zstd")
    return io.BufferedReader(CompressedFile(path.open("rb"), lambda: ZstdStream(zstandard)))


COMPRESSED = {".gz": _open_gz, ".bz2": _open_bz2, ".xz": _open_xz, ".zst": _open_zst}  # how to open each suffix
