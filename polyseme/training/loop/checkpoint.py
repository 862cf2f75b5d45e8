"""Training checkpoints on disk: written atomically, as safetensors and JSON, without pickles."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import save_file
from torch import Tensor

from polyseme.errors import FormatError
from polyseme.files import atomic_folder, read_json
from polyseme.formats.tensor_file import check_finite, read_tensors

VERSION = 1


class TrainingCheckpoint(NamedTuple):
    """Checkpoint of a run: weights, optimizer and LSTM states by name, and counters as plain JSON."""

    tensors: Mapping[str, Tensor]
    facts: Mapping[str, Any]


def save_checkpoint(checkpoint: TrainingCheckpoint, folder: Path) -> None:
    """Write a checkpoint, replacing the folder atomically: a run that is killed meanwhile finds the old one."""
    with atomic_folder(folder) as place:
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in checkpoint.tensors.items()}
        save_file(tensors, place / "tensors.safetensors")
        facts = {"version": VERSION, **checkpoint.facts}
        (place / "facts.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def load_checkpoint(folder: Path) -> TrainingCheckpoint:
    """Load a checkpoint that `save_checkpoint` wrote."""
    facts = read_json(folder / "facts.json")
    if facts.get("version") != VERSION:
        raise FormatError(
            f"{folder} is a checkpoint of version {facts.get('version')!r}, and this polyseme reads {VERSION}; "
            "start over with --overwrite"
        )
    try:
        tensors = read_tensors(folder / "tensors.safetensors")
        for name, tensor in tensors.items():
            if name.startswith(("bilm.", "head.")):
                check_finite(tensor, name)
        return TrainingCheckpoint(tensors, facts)
    except FormatError as error:
        raise FormatError(f"{folder} cannot be read: {error}; start over with --overwrite") from error


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The state of an optimizer (moments, step counts) as named tensors."""
    state = optimizer.state_dict()["state"]
    return {f"optimizer.{number}.{key}": value for number, kept in state.items() for key, value in kept.items()}


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Restore the state of an optimizer from named tensors."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimizer."):
            _, number, key = name.split(".")
            state.setdefault(int(number), {})[key] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
