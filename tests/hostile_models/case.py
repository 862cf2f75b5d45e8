"""Hostile models by name: how each is made, and what must be said about it."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file, save_file

from polyseme.formats.native import write_manifest

OPENS = "opens"  # the expected answer where a file is odd, but right
OVER_BUDGET = r"would take [\d,.]+ \w+ of memory or disk, but .* set POLYSEME_MAX_GIB to a higher limit in GiB$"
Make = Callable[[Path], Path]


class Case(NamedTuple):
    """One hostile model."""

    name: str
    make: Make
    expected: str  # a pattern of the error message, or OPENS
    slow: bool  # only under `make fuzz`


CASES: dict[str, Case] = {}


def hostile(expected: str, slow: bool = False) -> Callable[[Make], Make]:
    """Decorator: register the maker of a hostile model under its module and name."""

    def register(make: Make) -> Make:
        add(f"{make.__module__.rpartition('.')[2]}: {make.__name__.replace('_', ' ')}", make, expected, slow)
        return make

    return register


def register_all(room: str, table: Mapping[str, tuple[Make, str]]) -> None:
    """Register many small ones: what it is, how it is made, what must be said."""
    for name, (make, expected) in table.items():
        add(f"{room}: {name}", make, expected)


def add(name: str, make: Make, expected: str, slow: bool = False) -> None:
    assert name not in CASES, name
    CASES[name] = Case(name, make, expected, slow)


def written(path: Path, content: bytes | str) -> Path:
    """Write a file, and give its path."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def edit_settings(place: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Change the settings of a model's folder, and make its manifest fit again."""
    settings = json.loads((place / "config.json").read_text())
    change(settings)
    written(place / "config.json", json.dumps(settings))
    write_manifest(place)
    return place


def edit_tensors(place: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> Path:
    """Change the weights of a model's folder, and make its manifest fit again."""
    tensors = load_file(place / "model.safetensors")
    change(tensors)
    save_file(tensors, place / "model.safetensors")
    write_manifest(place)
    return place


def pipe(path: Path) -> Path:
    """A pipe in place of a file: who opens it waits for ever."""
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    return path


def sparse(path: Path, size: int) -> Path:
    """A file of any size that takes no room on the disk."""
    with path.open("ab") as file:
        file.truncate(size)
    return path
