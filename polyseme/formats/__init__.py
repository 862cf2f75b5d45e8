"""Model file formats: loading and saving. Foreign tensor names live here and nowhere else."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from polyseme.errors import ConfigError, FormatError, PolysemeError
from polyseme.formats import bilm_hdf5, many_langs, native
from polyseme.formats.archive import is_archive, unpacked
from polyseme.formats.stored import StoredModel, StoredSoftmax, check_words

__all__ = [
    "StoredModel",
    "StoredSoftmax",
    "format_errors",
    "open_extras",
    "open_model",
    "open_softmax",
    "resolve_model_path",
]

SHIPPED_MODEL = "english"
SHIPPED_FOLDER = Path(__file__).parents[1] / "models"
LONGEST_MESSAGE = 600  # characters

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
        if isinstance(model, str) and model == SHIPPED_MODEL:
            warnings.warn(
                f"{SHIPPED_MODEL!r} means the file or folder ./{SHIPPED_MODEL} here, not the model that ships with "
                f"polyseme; give ./{SHIPPED_MODEL} to say so, or rename it",
                stacklevel=2,
            )
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
        with format_errors(Path(path)):
            return native.load_softmax(place)


def open_extras(path: str | Path) -> dict[str, bytes]:
    """Read the extra files of a model of our own format, by name; other formats have none."""
    with _located(Path(path)) as place, format_errors(Path(path)):
        return native.load_extras(place) if native.recognises(place) else {}


@contextmanager
def _located(path: Path) -> Iterator[Path]:
    """Locate a model: the path itself, or a folder inside of the unpacked archive."""
    path = Path(resolve_model_path(path)).expanduser()
    if not path.exists():
        raise FormatError(f"{path} does not exist; give the path of a model (a file, a folder, a zip or a tar.gz)")
    if not is_archive(path):
        yield path
        return
    with unpacked(path) as folder:
        folders = [folder, *sorted(inner for inner in folder.rglob("*") if inner.is_dir())]
        try:
            yield next((inner for inner in folders if _format_of(inner)), folder)
        except FormatError as error:
            raise FormatError(str(error).replace(str(folder), str(path))) from error


@contextmanager
def format_errors(shown: Path, name: str = native.NAME) -> Iterator[None]:
    """Turn any error into a short FormatError: a corrupt file can be wrong in ways that its format does not check."""
    try:
        yield
    except MemoryError as error:
        raise FormatError(f"{shown} cannot be read as {name}: this machine has too little memory for it") from error
    except PolysemeError as error:
        message = " ".join(str(error).split())
        if len(message) > LONGEST_MESSAGE:
            raise type(error)(f"{message[: LONGEST_MESSAGE - 4]} ...") from error
        raise
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RuntimeError, OSError) as error:
        reason = " ".join(str(error).split())
        raise FormatError(f"{shown} cannot be read as {name}: {reason:.300}") from error


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
    with format_errors(shown, module.NAME):
        given = Path(vocabulary) if vocabulary else None
        model = bilm_hdf5.load(path, given) if module is bilm_hdf5 else module.load(path)
        check_words(model.config, model.words, str(shown))
        return model
