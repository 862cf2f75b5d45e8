"""Files that appear whole or not at all: written under another name, synced to the disk, then renamed."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from polyseme.errors import OutputError, PolysemeError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

UNFINISHED = ".unfinished"


class Disk(io.FileIO):
    """A file that remembers its first failure and from then on only pretends to write.

    HDF5 cannot close a file that cannot be written (it loses data silently, and crashes the interpreter at exit), and
    zipfile and pyarrow complain again from their destructors. So none of them is told: they finish in peace, and
    `check` raises what went wrong.
    """

    error: OSError | None = None

    def check(self) -> None:
        """Raise the failure, if there was one."""
        if self.error is not None:
            raise self.error

    def write(self, data: ReadableBuffer, /) -> int:
        """Write all of the data; a plain FileIO may stop in the middle."""
        rest = memoryview(data).cast("B")
        size = len(rest)
        while rest and self.error is None:
            rest = rest[self._attempt(super().write, rest) :]
        return size

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Move to a place in the file, which may be beyond what the system allows."""
        return self._attempt(super().seek, offset, whence)

    def truncate(self, size: int | None = None, /) -> int:
        """Cut or extend the file."""
        return self._attempt(super().truncate, size)

    def _attempt(self, action: Callable[..., int], *arguments: object) -> int:
        if self.error is None:
            try:
                return action(*arguments)
            except OSError as error:
                self.error = error
        return 0


@contextmanager
def replacing(path: Path) -> Iterator[Disk]:
    """Give a file that becomes ``path`` when the block ends well, and vanishes when it does not.

    Its temporary name is always the same, so that what a killed run left behind is overwritten by the next.
    """
    temporary = path.with_name(f".{path.name}{UNFINISHED}")
    try:
        with Disk(temporary, "w+") as file:
            yield file
            file.check()
            os.fsync(file.fileno())
        os.replace(temporary, path)  # noqa: PTH105 (tests let it fail under this name)
        _sync_folder(path.parent)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and not isinstance(error, PolysemeError):
            raise OutputError(
                f"cannot write {path}: {error.strerror or error}; finished parts are kept, --resume continues from them"
            ) from error
        raise


def _sync_folder(folder: Path) -> None:
    """Make a rename in a folder lasting; Windows has no such call and needs none."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
