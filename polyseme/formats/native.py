"""Polyseme's own model format: a folder of plain files, safetensors and JSON.

    config.json           what the model is and how it reads words
    model.safetensors     the weights, in fp32, fp16 or int8
    softmax.safetensors   the head of a language model, where there is one; loaded only on request
    vocabulary.txt        one word per line, for a head, and for models that read word ids
    characters.txt        one character per line, for models with a character dictionary
    manifest.json         size and SHA-256 of each of these, and of extra files that belong to the model

Only files that are read are verified, so opening a model does not wait for its head.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from safetensors.torch import save_file

from polyseme.errors import ConfigError, FormatError, OutputError
from polyseme.files import atomic_folder, check_absent
from polyseme.formats.budget import check_plain_file, read_model_json
from polyseme.formats.stored import (
    PRECISIONS,
    Precision,
    StoredModel,
    StoredSoftmax,
    check_weights,
    pack,
    read_weights,
    release_mapped_pages,
)
from polyseme.locks import resolve_output
from polyseme.model.config import BiLMConfig, from_dict, to_dict
from polyseme.model.softmax import SoftmaxConfig
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.word_encoder import ByteCharacters, Characters, DictionaryCharacters, WordEncoder

__all__ = ["PRECISIONS", "Precision", "load", "load_extras", "load_softmax", "recognises", "save"]

C = TypeVar("C", BiLMConfig, SoftmaxConfig)
NAME = "polyseme"
LOOKS_FOR = "a folder with config.json and model.safetensors"
VERSION = 1
CONFIG, MODEL, SOFTMAX = "config.json", "model.safetensors", "softmax.safetensors"
VOCABULARY, CHARACTERS, MANIFEST = "vocabulary.txt", "characters.txt", "manifest.json"
FILES = {CONFIG, MODEL, SOFTMAX, VOCABULARY, CHARACTERS, MANIFEST}


def recognises(path: Path) -> bool:
    """Whether a path is a model folder of this format, or a file in one."""
    return (_folder(path) / MODEL).is_file()


def has_own_config(path: Path) -> bool:
    """Whether a path is a folder whose config.json says that it is of this format."""
    try:
        return read_model_json(_folder(path) / CONFIG).get("format") == NAME
    except FormatError:
        return False


def load(path: Path) -> StoredModel:
    """Load and verify a model, without its softmax head."""
    folder = _folder(path)
    settings = _read_settings(folder)
    verify(folder, MODEL)
    config = _model_config(folder, settings)
    weights = read_weights(folder / MODEL)
    check_weights(config, weights, str(folder / MODEL))
    release_mapped_pages(*weights.values())
    words = _load_words(folder, settings, config)
    precision = settings.get("precision", "fp32")
    if precision not in PRECISIONS:
        raise FormatError(f"{folder / CONFIG}: precision is {precision!r}; expected one of {', '.join(PRECISIONS)}")
    origin = str(settings.get("made_from", ""))
    return StoredModel(
        config, weights, words, "polyseme folder", precision, origin, softmax=_softmax_config(folder, settings)
    )


def load_softmax(path: Path) -> StoredSoftmax:
    """Load and verify the softmax head of a model's language model."""
    folder = _folder(path)
    settings = _read_settings(folder)
    config, model = _softmax_config(folder, settings), _model_config(folder, settings)
    if config is None:
        raise FormatError(without_softmax(folder))
    if config.dim != model.lstm.dim:
        raise FormatError(
            f"{folder / CONFIG}: the softmax takes {config.dim} dimensions, but the model gives {model.lstm.dim}"
        )
    verify(folder, SOFTMAX)
    weights = read_weights(folder / SOFTMAX)
    check_weights(config, weights, str(folder / SOFTMAX))
    release_mapped_pages(*weights.values())
    vocabulary = _load_vocabulary(folder, settings)
    if len(vocabulary) != config.num_words:
        raise FormatError(
            f"{folder / VOCABULARY} has {len(vocabulary):,} words, but the softmax is over {config.num_words:,}"
        )
    return StoredSoftmax(config, weights, vocabulary)


def load_extras(path: Path) -> dict[str, bytes]:
    """Load and verify the extra files of a model: its training curves, for instance."""
    folder = _folder(path)
    names = [name for name in read_manifest(folder) if name not in FILES]
    for name in names:
        if not _is_plain(name):
            raise FormatError(f"{folder / MANIFEST} lists {name!r}, which is not a file of the folder")
    verify(folder, *names)
    return {name: (folder / name).read_bytes() for name in names}


