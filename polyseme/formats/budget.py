"""Memory budget of opening a file: how much it may make us allocate, by its size on disk.

A sound model takes about as much memory as its file: four times as much from int8, less from float64, a few times as
much from a compressed archive. A small file that declares or unpacks to gigabytes is damaged or hostile. So a file may
take `RATIO` times its size on disk, or `LEAST` if that is more; the environment variable `VARIABLE`, in GiB, replaces
this limit.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

from polyseme.errors import ConfigError, FormatError
from polyseme.files import read_json
from polyseme.text.corpus import explain_read_errors, open_bytes

VARIABLE = "POLYSEME_MAX_GIB"
LEAST = 512 << 20  # bytes
RATIO = 8
LONGEST_JSON = 32 << 20  # bytes; parsed, they may take 25 times as much


class Budget:
    """Memory budget of one file or folder: bytes that it may make us allocate, checked before they are."""

    def __init__(self, file: Path, least: int = LEAST) -> None:
        self.file = file
        self.stored = _bytes_on_disk(file)
        self.limit = _chosen_limit() or max(least, RATIO * self.stored)
        self.taken = 0

    def take(self, size: int, what: str) -> None:
        """Count an allocation against the budget before it is made, or refuse the file."""
        self.taken += size
        if self.taken > self.limit:
            raise FormatError(
                f"{self.file}: {what:.200} would take {show_bytes(self.taken)} of memory or disk, but a file of "
                f"{show_bytes(self.stored)} may take {show_bytes(self.limit)}; if you trust it, set {VARIABLE} to "
                "a higher limit in GiB"
            )

    def take_array(self, shape: tuple[int, ...], item_size: int, what: str) -> None:
        """Count an array of a declared shape, which is fp32 once it is read."""
        self.take(math.prod(shape) * max(item_size, 4), f"{what} of shape {shape}")


def check_plain_file(path: Path) -> None:
    """Refuse a folder, a device, a pipe (which would wait for ever), and a sparse file of absurd size."""
    if not path.is_file():
        fault = "it is not a plain file" if path.exists() else "there is no such file"
        raise FormatError(f"{path} cannot be read: {fault}; copy the model again")
    Budget(path).take(path.stat().st_size, "its content")


def check_unpacked_size(path: Path) -> None:
    """Check how much a text file takes in memory, decompressed where it is compressed."""
    check_plain_file(path)
    budget = Budget(path)
    with explain_read_errors(path), open_bytes(path) as stream:
        while block := stream.read(1 << 16):
            budget.take(len(block), "its content, unpacked,")


def read_model_json(path: Path) -> dict[str, Any]:
    """Read a JSON object that belongs to a model: a plain file of bounded size."""
    if path.exists():
        check_plain_file(path)
        if path.stat().st_size > LONGEST_JSON:
            raise FormatError(f"{path} has over {show_bytes(LONGEST_JSON)}; expected the settings of a model")
    return read_json(path)


def show_bytes(size: int) -> str:
    """Size in bytes for people: ``"1.5 GiB"``, ``"90 kB"``."""
    if size < 1 << 20:
        return f"{size:,} bytes"
    return f"{size / (1 << 20):,.1f} MiB" if size < 1 << 30 else f"{size / (1 << 30):,.1f} GiB"


def _bytes_on_disk(file: Path) -> int:
    """Size of a file, or of all files in a folder, without the holes of sparse ones."""
    if file.is_dir():
        return sum(_bytes_on_disk(inside) for inside in file.iterdir() if inside.is_file())
    facts = file.stat()
    blocks = getattr(facts, "st_blocks", None)  # not on Windows
    return facts.st_size if blocks is None or facts.st_size <= LEAST else min(facts.st_size, 512 * blocks)


def _chosen_limit() -> int | None:
    chosen = os.environ.get(VARIABLE)
    if not chosen:
        return None
    try:
        limit = float(chosen)
    except ValueError:
        limit = math.nan
    if not 0 < limit < 1 << 30:
        raise ConfigError(f"{VARIABLE} must be a number of GiB above 0, not {chosen!r:.60}")
    return int(limit * (1 << 30))
