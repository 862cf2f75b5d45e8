"""Checkpoints of a fit, folders without pickles from which an interrupted fit resumes; Polyak averaging.

    state.json            the epoch, the best score, and what identifies the run
    weights.safetensors   the network
    best.safetensors      the network when it was best
    adam.safetensors      Adam's moments
    means.safetensors     the running (Polyak) average of the weights

A run that was started with other settings or other data is not resumed.
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
from safetensors.torch import save_file
from torch import Tensor, nn

from polyseme.errors import FormatError, OutputError
from polyseme.files import atomic_folder, read_json
from polyseme.formats.tensor_file import check_finite, read_tensors

_FILES = {"state.json", *(f"{name}.safetensors" for name in ("weights", "best", "adam", "means"))}


class WeightAverage:
    """Running (Polyak) average of the weights: smoother than the weights themselves, and usually better.

    Args:
        network: The network whose trainable weights are averaged.
        memory: How much of the average is kept at a step; 0.99 averages over about a hundred steps. At first it is a
            plain mean of all steps so far.
    """

    def __init__(self, network: nn.Module, memory: float) -> None:
        self.memory = memory
        self.steps = 0
        self._weights = {name: weight for name, weight in network.named_parameters() if weight.requires_grad}
        self.means = {name: weight.detach().clone() for name, weight in self._weights.items()}

    @torch.no_grad()
    def follow(self) -> None:
        """Update the running average after an optimizer step."""
        self.steps += 1
        share = max(1 - self.memory, 1 / self.steps)
        for name, weight in self._weights.items():
            self.means[name].lerp_(weight, share)

    def restore(self, means: Mapping[str, Tensor], steps: int) -> None:
        """Restore the running average of a checkpoint."""
        self.steps = steps
        for name, mean in self.means.items():
            mean.copy_(means[name])

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Swap the averaged weights into the network for a while."""
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
    """The state of a fit after an epoch: scores, learning rate, best weights."""

    epoch: int = 0
    best: float | None = None
    best_epoch: int = 0
    rate_factor: float = 1.0
    weights: dict[str, Tensor] | None = None  # of the best epoch


class FitCheckpoint:
    """Checkpoint folder that holds the last finished epoch of one run.

    Args:
        folder: The checkpoint folder.
        about: What identifies the run: settings, data, encoders. A run that was started with others is not resumed.
    """

    def __init__(self, folder: str | Path, about: Mapping[str, Any]) -> None:
        self.folder = Path(folder)
        self.about = json.loads(json.dumps(about))

    def save(
        self, state: FitState, network: nn.Module, optimizer: torch.optim.Optimizer, average: WeightAverage
    ) -> None:
        """Write the checkpoint atomically: the folder changes as a whole or not at all."""
        facts = {name: value for name, value in vars(state).items() if name != "weights"}
        facts["steps"] = average.steps
        with atomic_folder(self.folder.resolve()) as folder:
            (folder / "state.json").write_text(json.dumps({"about": self.about, **facts}, indent=2) + "\n", "utf-8")
            save_file(cpu_copies(network.state_dict()), folder / "weights.safetensors")
            save_file(cpu_copies(state.weights or {}), folder / "best.safetensors")
            save_file(cpu_copies(_moments(optimizer)), folder / "adam.safetensors")
            save_file(cpu_copies(average.means), folder / "means.safetensors")

    def load(self, network: nn.Module, optimizer: torch.optim.Optimizer, average: WeightAverage) -> FitState | None:
        """Resume from the checkpoint; None where there is none."""
        if not self.folder.is_dir():
            return None
        try:
            facts = read_json(self.folder / "state.json")
        except FormatError as error:
            raise FormatError(f"{self.folder} cannot be resumed: {error}; remove it to start over") from error
        about = facts.pop("about", None)
        if about != self.about:
            raise OutputError(
                f"{self.folder} was started with other {_difference(about, self.about)}; resume with the same, "
                "or remove the folder to start over"
            )
        try:
            average.restore(self._read("means"), facts.pop("steps"))
            state = FitState(**facts, weights=self._read("best") or None)
            network.load_state_dict(self._read("weights"))
            _restore_moments(optimizer, self._read("adam"))
        except (OSError, TypeError, KeyError, RuntimeError, ValueError) as error:
            raise FormatError(f"{self.folder} cannot be resumed: {error}; remove it to start over") from error
        return state

    @property
    def best(self) -> tuple[float | None, int]:
        """The best dev score of the run so far, and the epoch that reached it."""
        facts = read_json(self.folder / "state.json")
        return facts["best"], facts["best_epoch"]

    def _read(self, name: str) -> dict[str, Tensor]:
        file = self.folder / f"{name}.safetensors"
        tensors = read_tensors(file)
        for inside, tensor in tensors.items():
            check_finite(tensor, f"{file}: {inside!r:.100}")
        return tensors

    def remove(self) -> None:
        """Delete the checkpoint folder, if it is one."""
        if self.folder.is_dir() and {file.name for file in self.folder.iterdir()} <= _FILES:
            shutil.rmtree(self.folder)


def cpu_copies(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Contiguous CPU copies of tensors, as safetensors needs them."""
    return {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in tensors.items()}


def _moments(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    states = optimizer.state_dict()["state"]
    return {f"{number}.{name}": value for number, memory in states.items() for name, value in memory.items()}


def _restore_moments(optimizer: torch.optim.Optimizer, memory: Mapping[str, Tensor]) -> None:
    states: dict[int, dict[str, Tensor]] = {}
    for key, value in memory.items():
        number, _, name = key.partition(".")
        states.setdefault(int(number), {})[name] = value
    optimizer.load_state_dict({**optimizer.state_dict(), "state": states})


def _difference(there: object, here: Mapping[str, Any]) -> str:
    before = there if isinstance(there, Mapping) else {}
    names = [name for name in here if before.get(name) != here[name]]
    return " and ".join(names) or "settings"
