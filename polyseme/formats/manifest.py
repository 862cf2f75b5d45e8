"""``manifest.json``: size and SHA-256 of each file of a folder, so that damage is found where it is read."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from polyseme.errors import FormatError
from polyseme.files import read_json

NAME = "manifest.json"


def write_manifest(folder: Path) -> None:
    """List all files that are there; folders inside look after themselves."""
    inside = [file for file in sorted(folder.iterdir()) if file.is_file() and file.name != NAME]
    files = {file.name: {"bytes": file.stat().st_size, "sha256": _sha256(file)} for file in inside}
    (folder / NAME).write_text(json.dumps({"files": files}, indent=2) + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> dict[str, Any]:
    """What is listed, by name."""
    files = read_json(folder / NAME).get("files")
    if not isinstance(files, dict):
        raise FormatError(f"{folder / NAME} should list the files of the model")
    return files


def verify(folder: Path, *names: str) -> None:
    """Compare the files that are about to be read with the manifest."""
    listed = read_manifest(folder)
    missing = [name for name in names if name not in listed]
    if missing:
        raise FormatError(f"{folder / NAME} should list {' and '.join(missing)}")
    for name in names:
        file, expected = folder / name, listed[name]
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
