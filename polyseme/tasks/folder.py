"""A fitted model as a folder, without pickles, and the encoders that it names.

    config.json         the kind of task, its settings, its labels, its encoders
    model.safetensors   the weights of its network
    manifest.json       size and SHA-256 of these
    encoder-0/ ...      the encoders, where they are bundled

Nothing in it runs code when it is opened. An encoder is named by its path and its fingerprint.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from polyseme.embedding.encoder import Encoder
from polyseme.errors import ConfigError, FormatError, OutputError, PolysemeError
from polyseme.files import atomic_folder, check_absent
from polyseme.formats import native, open_model, resolve_model_path
from polyseme.formats.budget import read_model_json
from polyseme.formats.native import read_manifest, verify, write_manifest
from polyseme.formats.stored import build_on_meta, check_fit
from polyseme.formats.tensor_file import read_tensors
from polyseme.formats.vectors import recognise
from polyseme.loading import ELMO, STATIC, backend_of, load
from polyseme.locks import resolve_output
from polyseme.tasks.fitting.checkpoint import cpu_copies

VERSION = 1


@dataclass(frozen=True, eq=False)
class EncoderSource:
    """An opened encoder and where it came from.

    Attributes:
        encoder: The encoder, as it was opened.
        path: Where it was opened from; None for one that was passed as an object.
        fingerprint: Hash of the weights it was opened with.
    """

    encoder: Encoder
    path: str | None
    fingerprint: str

    @classmethod
    def open(cls, given: EncoderLike, device: str | torch.device = "cpu") -> EncoderSource:
        """Open the encoder at a path; an encoder that is open already is taken as it is."""
        if isinstance(given, Encoder):
            return cls(given.to(device), None, given.fingerprint())
        if not isinstance(given, str | Path):
            raise ConfigError(f"an encoder is a path or what polyseme.load gave, not {given!r:.60}")
        encoder = load(given, device=device)
        place = Path(given).expanduser()
        return cls(encoder, str(place.resolve()) if place.exists() else str(given), encoder.fingerprint())

    def describe(self, bundled: str | None = None) -> dict[str, Any]:
        """The entry of config.json for this encoder; ``bundled`` is its place inside the model's folder."""
        about = {"name": self.encoder.name, "path": self.path, "fingerprint": self.fingerprint}
        return {**about, "bundled": bundled}

    def bundle(self, folder: Path) -> str:
        """Copy the encoder's files into a new folder; returns the path to open, relative to the model's folder."""
        if self.path is None:
            raise ConfigError(
                f"{self.encoder.name} was passed as an object, so its files are not known; pass its path to bundle it"
            )
        place = Path(resolve_model_path(self.path))
        backend = backend_of(place)
        if backend is ELMO:
            model = open_model(place)
            native.save(model, folder, model.precision)
            return folder.name
        if not place.exists():
            raise ConfigError(f"{self.path} is not on this disk, so it cannot be bundled; fetch its folder first")
        folder.mkdir()
        if backend is STATIC:
            _copy([place, recognise(place).vocabulary], folder)
            return f"{folder.name}/{place.name}"
        _copy((place if place.is_dir() else place.parent).iterdir(), folder)
        return folder.name


EncoderLike = str | Path | Encoder


def reopen(
    about: Mapping[str, Any], folder: Path, given: EncoderLike | None, device: str | torch.device
) -> EncoderSource:
    """Reopen the encoder of a saved model, and check by its fingerprint that it is the same.

    Args:
        about: What `EncoderSource.describe` returned.
        folder: The folder of the saved model.
        given: The encoder or its new path, from the caller of `load`; it must be the same.
        device: Where to compute.
    """
    name, path = about.get("name"), given or _path_of(about, folder)
    if path is None:
        raise ConfigError(
            f"{folder} was fitted with {name}, which was passed as an object; pass it, or its path, to load"
        )
    try:
        found = EncoderSource.open(path, device)
    except PolysemeError as error:
        remedy = "" if given else "; if it has moved, give its new path (--encoder, or --words for word vectors)"
        raise FormatError(f"{folder} needs its encoder {name}, but {error}{remedy}") from error
    if found.fingerprint != about.get("fingerprint"):
        raise ConfigError(
            f"{folder} was fitted with the encoder {name} of fingerprint {str(about.get('fingerprint'))[:12]}, but "
            f"{path if not isinstance(path, Encoder) else path.name} has {found.fingerprint[:12]}: its vectors would "
            "mean nothing here; give the encoder it was fitted with, or fit again"
        )
    return EncoderSource(found.encoder, found.path or about.get("path"), found.fingerprint)


