"""The manifest of a folder: size and SHA-256 of each file in it, so that a damaged copy is noticed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from polyseme.errors import FormatError
from polyseme.formats.json_file import read_json

NAME = "manifest.json"


def write_manifest(folder: Path) -> None:
    """List the files that are there; folders inside look after themselves."""
    files = [file for file in sorted(folder.iterdir()) if file.is_file() and file.name != NAME]
    manifest = {file.name: {"bytes": file.stat().st_size, "sha256": _sha256(file)} for file in files}
    (folder / NAME).write_text(json.dumps({"files": manifest}, indent=2) + "\n", encoding="utf-8")


def verify_manifest(folder: Path) -> None:
    """Compare every file with the manifest."""
    manifest = read_json(folder / NAME).get("files")
    if not isinstance(manifest, dict) or not manifest.keys() >= {"config.json", "model.safetensors"}:
        raise FormatError(f"{folder / NAME} should list config.json and model.safetensors")
    for name, expected in manifest.items():
        file = folder / Path(name).name
        if not file.is_file():
            raise FormatError(f"{folder}: {name} is in the manifest but not in the folder; copy the model again")
        size = file.stat().st_size
        if size != expected.get("bytes"):
            raise FormatError(f"{file} should have {expected.get('bytes')} bytes, not {size}; copy the model again")
        if _sha256(file) != expected.get("sha256"):
            raise FormatError(f"{file} is damaged: its SHA-256 is not the manifest's; copy the model again")


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
