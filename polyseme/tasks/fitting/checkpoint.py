"""Where a fit stands, as a folder without pickles: what a killed run goes on from.

    state.json            the epoch, the best score, and what the run is of
    weights.safetensors   the network
    best.safetensors      the network when it was best
    adam.safetensors      the optimizer's memory
    means.safetensors     the running mean of the weights

A run that was begun with other settings or other data is not gone on with.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from polyseme.errors import FormatError, OutputError
from polyseme.files import atomic_folder, read_json

_FILES = {"state.json", *(f"{name}.safetensors" for name in ("weights", "best", "adam", "means"))}


class WeightAverage:
    """The mean of the weights over the last steps, newer ones counting more.

    Args:
        network: Whose weights; only those that learn are followed.
        memory: How much of the mean is kept at a step; 0.99 is a mean over about a hundred steps. At first it is a
            plain mean of all steps so far.
    """

    def __init__(self, network: nn.Module, memory: float) -> None:
        self.memory = memory
        self.steps = 0
        self._weights = {name: weight for name, weight in network.named_parameters() if weight.requires_grad}
        self.means = {name: weight.detach().clone() for name, weight in self._weights.items()}

    @torch.no_grad()
    def follow(self) -> None:
        """Take the weights after a step in."""
        self.steps += 1
        share = max(1 - self.memory, 1 / self.steps)
        for name, weight in self._weights.items():
            self.means[name].lerp_(weight, share)

    def restore(self, means: Mapping[str, Tensor], steps: int) -> None:
        """Go on from where a run was."""
        self.steps = steps
        for name, mean in self.means.items():
            mean.copy_(means[name])

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Let the network have the means instead of its weights for a while."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for name, weight in self._weights.items():
            before = weight.detach().clone()
            weight.copy_(self.means[name])
            self.means[name].copy_(before)


@dataclass
class FitState:
    """Where a fit stands after an epoch."""

    epoch: int = 0
    best: float | None = None
    best_epoch: int = 0
    rate_factor: float = 1.0
    weights: dict[str, Tensor] | None = None  # of the best epoch


class FitCheckpoint:
    """A folder that holds the last finished epoch of one run.

    Args:
        folder: Where.
        about: What the run is of: settings, data, encoders. One that was begun with others is not gone on with.
    """

    def __init__(self, folder: str | Path, about: Mapping[str, Any]) -> None:
        self.folder = Path(folder)
        self.about = json.loads(json.dumps(about))

    def save(
        self, progress: FitState, network: nn.Module, optimizer: torch.optim.Optimizer, average: WeightAverage
    ) -> None:
        """Write all of it; the folder changes as a whole or not at all."""
        state = {name: value for name, value in vars(progress).items() if name != "weights"}
        state["steps"] = average.steps
        with atomic_folder(self.folder.resolve()) as folder:
            (folder / "state.json").write_text(json.dumps({"about": self.about, **state}, indent=2) + "\n", "utf-8")
            save_file(plain(network.state_dict()), folder / "weights.safetensors")
            save_file(plain(progress.weights or {}), folder / "best.safetensors")
            save_file(plain(_memory(optimizer)), folder / "adam.safetensors")
            save_file(plain(average.means), folder / "means.safetensors")

    def load(self, network: nn.Module, optimizer: torch.optim.Optimizer, average: WeightAverage) -> FitState | None:
        """Take up what is there; None where there is nothing."""
        if not self.folder.is_dir():
            return None
        try:
            state = read_json(self.folder / "state.json")
        except FormatError as error:
            raise FormatError(f"{self.folder} cannot be gone on with: {error}; remove it to begin anew") from error
        about = state.pop("about", None)
        if about != self.about:
            raise OutputError(
                f"{self.folder} was begun with other {_difference(about, self.about)}; go on with the same, "
                "or remove the folder to begin anew"
            )
        try:
            average.restore(load_file(self.folder / "means.safetensors"), state.pop("steps"))
            progress = FitState(**state, weights=load_file(self.folder / "best.safetensors") or None)
            network.load_state_dict(load_file(self.folder / "weights.safetensors"))
            _restore(optimizer, load_file(self.folder / "adam.safetensors"))
        except (SafetensorError, OSError, TypeError, KeyError, RuntimeError, ValueError) as error:
            raise FormatError(f"{self.folder} cannot be gone on with: {error}; remove it to begin anew") from error
        return progress

    def remove(self) -> None:
        """Take the folder away, if it is one of these."""
        if self.folder.is_dir() and {file.name for file in self.folder.iterdir()} <= _FILES:
            shutil.rmtree(self.folder)


def plain(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors as safetensors takes them: each by itself, on the CPU."""
    return {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in tensors.items()}


def _memory(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    states = optimizer.state_dict()["state"]
    return {f"{number}.{name}": value for number, memory in states.items() for name, value in memory.items()}


def _restore(optimizer: torch.optim.Optimizer, memory: Mapping[str, Tensor]) -> None:
    states: dict[int, dict[str, Tensor]] = {}
    for key, value in memory.items():
        number, _, name = key.partition(".")
        states.setdefault(int(number), {})[name] = value
    optimizer.load_state_dict({**optimizer.state_dict(), "state": states})


def _difference(there: object, here: Mapping[str, Any]) -> str:
    before = there if isinstance(there, Mapping) else {}
    names = [name for name in here if before.get(name) != here[name]]
    return " and ".join(names) or "settings"
