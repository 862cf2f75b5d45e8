"""Atomic writes of files and folders (temporary name, fsync, rename), output locks, and checks before writing."""

from __future__ import annotations

import ctypes
import io
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyseme.errors import ConfigError, FormatError, OutputError, PolysemeError
from polyseme.locks import hidden_name, holds, locked, resolve_output

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

UNFINISHED = ".unfinished"
_OLD, _EARLIER_OLD = ".polyseme-old", ".old"  # the second may also be a folder of the user
_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE; macOS calls the same number RENAME_SWAP
_TENSOR_ERROR = re.compile(r"^.*I/O error: | \(os error \d+\)$")  # what safetensors adds to the system's message
PATIENCE = 5.0  # seconds that a single write waits for another one of the same file


class DeferredErrorFile(io.FileIO):
    """File whose write errors are deferred: it keeps the first, and from then on only pretends to write.

    HDF5 cannot close a file that cannot be written (it loses data silently, and crashes the interpreter at exit), and
    zipfile and pyarrow raise again from their destructors. So they see no error, and `check` raises it afterwards.
    """

    error: OSError | None = None

    def check(self) -> None:
        """Raise the first write error, if there was one."""
        if self.error is not None:
            raise self.error

    def write(self, data: ReadableBuffer, /) -> int:
        """Write all of the data; a plain FileIO may write only a part."""
        rest = memoryview(data).cast("B")
        size = len(rest)
        while rest and self.error is None:
            rest = rest[self._attempt(super().write, rest) :]
        return size

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Seek to an offset, which may be beyond what the system allows."""
        return self._attempt(super().seek, offset, whence)

    def truncate(self, size: int | None = None, /) -> int:
        """Truncate or extend the file to a size."""
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
    """Atomic write: a file that becomes ``path`` when the block succeeds, and is deleted when it fails.

    The temporary name is always the same, so that the leftover of a killed run is overwritten by the next. The target
    of a link is replaced, not the link; a device or a pipe, such as ``/dev/null``, is written into directly.
    """
    if is_special(path):
        with _write_special(path) as file:
            yield file
        return
    with _sole_writer(path), _write_file(resolve_output(path) if path.is_symlink() else path) as file:
        yield file


@contextmanager
def _write_file(path: Path) -> Iterator[DeferredErrorFile]:
    temporary = hidden_name(path, UNFINISHED)
    try:
        temporary.unlink(missing_ok=True)
        with DeferredErrorFile(temporary, "w+", opener=_open_new) as file:
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


def _open_new(path: str, flags: int) -> int:
    """Open a file that does not exist yet: never through a link that somebody planted."""
    return os.open(path, flags | os.O_EXCL, 0o666)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Atomic folder: one that becomes ``path`` when the block succeeds, and is deleted when it fails."""
    check_folder_name(path)
    make_folder(path.parent)
    with _sole_writer(path), _write_folder(path) as folder:
        yield folder


@contextmanager
def _write_folder(path: Path) -> Iterator[Path]:
    temporary = hidden_name(path, UNFINISHED)
    try:
        _recover(path)
        temporary.mkdir()
        yield temporary
        for file in (inside for inside in temporary.rglob("*") if inside.is_file()):
            file.chmod(0o666 & ~_umask())  # some libraries create files that only their owner can read
            with file.open("rb") as stream:
                os.fsync(stream.fileno())
        _put_in_place(temporary, path)
        _sync_folder(path.parent)
    except PolysemeError:
        raise
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}") from error
    except Exception as error:
        if type(error).__name__ != "SafetensorError":  # imported by nobody who writes no tensors
            raise
        reason = _TENSOR_ERROR.sub("", str(error))
        raise OutputError(f"{path} cannot be written: {reason}") from error
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
    """Check that a file can be written, before the hours of work whose result it is to hold."""
    if path.is_dir():
        raise OutputError(f"{path} cannot be written: it is a folder")
    if not path.parent.is_dir():
        raise OutputError(f"{path} cannot be written: there is no folder {path.parent}")
    if not os.access(path if is_special(path) else path.parent, os.W_OK):
        raise OutputError(f"{path} cannot be written: Permission denied")