def save_model(
    path: str | Path,
    config: Mapping[str, Any],
    weights: Mapping[str, Tensor],
    sources: Mapping[str, Sequence[EncoderSource]],
    bundle: bool = False,
    overwrite: bool = False,
) -> None:
    """Save a fitted model to a folder, atomically: it appears whole or not at all.

    Args:
        path: The new folder.
        config: What it is, as JSON can hold it; ``task`` says of which kind.
        weights: The weights of its network.
        sources: Its encoders, by what they are for.
        bundle: Put copies of the encoders inside.
        overwrite: Replace a fitted model that is there.
    """
    place = resolve_output(Path(path))
    check_replaceable(place, overwrite)
    with atomic_folder(place) as folder:
        described = {
            use: [
                source.describe(source.bundle(folder / f"{use}-{number}") if bundle else None)
                for number, source in enumerate(some)
            ]
            for use, some in sources.items()
        }
        whole = {"format": f"polyseme {config['task']}", "version": VERSION, **config, "sources": described}
        (folder / "config.json").write_text(json.dumps(whole, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        save_file(cpu_copies(weights), folder / "model.safetensors", {"format": "pt"})
        write_manifest(folder)


def load_model(path: str | Path, task: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Load and verify a folder that `save_model` wrote for this kind of task."""
    folder = Path(path)
    if not folder.exists():
        raise FormatError(f"{folder} does not exist; expected a folder that `polyseme ... fit` has written")
    if not (folder / "manifest.json").is_file():
        raise FormatError(f"{folder} is not a fitted {task}; expected a folder that `polyseme ... fit` has written")
    verify(folder, *{"config.json": None, "model.safetensors": None, **read_manifest(folder)})
    config = read_model_json(folder / "config.json")
    if config.get("format") != f"polyseme {task}" or config.get("version") != VERSION:
        found = f"{config.get('format')!r} version {config.get('version')!r}"
        raise FormatError(f"{folder} should be a 'polyseme {task}' of version {VERSION}, but it is {found}")
    return config, read_tensors(folder / "model.safetensors")


def check_network(build: Callable[[], nn.Module], weights: Mapping[str, Tensor], folder: str | Path) -> None:
    """Check that weights are finite and those of a network, before memory is taken for it."""
    try:
        check_fit(build_on_meta(build), weights, "model.safetensors")
    except FormatError as error:
        raise FormatError(f"{folder}: the weights do not fit the settings: {error}") from error


def check_replaceable(place: Path, overwrite: bool) -> None:
    """Refuse to overwrite anything but a fitted model or an empty folder: it may be somebody's work."""
    check_absent(place, overwrite)
    if place.exists() and not _is_fitted_model(place):
        raise OutputError(f"{place} is not a fitted model, so it is not overwritten; choose another name")


def _is_fitted_model(place: Path) -> bool:
    if not place.is_dir() or not any(place.iterdir()):
        return place.is_dir()
    try:
        return str(read_model_json(place / "config.json").get("format")).startswith("polyseme ")
    except FormatError:
        return False


def _path_of(about: Mapping[str, Any], folder: Path) -> str | Path | None:
    bundled = about.get("bundled")
    if not bundled:
        return about.get("path")
    inside = (folder / str(bundled)).resolve()
    if not inside.is_relative_to(folder.resolve()):
        raise FormatError(f"{folder / 'config.json'}: bundled should be inside the folder, not {bundled!r}")
    return inside


def _copy(files: Iterable[Path | None], folder: Path) -> None:
    for file in files:
        if file is not None and file.is_file():
            shutil.copyfile(file, folder / file.name)
