"""Files to models and back. Foreign tensor names live here and nowhere else."""

from __future__ import annotations

from pathlib import Path

from polyseme.errors import FormatError, PolysemeError
from polyseme.formats import archive, bilm_hdf5, many_langs, native
from polyseme.formats.stored import StoredModel

__all__ = ["StoredModel", "open_model"]

_FORMATS = (native, many_langs, bilm_hdf5)
# What is no affair of `open_model`, but may have been meant.
_OTHERS = (
    "transformers: a folder with config.json, which tells a model_type; "
    "static vectors: a word and its numbers a line, word2vec's binary, or NumPy's .npy"
)


def open_model(path: str | Path, vocabulary: str | Path | None = None) -> StoredModel:
    """Read a model from a file, a folder or an archive of any known format.

    Args:
        path: Any file of the model, its folder, or a zip or tar of it.
        vocabulary: The words of a bilm-tf model that reads word numbers, when they are not beside it.
    """
    path = Path(path).expanduser()
    if not path.exists():
        raise FormatError(f"{path} does not exist; give the path of a model (a file, a folder, a zip or a tar.gz)")
    if archive.is_archive(path):
        with archive.unpacked(path) as folder:
            folders = [folder, *sorted(inner for inner in folder.rglob("*") if inner.is_dir())]
            found = next((inner for inner in folders if _format_of(inner)), folder)
            try:
                return _load(found, vocabulary, shown=path)
            except FormatError as error:
                raise FormatError(str(error).replace(str(folder), str(path))) from error
    return _load(path, vocabulary, shown=path)


def _format_of(path: Path):  # noqa: ANN202 - one of the modules above
    return next((module for module in _FORMATS if module.recognises(path)), None)


def _load(path: Path, vocabulary: str | Path | None, shown: Path) -> StoredModel:
    module = _format_of(path)
    if module is None:
        tried = "; ".join(f"{module.NAME}: {module.LOOKS_FOR}" for module in _FORMATS)
        raise FormatError(f"{shown} is no model that polyseme can open. Looked for {tried}; {_OTHERS}")
    try:
        if module is bilm_hdf5:
            return bilm_hdf5.load(path, Path(vocabulary) if vocabulary else None)
        return module.load(path)
    except (TypeError, ValueError, LookupError, AttributeError, RuntimeError, OSError) as error:
        # Formats check what people get wrong; a file that was tampered with can be wrong in any way.
        if isinstance(error, PolysemeError):
            raise
        raise FormatError(f"{shown} cannot be read as {module.NAME}: {error}") from error