def is_special(path: Path) -> bool:
    """Whether a path is a special file (a device, a pipe), which must not be replaced."""
    return path.exists() and not path.is_file() and not path.is_dir()


@contextmanager
def _write_special(path: Path) -> Iterator[DeferredErrorFile]:
    try:
        with DeferredErrorFile(path, "w") as file:
            yield file
            file.check()
    except OSError as error:
        if isinstance(error, PolysemeError):
            raise
        raise OutputError(f"{path} cannot be written: {error.strerror or error}") from error


def recover_folder(path: Path) -> None:
    """Put right what a killed run left beside an output: restore the old version of a folder, remove the unfinished."""
    earlier = hidden_name(path, _EARLIER_OLD)
    if not path.exists() and _is_ours(earlier):
        earlier.rename(path)
    _recover(path)


def _is_ours(folder: Path) -> bool:
    manifest = folder / "manifest.json"
    with suppress(FormatError):
        return manifest.is_file() and "files" in read_json(manifest)
    return False


def _recover(path: Path) -> None:
    _remove(hidden_name(path, UNFINISHED))
    old = hidden_name(path, _OLD)
    if old.is_dir() and not path.exists():
        old.rename(path)
    elif old.is_dir():
        _remove(old)


@contextmanager
def locked_output(path: Path) -> Iterator[None]:
    """Exclusive lock on an output for a whole run; a second run is refused at once, and told who holds it.

    What a run leaves when it is killed while it replaces a folder is put right first. Devices and pipes have no lock.
    """
    if is_special(path):
        yield
        return
    place = resolve_output(path)
    if not place.parent.is_dir():
        raise OutputError(f"{path} cannot be written: there is no folder {path.parent}")
    with locked(path):
        recover_folder(place)
        yield


@contextmanager
def _sole_writer(path: Path) -> Iterator[None]:
    """The lock for a single write: that of the run, or one of its own, for which others may have to wait a little."""
    if holds(path):
        yield
        return
    with locked(path, wait=PATIENCE):
        yield


def make_folder(path: Path) -> None:
    """Create a folder and its parents."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{path} cannot be created: {error.strerror or error}") from error


def check_folder_name(path: Path) -> None:
    """Refuse a path that cannot become a folder: one without a name, such as ``.``, or a special file."""
    if not path.name or is_special(path):
        raise OutputError(f"{path} is not a name for a new folder; choose another")


def check_absent(path: Path, overwrite: bool) -> None:
    """Refuse to overwrite an existing file or folder, unless ``overwrite`` is set."""
    if path.exists() and not overwrite and not is_special(path):
        raise OutputError(
            f"{path} exists already; choose another name, or overwrite it (--overwrite; in Python overwrite=True)"
        )


def check_restart(resume: bool, overwrite: bool) -> None:
    """Refuse --resume together with --overwrite."""
    if resume and overwrite:
        raise ConfigError("--resume continues a run and --overwrite discards it; give only one of them")


def _put_in_place(temporary: Path, path: Path) -> None:
    """Put a folder in the place of another: swapped in one step, or where that cannot be, the old one goes first."""
    if path.exists() and _swap(temporary, path):
        _remove(temporary)
        return
    old = hidden_name(path, _OLD)
    if path.exists():
        path.rename(old)
    try:
        temporary.rename(path)
    except OSError:
        if old.exists():
            old.rename(path)
        raise
    _remove(old)


def _swap(one: Path, other: Path) -> bool:
    """Exchange two paths atomically (renameat2, renamex_np); False where the system or the file system cannot."""
    if os.name != "posix":
        return False
    library = ctypes.CDLL(None)
    names = os.fsencode(one), os.fsencode(other)
    if exchange := getattr(library, "renameat2", None):  # Linux
        return exchange(_HERE, names[0], _HERE, names[1], _EXCHANGE) == 0
    if exchange := getattr(library, "renamex_np", None):  # macOS
        return exchange(*names, _EXCHANGE) == 0
    return False


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    """Flush a folder (fsync), so that a rename in it lasts; Windows has no such call and needs none."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
