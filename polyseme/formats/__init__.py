"""Model file formats: loading and saving. Foreign tensor names live here and nowhere else."""

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

from polyseme.errors import ConfigError, FormatError, PolysemeError
from polyseme.formats import bilm_hdf5, many_langs, native
from polyseme.formats.stored import StoredModel, StoredSoftmax

__all__ = ["StoredModel", "StoredSoftmax", "open_extras", "open_model", "open_softmax", "resolve_model_path"]

SHIPPED_MODEL = "english"
SHIPPED_FOLDER = Path(__file__).parents[1] / "models"
_DAMAGE = (zipfile.BadZipFile, tarfile.TarError, zlib.error)
MAX_MEMBERS = 1_000  # files of an archive
MAX_BYTES = 16 << 30  # of an archive, unpacked

_FORMATS = (native, many_langs, bilm_hdf5)
# Formats that `open_model` does not read, but that may have been meant.
_OTHERS = (
    "transformers: a folder whose config.json has a model_type; "
    "static vectors: lines of a word and its numbers, word2vec's binary, or NumPy's .npy"
)


def resolve_model_path(model: str | Path | None) -> str | Path:
    """Resolve a model's path: None, or its name, is the model that ships with the package; else what is given.

    A file or folder of that name in the working folder takes precedence.
    """
    if model is not None and (str(model) != SHIPPED_MODEL or Path(model).exists()):
        return model
    place = SHIPPED_FOLDER / SHIPPED_MODEL
    if not place.is_dir():
        raise ConfigError(
            f"no model ships with this install: there is no {place}; give the path of one: "
            "polyseme.load('path/to/model'), or --model"
        )
    return place


def open_model(path: str | Path, vocabulary: str | Path | None = None) -> StoredModel:
    """Open a model from a file, a folder or an archive of any known format.

    Args:
        path: Any file of the model, its folder, or a zip or tar of it.
        vocabulary: The words of a bilm-tf model that reads word ids, when they are not beside it.
    """
    with _located(Path(path)) as place:
        return _load(place, vocabulary, shown=Path(path))


def open_softmax(path: str | Path) -> StoredSoftmax:
    """Open the softmax head of a model's language model; only our own format has one."""
    with _located(Path(path)) as place:
        module = _known_format(place, Path(path))
        if module is not native:
            raise FormatError(native.without_softmax(Path(path)))
        with _format_errors(Path(path)):
            return native.load_softmax(place)


def open_extras(path: str | Path) -> dict[str, bytes]:
    """Read the extra files of a model of our own format, by name; other formats have none."""
    with _located(Path(path)) as place, _format_errors(Path(path)):
        return native.load_extras(place) if native.recognises(place) else {}


@contextmanager
def _located(path: Path) -> Iterator[Path]:
    """Locate a model: the path itself, or a folder inside of the unpacked archive."""
    path = Path(resolve_model_path(path)).expanduser()
    if not path.exists():
        raise FormatError(f"{path} does not exist; give the path of a model (a file, a folder, a zip or a tar.gz)")
    if not _is_archive(path):
        yield path
        return
    with _unpacked(path) as folder:
        folders = [folder, *sorted(inner for inner in folder.rglob("*") if inner.is_dir())]
        try:
            yield next((inner for inner in folders if _format_of(inner)), folder)
        except FormatError as error:
            raise FormatError(str(error).replace(str(folder), str(path))) from error


@contextmanager
def _format_errors(shown: Path, name: str = native.NAME) -> Iterator[None]:
    """Turn any error into a FormatError: formats check for usual faults, a corrupt file can be wrong in any way."""
    try:
        yield
    except (TypeError, ValueError, LookupError, AttributeError, RuntimeError, OSError) as error:
        if isinstance(error, PolysemeError):
            raise
        raise FormatError(f"{shown} cannot be read as {name}: {error}") from error


def _format_of(path: Path):  # noqa: ANN202 - one of the modules above
    return next((module for module in _FORMATS if module.recognises(path)), None)


def _known_format(path: Path, shown: Path):  # noqa: ANN202 - one of the modules above
    module = _format_of(path)
    if module is None:
        tried = "; ".join(f"{module.NAME}: {module.LOOKS_FOR}" for module in _FORMATS)
        raise FormatError(f"{shown} is not a model that polyseme can open. Looked for {tried}; {_OTHERS}")
    return module


def _load(path: Path, vocabulary: str | Path | None, shown: Path) -> StoredModel:
    module = _known_format(path, shown)
    with _format_errors(shown, module.NAME):
        if module is bilm_hdf5:
            return bilm_hdf5.load(path, Path(vocabulary) if vocabulary else None)
        return module.load(path)


class _Member(NamedTuple):
    name: str
    size: int
    open: IO[bytes]


def _is_archive(path: Path) -> bool:
    """Whether a file is an archive: a zip or a tar, compressed or not."""
    return path.is_file() and (zipfile.is_zipfile(path) or (path.suffix != ".json" and tarfile.is_tarfile(path)))


@contextmanager
def _unpacked(path: Path) -> Iterator[Path]:
    """Unpack an archive's plain files into a temporary folder."""
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
