"""Files written whole or not at all, and JSON read with a sentence for every fault."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from polyseme.errors import FormatError, OutputError


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path} is not JSON: {error}") from error
    if not isinstance(values, dict):
        raise FormatError(f"{path} should hold a JSON object, not {type(values).__name__}")
    return values


@contextmanager
def new_folder(path: Path, overwrite: bool) -> Iterator[Path]:
    """A folder to fill, which takes its name only when everything in it is safely written."""
    if path.exists() and not overwrite:
        raise OutputError(f"{path} exists already; choose another name, or say --overwrite")
    with _disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
        try:
            yield work
            for file in work.iterdir():
                file.chmod(0o666 & ~_umask())  # some libraries make private files, and mkdtemp a private folder
                _sync(file)
            work.chmod(0o777 & ~_umask())
            _replace(work, path)
        finally:
            shutil.rmtree(work, ignore_errors=True)


@contextmanager
def new_file(path: Path, overwrite: bool) -> Iterator[Path]:
    """A file to fill under another name, which takes its own only when it is safely written."""
    if path.exists() and not overwrite:
        raise OutputError(f"{path} exists already; choose another name, or say --overwrite")
    with _disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        work = path.with_name(f".{path.name}-{os.getpid()}")
        try:
            yield work
            _sync(work)
            work.replace(path)
        finally:
            work.unlink(missing_ok=True)


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}") from error


def _replace(work: Path, path: Path) -> None:
    """Put a folder in the place of another; the old one is set aside first, since folders cannot be swapped."""
    old = path.with_name(f".{path.name}-old-{os.getpid()}")
    if path.exists():
        path.rename(old)
    try:
        work.rename(path)
    except OSError:
        if old.exists():
            old.rename(path)
        raise
    if old.is_dir():
        shutil.rmtree(old)
    else:
        old.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
