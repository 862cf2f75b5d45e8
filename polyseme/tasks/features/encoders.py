"""The encoders of a fitted model: where they were, what they were, and how they are found again.

An encoder is named by its path and its fingerprint. A model that is saved holds these two, or a copy of the encoder.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from polyseme.embedding.encoder import Encoder
from polyseme.errors import ConfigError, FormatError, PolysemeError
from polyseme.formats import native, open_model, resolve_model_path
from polyseme.formats.vectors import recognise
from polyseme.loading import ELMO, STATIC, backend_of, load


@dataclass(frozen=True, eq=False)
class Source:
    """An opened encoder and where it came from.

    Attributes:
        encoder: As it was opened, or as a task has changed it.
        path: Where it was, or None for one that was handed in opened.
        fingerprint: What it was before any task changed it.
    """

    encoder: Encoder
    path: str | None
    fingerprint: str

    @classmethod
    def open(cls, given: Given, device: str | torch.device = "cpu") -> Source:
        """Open what is named by a path; an encoder is taken as it is."""
        if isinstance(given, Encoder):
            return cls(given.to(device), None, given.fingerprint())
        if not isinstance(given, str | Path):
            raise ConfigError(f"an encoder is a path or what polyseme.load gave, not {given!r:.60}")
        encoder = load(given, device=device)
        place = Path(given).expanduser()
        return cls(encoder, str(place.resolve()) if place.exists() else str(given), encoder.fingerprint())

    def describe(self, bundled: str | None = None) -> dict[str, Any]:
        """What a saved model says of it; a bundled one is at this place inside the model's folder."""
        about = {"name": self.encoder.name, "path": self.path, "fingerprint": self.fingerprint}
        return {**about, "bundled": bundled}

    def bundle(self, folder: Path) -> str:
        """Copy what it was opened from into a new folder; what is returned is to be opened, as a path beside it."""
        if self.path is None:
            raise ConfigError(
                f"{self.encoder.name} was given opened, so its files are not known; give its path to bundle it"
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


Given = str | Path | Encoder


def reopen(about: Mapping[str, Any], folder: Path, given: Given | None, device: str | torch.device) -> Source:
    """Find the encoder of a saved model again, and make sure that it is the one.

    Args:
        about: What `Source.describe` said.
        folder: Of the saved model.
        given: An encoder in its place, from the one who loads; it must be the same.
        device: Where to compute.
    """
    name, path = about.get("name"), given or _place(about, folder)
    if path is None:
        raise ConfigError(f"{folder} was fitted with {name}, which was given opened; give it, or its path, to load")
    try:
        found = Source.open(path, device)
    except PolysemeError as error:
        remedy = "" if given else "; if it has moved, give its new path (--encoder, or --words for word vectors)"
        raise FormatError(f"{folder} needs its encoder {name}, but {error}{remedy}") from error
    if found.fingerprint != about.get("fingerprint"):
        raise ConfigError(
            f"{folder} was fitted with the encoder {name} of fingerprint {str(about.get('fingerprint'))[:12]}, but "
            f"{path if not isinstance(path, Encoder) else path.name} has {found.fingerprint[:12]}: its vectors would "
            "mean nothing here; give the one it was fitted with, or fit anew"
        )
    return Source(found.encoder, found.path or about.get("path"), found.fingerprint)


def _place(about: Mapping[str, Any], folder: Path) -> str | Path | None:
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
