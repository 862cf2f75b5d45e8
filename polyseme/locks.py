"""File locks: one writer for each output, released by the death of its process, and the holder is named.

The lock of ``vectors.h5`` is an operating-system lock (flock) on ``.vectors.h5.lock`` beside it. That file says who
holds it, and is deleted while it is still locked. Whoever locked a file that was deleted meanwhile notices that the
name is gone or belongs to another file, and tries again: so two processes never hold the same name.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import socket
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from polyseme.errors import OutputError

LOCK = ".lock"
_POLL = 0.02  # seconds between two attempts
_READING = 0.5  # seconds in which a new holder has written its name
_LONGEST_COMMAND = 200  # characters
_LONGEST_NAME = 255  # bytes, on nearly every file system
_HELD = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK)
_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)  # never through a link that somebody planted
_held: dict[Path, str] = {}  # the lock files of this process, and their outputs


@dataclass(frozen=True)
class LockHolder:
    """The process that holds a lock, as it described itself in the lock file."""

    pid: int
    host: str
    command: str
    since: str

    @classmethod
    def current(cls) -> LockHolder:
        """The running process as holder of a lock."""
        command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]) if sys.argv and sys.argv[0] else "python"
        now = datetime.now().replace(microsecond=0).isoformat(" ")
        return cls(os.getpid(), socket.gethostname(), command[:_LONGEST_COMMAND], now)

    @classmethod
    def read(cls, lock: Path) -> LockHolder | None:
        """The holder that a lock file names; None where it names none, or not yet."""
        with suppress(OSError, ValueError, TypeError):
            return cls(**json.loads(lock.read_bytes()))
        return None

    @property
    def ended(self) -> bool:
        """Whether that process has certainly ended; of another machine nobody knows."""
        if self.host != socket.gethostname() or os.name != "posix":
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False  # it belongs to another user
        return False

    def __str__(self) -> str:
        where = "" if self.host == socket.gethostname() else f" on {self.host}"
        return f"process {self.pid}{where} ({self.command}) since {self.since}"


@contextmanager
def locked(output: Path, wait: float = 0) -> Iterator[None]:
    """Exclusive lock on an output, until the block or this process ends; refused where somebody else holds it.

    Args:
        output: The file or folder that will be written; its parent folder exists.
        wait: Seconds to wait for the other one to finish.
    """
    lock = lock_file(output)
    descriptor = _acquire(output, lock, time.monotonic() + wait)
    try:
        yield
    finally:
        _held.pop(lock, None)
        with suppress(OSError):  # Windows deletes no open file
            lock.unlink(missing_ok=True)
        os.close(descriptor)


def holds(output: Path) -> bool:
    """Whether this process holds the lock of an output, or one that covers it.

    The lock of ``model`` covers what is inside it, and what a run keeps beside it, such as ``model.run/last``.
    """
    place = str(resolve_output(output))
    return any(place == held or place.startswith((f"{held}{os.sep}", f"{held}.")) for held in _held.values())


def lock_file(output: Path) -> Path:
    """The lock file of an output: ``.vectors.h5.lock`` beside ``vectors.h5``; of a link, beside its target."""
    return hidden_name(resolve_output(output), LOCK)


def hidden_name(output: Path, suffix: str) -> Path:
    """A hidden name beside an output: ``.vectors.h5.lock``; a hash stands for a name that would become too long."""
    name = f".{output.name}{suffix}"
    if len(os.fsencode(name)) > _LONGEST_NAME:
        name = f".{hashlib.sha256(os.fsencode(output.name)).hexdigest()}{suffix}"
    return output.parent / name  # the root of a disk has no name


def resolve_output(output: Path) -> Path:
    """The absolute path of an output, behind all links; one sentence where it has none."""
    try:
        place = output.resolve()
    except RuntimeError:  # before Python 3.13; later ones leave the link as it is
        place = None
    except (OSError, ValueError) as error:  # a NUL in the name
        raise OutputError(f"{str(output)!r} cannot be written: {getattr(error, 'strerror', None) or error}") from error
    if place is None or place.is_symlink():
        raise OutputError(f"{output} cannot be written: it is a link that leads back to itself")
    return place


def _acquire(output: Path, lock: Path, deadline: float) -> int:
    """Lock the file and write our name into it; gives its descriptor."""
    while lock in _held or (descriptor := _attempt(output, lock)) is None:
        if time.monotonic() >= deadline:
            raise OutputError(
                f"{output} is being written by {_describe_holder(lock)}; wait until that has ended, or choose another "
                "name"
            )
        time.sleep(_POLL)
    _held[lock] = str(resolve_output(output))
    try:
        os.ftruncate(descriptor, 0)
        os.write(descriptor, json.dumps(asdict(LockHolder.current())).encode())
    except OSError as error:
        _held.pop(lock, None)
        lock.unlink(missing_ok=True)
        os.close(descriptor)
        raise OutputError(f"{output} cannot be written: {error.strerror}") from error
    return descriptor


def _attempt(output: Path, lock: Path) -> int | None:
    """One attempt: the descriptor of the locked file, or None where somebody else has it."""
    while True:
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | _FLAGS, 0o666)
        except PermissionError as error:
            if not lock.exists() or not os.access(lock.parent, os.W_OK):
                raise OutputError(f"{output} cannot be written: {error.strerror}") from error
            if not _remove_left(output, lock):
                return None
            continue
        except OSError as error:
            raise OutputError(f"{output} cannot be written: {error.strerror}") from error
        free = same = False
        try:
            free = _lock(descriptor, lock)
            same = free and _same_file(descriptor, lock)
        finally:
            if not same:
                os.close(descriptor)
        if not free:
            return None
        if same:
            return descriptor


def _remove_left(output: Path, lock: Path) -> bool:
    """Remove a lock file that another user left and we may only read; False where its holder still lives."""
    try:
        descriptor = os.open(lock, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _FLAGS)
        try:
            try:
                _system_lock(descriptor)  # nobody is believed dead where it fails, as it does here on NFS
            except OSError as error:
                if error.errno in _HELD:
                    return False
                raise
            if _same_file(descriptor, lock):
                lock.unlink()
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return True  # removed meanwhile
    except OSError as error:
        raise OutputError(
            f"{output} cannot be written: another user left its lock file {lock} ({error.strerror}); "
            "have that removed, or choose another name"
        ) from error
    return True


def _lock(descriptor: int, lock: Path) -> bool:
    """Lock an open file, if nobody else has; where the file system has no locks, believe what the file says."""
    try:
        _system_lock(descriptor)
    except OSError as error:
        if error.errno in _HELD:
            return False
        holder = LockHolder.read(lock)
        if holder and holder.pid != os.getpid() and holder.host == socket.gethostname() and not holder.ended:
            return False
        warnings.warn(
            f"{lock.parent} is on a file system without locks ({error.strerror}); "
            "make sure that no other machine writes there at the same time",
            stacklevel=2,
        )
    return True


if sys.platform == "win32":

    def _system_lock(descriptor: int) -> None:
        import msvcrt

        os.lseek(descriptor, 1 << 30, os.SEEK_SET)  # far behind the holder's name, which others must be able to read
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)

else:

    def _system_lock(descriptor: int) -> None:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _same_file(descriptor: int, lock: Path) -> bool:
    """Whether the locked file still has its name: its last holder may have deleted it meanwhile."""
    try:
        return os.path.samestat(os.fstat(descriptor), lock.stat())
    except FileNotFoundError:
        return False


def _describe_holder(lock: Path) -> str:
    """Who holds a lock; a name that is missing, half written or of a killed process is about to be replaced."""
    if lock in _held:
        return "this process already"
    deadline = time.monotonic() + _READING
    while (holder := LockHolder.read(lock)) is None or holder.ended:
        if time.monotonic() >= deadline:
            return "another process"
        time.sleep(_POLL)
    return str(holder)
