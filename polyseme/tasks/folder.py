"""A fitted model as a folder, without pickles.

    config.json         the kind of task, its settings, what it has learned to name, its encoders
    model.safetensors   the weights of its network
    manifest.json       size and SHA-256 of these
    encoder-0/ ...      the encoders, where they are bundled

Nothing in it runs code when it is opened.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from polyseme.errors import FormatError, OutputError
from polyseme.files import atomic_folder, check_absent, read_json
from polyseme.formats.native import read_manifest, verify, write_manifest
from polyseme.tasks.features.encoders import Source
from polyseme.tasks.fitting.checkpoint import plain

VERSION = 1


def save_model(
    path: str | Path,
    config: Mapping[str, Any],
    weights: Mapping[str, Tensor],
    sources: Mapping[str, Sequence[Source]],
    bundle: bool = False,
    overwrite: bool = False,
) -> None:
    """Write a fitted model; the folder appears whole or not at all.

    Args:
        path: The new folder.
        config: What it is, as JSON can hold it; ``task`` says of which kind.
        weights: Of its network.
        sources: Its encoders, by what they are for.
        bundle: Put copies of the encoders inside.
        overwrite: Replace a fitted model that is there.
    """
    place = Path(path).resolve()
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
        save_file(plain(weights), folder / "model.safetensors", {"format": "pt"})
        write_manifest(folder)


def load_model(path: str | Path, task: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read and verify what `save_model` wrote for a kind of task."""
    folder = Path(path)
    if not folder.exists():
        raise FormatError(f"{folder} does not exist; expected a folder that `polyseme ... fit` has written")
    if not (folder / "manifest.json").is_file():
        raise FormatError(f"{folder} is no fitted {task}; expected a folder that `polyseme ... fit` has written")
    verify(folder, *{"config.json": None, "model.safetensors": None, **read_manifest(folder)})
    config = read_json(folder / "config.json")
    if config.get("format") != f"polyseme {task}" or config.get("version") != VERSION:
        found = f"{config.get('format')!r} version {config.get('version')!r}"
        raise FormatError(f"{folder} should be a 'polyseme {task}' of version {VERSION}, but it is {found}")
    try:
        return config, load_file(folder / "model.safetensors")
    except (SafetensorError, OSError, ValueError) as error:
        raise FormatError(f"{folder / 'model.safetensors'} cannot be read: {error}") from error


def fill(network: nn.Module, weights: Mapping[str, Tensor], folder: str | Path) -> None:
    """Put weights into a network, all of them and no others."""
    try:
        network.load_state_dict(dict(weights))
    except RuntimeError as error:
        fault = str(error).splitlines()[-1].strip()
        raise FormatError(f"{folder}: the weights do not fit the settings: {fault}") from error


def check_replaceable(place: Path, overwrite: bool) -> None:
    """What is overwritten is a fitted model or an empty folder; anything else is somebody's work."""
    check_absent(place, overwrite)
    if place.exists() and not _is_fitted_model(place):
        raise OutputError(f"{place} is no fitted model, so it is not overwritten; choose another name")


def _is_fitted_model(place: Path) -> bool:
    if not place.is_dir() or not any(place.iterdir()):
        return place.is_dir()
    try:
        return str(read_json(place / "config.json").get("format")).startswith("polyseme ")
    except FormatError:
        return False
