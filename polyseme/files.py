"""Files and folders that appear whole or not at all: written under another name, synced to the disk, then renamed."""

from __future__ import annotations

import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyseme.errors import FormatError, OutputError, PolysemeError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

UNFINISHED = ".unfinished"


class DeferredErrorFile(io.FileIO):
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
def atomic_write(path: Path) -> Iterator[DeferredErrorFile]:
    """Give a file that becomes ``path`` when the block ends well, and vanishes when it does not.

    Its temporary name is always the same, so that what a killed run left behind is overwritten by the next. What a link
    points to is replaced, not the link; a device or a pipe, ``/dev/null`` for one, is written into as it is.
    """
    if is_special(path):
        with _writing_into(path) as file:
            yield file
        return
    path = path.resolve() if path.is_symlink() else path
    temporary = path.with_name(f".{path.name}{UNFINISHED}")
    try:
        with DeferredErrorFile(temporary, "w+") as file:
            yield file
            file.check()
            os.fsync(file.fileno())
        os.replace(temporary, path)  # noqa: PTH105 (tests let it fail under this name)
        _sync_folder(path.parent)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and not isinstance(error, PolysemeError):
            raise OutputError(f"{path} cannot be written: {error.strerror or error}") from error
        raise


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Give a folder that becomes ``path`` when the block ends well, and vanishes when it does not."""
    if not path.name or is_special(path):
        raise OutputError(f"{path} is no name for a new folder")
    temporary = path.with_name(f".{path.name}{UNFINISHED}")
    try:
        recover_folder(path)
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        yield temporary
        for file in (inside for inside in temporary.rglob("*") if inside.is_file()):
            file.chmod(0o666 & ~_umask())  # some libraries make files that only their owner can read
            with file.open("rb") as stream:
                os.fsync(stream.fileno())
        _put_in_place(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        if isinstance(error, PolysemeError):
            raise
        raise OutputError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object from a file, with one sentence for every fault."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path} is not JSON: {error}") from error
    if not isinstance(values, dict):
        raise FormatError(f"{path} should hold a JSON object, not {type(values).__name__}")
    return values


def check_writable(path: Path) -> None:
    """Refuse a file that could not be written in the end. To be called before the hours of work."""
    if path.is_dir():
        raise OutputError(f"{path} cannot be written: it is a folder")
    if not path.parent.is_dir():
        raise OutputError(f"{path} cannot be written: there is no folder {path.parent}")
    if not os.access(path if is_special(path) else path.parent, os.W_OK):
        raise OutputError(f"{path} cannot be written: Permission denied")


def try_folder(folder: Path) -> None:
    """Refuse a folder in which no folder can be made, by making one. To be called before the hours of work."""
    try:
        Path(tempfile.mkdtemp(dir=folder)).rmdir()
    except OSError as error:
        raise OutputError(f"nothing can be written in {folder}: {error.strerror}") from error


def is_special(path: Path) -> bool:
    """Whether something is there that is neither a file nor a folder: a device, a pipe; it must not be replaced."""
    return path.exists() and not path.is_file() and not path.is_dir()


@contextmanager
def _writing_into(path: Path) -> Iterator[DeferredErrorFile]:
    try:
        with DeferredErrorFile(path, "w") as file:
            yield file
            file.check()
    except OSError as error:
        if isinstance(error, PolysemeError):
            raise
        raise OutputError(f"{path} cannot be written: {error.strerror or error}") from error


def recover_folder(path: Path) -> None:
    """Put a folder back, or away, that stepped aside for another in a run that was killed just then."""
    old = _aside(path)
    if old.exists() and not path.exists():
        old.rename(path)
    elif old.exists():
        _remove(old)


@contextmanager
def locked_folder(folder: Path, owner: str) -> Iterator[None]:
    """Exclusive lock on a folder, until the block or this process ends; refused at once where another holds it."""
    from filelock import FileLock, Timeout  # not at the top: few commands lock anything

    lock = FileLock(folder / ".lock", thread_local=False)  # a generator may end in another thread
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise OutputError(f"{folder} is in use by {owner}; wait until it has ended, or choose another name") from error
    except (OSError, NotImplementedError):
        pass  # a disk without locks
    try:
        yield
    finally:
        with suppress(OSError):  # while it is held, so that nobody else's is removed; Windows removes it by itself
            (folder / ".lock").unlink(missing_ok=True)
        lock.release()


def make_folder(path: Path) -> None:
    """A folder and those above it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{path} cannot be made: {error.strerror or error}") from error


def check_absent(path: Path, overwrite: bool) -> None:
    """Refuse to write over what is there, unless told to."""
    if path.exists() and not overwrite and not is_special(path):
        raise OutputError(f"{path} exists already; choose another name, or say --overwrite")


def _put_in_place(temporary: Path, path: Path) -> None:
    """Rename a folder onto another; the old one steps aside first, since folders cannot be swapped."""
    old = _aside(path)
    if path.exists():
        path.rename(old)
    try:
        temporary.rename(path)
    except OSError:
        if old.exists():
            old.rename(path)
        raise
    _remove(old)


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.old")


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    """Make a rename in a folder lasting; Windows has no such call and needs none."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