def without_softmax(path: Path) -> str:
    """Error message for a model without a softmax head."""
    return (
        f"{path} has no softmax: it gives vectors but predicts no words. Published ELMo files have none; "
        "models trained by `polyseme train` do, and LanguageModel.save keeps it"
    )


def save(
    model: StoredModel,
    path: Path,
    precision: Precision = "fp32",
    overwrite: bool = False,
    *,
    softmax: StoredSoftmax | None = None,
    extras: Mapping[str, bytes] | None = None,
) -> None:
    """Save a model folder atomically.

    Args:
        model: What to write.
        path: The folder.
        precision: How weights are stored, including those of the head.
        overwrite: Whether an existing model may be replaced.
        softmax: The head of its language model.
        extras: Extra files that belong to it, by name.
    """
    characters, vocabulary = model.words.characters, _vocabulary(model, softmax)
    settings: dict[str, Any] = {"format": NAME, "version": VERSION, "precision": precision}
    settings["made_from"] = model.origin or model.format
    settings["model"] = to_dict(model.config)
    settings["characters"] = _describe(characters)
    if softmax:
        settings["softmax"] = asdict(softmax.config)
    for name in extras or ():
        if not _is_plain(name) or name in FILES:
            raise OutputError(f"{name!r} is not a name for an extra file of a model")
    path = resolve_output(path)
    check_absent(path, overwrite)
    check_replaceable(path)
    with atomic_folder(path) as folder:
        if vocabulary:
            special = {"bos": vocabulary.bos, "eos": vocabulary.eos, "unk": vocabulary.unk}
            settings["vocabulary"] = {**special, "longest": model.words.longest}
            vocabulary.save(folder / VOCABULARY)
        if isinstance(characters, DictionaryCharacters):
            lines = "".join(f"{character}\n" for character in characters.characters)
            (folder / CHARACTERS).write_bytes(lines.encode("utf-8"))
        (folder / CONFIG).write_text(json.dumps(settings, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        save_file(pack(model.weights, precision), folder / MODEL, {"format": "pt"})
        if softmax:
            save_file(pack(softmax.weights, precision), folder / SOFTMAX, {"format": "pt"})
        for name, content in (extras or {}).items():
            (folder / name).write_bytes(content)
        write_manifest(folder)


def write_manifest(folder: Path) -> None:
    """Write the manifest: size and SHA-256 of all files in a folder, but not in its subfolders."""
    inside = [file for file in sorted(folder.iterdir()) if file.is_file() and file.name != MANIFEST]
    files = {file.name: {"bytes": file.stat().st_size, "sha256": _sha256(file)} for file in inside}
    (folder / MANIFEST).write_text(json.dumps({"files": files}, indent=2) + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read a manifest: size and SHA-256 of files, by name."""
    files = read_model_json(folder / MANIFEST).get("files")
    if not isinstance(files, dict):
        raise FormatError(f"{folder / MANIFEST} should list the files of the model")
    return files


def verify(folder: Path, *names: str) -> None:
    """Verify files against the manifest, by size and SHA-256, before they are read."""
    listed = read_manifest(folder)
    missing = [name for name in names if name not in listed]
    if missing:
        raise FormatError(f"{folder / MANIFEST} should list {' and '.join(missing)}")
    for name in names:
        file, expected = folder / name, listed[name]
        if not isinstance(expected, dict):
            raise FormatError(f"{folder / MANIFEST} should list size and SHA-256 of {name}, not {expected!r:.60}")
        if not file.is_file():
            raise FormatError(f"{folder}: {name} is in the manifest but not in the folder; copy the model again")
        check_plain_file(file)
        size = file.stat().st_size
        if size != expected.get("bytes"):
            raise FormatError(
                f"{file} should have {expected.get('bytes')!r:.30} bytes, not {size}; copy the model again"
            )
        if _sha256(file) != expected.get("sha256"):
            raise FormatError(f"{file} is damaged: its SHA-256 is not the manifest's; copy the model again")


def _vocabulary(model: StoredModel, softmax: StoredSoftmax | None) -> Vocabulary | None:
    """Vocabulary of model and head, which share one list of words."""
    read = model.words.vocabulary
    if softmax is None:
        return read
    if softmax.config.dim != model.config.lstm.dim:
        raise ConfigError(
            f"the softmax takes {softmax.config.dim} dimensions, but the model gives {model.config.lstm.dim}"
        )
    if softmax.config.num_words != len(softmax.vocabulary):
        raise ConfigError(f"a softmax over {softmax.config.num_words:,} words came with {len(softmax.vocabulary):,}")
    if read is not None and list(read) != list(softmax.vocabulary):
        raise ConfigError("a model that reads word ids and its softmax need the same vocabulary; these differ")
    return softmax.vocabulary


def check_replaceable(path: Path) -> None:
    """Refuse to overwrite anything but a model or an empty folder, which might be someone's work."""
    if path.is_dir():
        known = FILES | (_listed(path) if recognises(path) else set())
        if all(inside.name in known for inside in path.iterdir()):
            return
    if path.exists():
        raise OutputError(f"{path} is not a polyseme model, so it is not overwritten; choose another name")


def _listed(folder: Path) -> set[str]:
    try:
        return set(read_manifest(folder))
    except FormatError:
        return set()


def _is_plain(name: str) -> bool:
    """Whether a name can only be a visible file in the folder itself: no path traversal."""
    return bool(name) and name == Path(name).name and not name.startswith(".") and "\\" not in name


def _folder(path: Path) -> Path:
    return path if path.is_dir() else path.parent


def _read_settings(folder: Path) -> dict[str, Any]:
    if (folder / MANIFEST).is_file() or not (folder / CONFIG).is_file():
        verify(folder, CONFIG)  # else it is a folder of another toolkit, or the checks below say what is wrong
    settings = read_model_json(folder / CONFIG)
    if settings.get("format") != NAME or settings.get("version") != VERSION:
        if "model_type" in settings:
            raise FormatError(f"{folder} is not an ELMo model but a transformers folder ({settings['model_type']!r})")
        found = f"{settings.get('format')!r} version {settings.get('version')!r}"
        raise FormatError(f"{folder / CONFIG} should have format {NAME!r} version {VERSION}, not {found}")
    return settings


def _model_config(folder: Path, settings: Mapping[str, Any]) -> BiLMConfig:
    return _read_config(BiLMConfig, settings.get("model"), f"{folder / CONFIG}: model")


def _softmax_config(folder: Path, settings: Mapping[str, Any]) -> SoftmaxConfig | None:
    described = settings.get("softmax")
    return _read_config(SoftmaxConfig, described, f"{folder / CONFIG}: softmax") if described is not None else None


def _read_config(kind: type[C], values: object, where: str) -> C:
    """Read settings out of a file, whose name is in every refusal."""
    try:
        return from_dict(kind, values, where)
    except ConfigError as error:
        fault = str(error)
        raise FormatError(fault if fault.startswith(where) else f"{where}: {fault}") from None


def _describe(characters: Characters | None) -> dict[str, Any] | None:
    if isinstance(characters, ByteCharacters):
        kept = {"whole_characters": characters.whole_characters, "literal_boundaries": characters.literal_boundaries}
        return {"unit": "bytes", **kept}
    return {"unit": "dictionary", "swapped": characters.swapped} if characters else None


def _load_words(folder: Path, settings: Mapping[str, Any], config: BiLMConfig) -> WordEncoder:
    characters = vocabulary = longest = None
    if config.input.characters:
        described = settings.get("characters")
        if not isinstance(described, dict):
            raise FormatError(f"{folder / CONFIG}: characters should be a table of settings, not {described!r}")
        characters = _load_characters(folder, dict(described), config.input.characters.max_characters)
    if config.input.num_words:
        vocabulary = _load_vocabulary(folder, settings)
        longest = settings.get("vocabulary", {}).get("longest")
    return WordEncoder(characters, vocabulary, longest)


def _load_vocabulary(folder: Path, settings: Mapping[str, Any]) -> Vocabulary:
    verify(folder, VOCABULARY)
    special = {key: value for key, value in settings.get("vocabulary", {}).items() if key in ("bos", "eos", "unk")}
    return Vocabulary.load(folder / VOCABULARY, **special)


def _load_characters(folder: Path, settings: dict[str, Any], max_characters: int) -> Characters:
    unit = settings.pop("unit", None)
    try:
        if unit == "bytes":
            return ByteCharacters(max_characters, **settings)
        if unit == "dictionary":
            verify(folder, CHARACTERS)
            lines = (folder / CHARACTERS).read_bytes().decode("utf-8").split("\n")[:-1]
            return DictionaryCharacters(tuple(lines), max_characters, **settings)
    except (TypeError, OSError, UnicodeDecodeError) as error:
        raise FormatError(f"{folder}: the character settings cannot be read: {error}") from error
    raise FormatError(f"{folder / CONFIG}: characters.unit must be 'bytes' or 'dictionary', not {unit!r}")


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
