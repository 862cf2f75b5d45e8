"""Our own format: a folder of plain files.

    config.json         what the model is and how it reads words
    model.safetensors   the weights, in fp32, fp16 or int8
    vocabulary.txt      one word a line, for models that read word numbers
    characters.txt      one character a line, for models that spell by a dictionary
    manifest.json       size and SHA-256 of each of these

Storage precision is this file's affair: whatever it is, weights come out as fp32. In int8 each
output of a matrix has its own scale, stored beside it as ``<name>.scale``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from polyseme.errors import FormatError, OutputError
from polyseme.files import check_absent, replacing_folder
from polyseme.formats.json_file import read_json
from polyseme.formats.manifest import verify_manifest, write_manifest
from polyseme.formats.stored import StoredModel, check_weights
from polyseme.memory import give_back
from polyseme.model.config import BiLMConfig, from_dict, to_dict
from polyseme.text.characters import ByteCharacters, Characters, DictionaryCharacters
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.words import WordEncoder

NAME = "polyseme"
LOOKS_FOR = "a folder with config.json and model.safetensors"
VERSION = 1
Precision = Literal["fp32", "fp16", "int8"]
_TINY = torch.finfo(torch.float32).tiny
PRECISIONS: tuple[Precision, ...] = ("fp32", "fp16", "int8")


def recognises(path: Path) -> bool:
    """Whether this is such a folder, or a file in one."""
    return (_folder(path) / "model.safetensors").is_file()


def load(path: Path) -> StoredModel:
    """Read and verify a model."""
    folder = _folder(path)
    verify_manifest(folder)
    settings = read_json(folder / "config.json")
    if settings.get("format") != NAME or settings.get("version") != VERSION:
        found = f"{settings.get('format')!r} version {settings.get('version')!r}"
        raise FormatError(f"{folder / 'config.json'} should say format {NAME!r} version {VERSION}; it says {found}")
    config = from_dict(BiLMConfig, settings.get("model"), where=f"{folder / 'config.json'}: model")
    try:
        stored = load_file(folder / "model.safetensors")
    except (SafetensorError, OSError, ValueError) as error:
        raise FormatError(f"{folder / 'model.safetensors'} cannot be read: {error}") from error
    weights = _unpack(stored)
    check_weights(config, weights, str(folder / "model.safetensors"))
    give_back(*weights.values())
    words = _load_words(folder, settings, config)
    precision, origin = str(settings.get("precision", "fp32")), str(settings.get("made_from", ""))
    return StoredModel(config, weights, words, "polyseme folder", precision, origin)


def save(model: StoredModel, path: Path, precision: Precision = "fp32", overwrite: bool = False) -> None:
    """Write a model; the folder appears whole or not at all."""
    settings: dict[str, Any] = {"format": NAME, "version": VERSION, "precision": precision}
    settings["made_from"] = model.origin or model.format
    settings["model"] = to_dict(model.config)
    characters, vocabulary = model.words.characters, model.words.vocabulary
    settings["characters"] = _describe(characters)
    path = path.resolve()
    check_absent(path, overwrite)
    _check_replaceable(path)
    with replacing_folder(path) as folder:
        if vocabulary:
            settings["vocabulary"] = {
                "bos": vocabulary.bos,
                "eos": vocabulary.eos,
                "unk": vocabulary.unk,
                "longest": model.words.longest,
            }
            vocabulary.save(folder / "vocabulary.txt")
        if isinstance(characters, DictionaryCharacters):
            lines = "".join(f"{character}\n" for character in characters.characters)
            (folder / "characters.txt").write_bytes(lines.encode("utf-8"))
        (folder / "config.json").write_text(json.dumps(settings, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        save_file(_pack(model.weights, precision), folder / "model.safetensors", {"format": "pt"})
        write_manifest(folder)


def _check_replaceable(path: Path) -> None:
    """What is overwritten is a model or an empty folder; anything else is somebody's work."""
    files = {"config.json", "model.safetensors", "vocabulary.txt", "characters.txt", "manifest.json"}
    if path.exists() and not (path.is_dir() and all(inside.name in files for inside in path.iterdir())):
        raise OutputError(f"{path} is no model of ours, so it is not overwritten; choose another name")


def _folder(path: Path) -> Path:
    return path if path.is_dir() else path.parent


def _pack(weights: Mapping[str, Tensor], precision: Precision) -> dict[str, Tensor]:
    packed = {}
    for name, tensor in weights.items():
        weight = tensor.detach().cpu().float().contiguous()
        if precision == "int8" and weight.dim() > 1:
            scale = weight.abs().amax(dim=_inputs(name, weight), keepdim=True).clamp(min=_TINY) / 127
            packed[name] = (weight / scale).round().to(torch.int8)
            packed[f"{name}.scale"] = scale
        else:
            packed[name] = weight.half() if precision == "fp16" else weight
    return packed


def _unpack(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    weights = {}
    for name, weight in stored.items():
        if name.removesuffix(".scale") in stored and name.endswith(".scale"):
            continue
        scale = stored.get(f"{name}.scale")
        wide = weight.float()
        weights[name] = wide if scale is None else wide * scale
    return weights


def _inputs(name: str, weight: Tensor) -> tuple[int, ...]:
    """The axes that one output sums over, which share a scale: rows of an LSTM's matrix, the later axes of others."""
    return (0,) if name.startswith("lstms.") else tuple(range(1, weight.dim()))


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
            raise FormatError(f"{folder / 'config.json'}: characters should be a table of settings, not {described!r}")
        characters = _load_characters(folder, dict(described), config.input.characters.max_characters)
    if config.input.num_words:
        special = {key: value for key, value in settings.get("vocabulary", {}).items() if key in ("bos", "eos", "unk")}
        vocabulary = Vocabulary.load(folder / "vocabulary.txt", **special)
        longest = settings.get("vocabulary", {}).get("longest")
    return WordEncoder(characters, vocabulary, longest)


def _load_characters(folder: Path, settings: dict[str, Any], max_characters: int) -> Characters:
    unit = settings.pop("unit", None)
    try:
        if unit == "bytes":
            return ByteCharacters(max_characters, **settings)
        if unit == "dictionary":
            lines = (folder / "characters.txt").read_bytes().decode("utf-8").split("\n")[:-1]
            return DictionaryCharacters(tuple(lines), max_characters, **settings)
    except (TypeError, OSError, UnicodeDecodeError) as error:
        raise FormatError(f"{folder}: the character settings cannot be read: {error}") from error
    raise FormatError(f"{folder / 'config.json'}: characters.unit must be 'bytes' or 'dictionary', not {unit!r}")
