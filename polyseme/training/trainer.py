"""The loop: windows in, weights that predict better out. It writes no file; whoever runs it does."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from polyseme.errors import FormatError, TrainingError
from polyseme.kernels.reference import LstmState
from polyseme.training.checkpoint import Checkpoint, optimizer_tensors, restore_optimizer
from polyseme.training.distributed import Processes
from polyseme.training.learner import Learner
from polyseme.training.losses import make_loss
from polyseme.training.schedule import learning_rate, make_optimizer
from polyseme.training.settings import LoopSettings, LossSettings
from polyseme.training.shards import Shards
from polyseme.training.student import Student
from polyseme.training.windows import DIRECTIONS, Windows, mixed


@dataclass(frozen=True)
class Report:
    """A step."""

    step: int  # steps taken so far
    steps: int  # of the whole run
    epochs: float  # how often the text was read so far
    tokens: int  # predicted so far, in each direction
    rate: float  # of learning
    norm: float  # of the gradient, before it was clipped
    skipped: int  # steps that came to nothing so far
    seconds: float  # of this step
    _loss: Tensor = field(repr=False)

    @property
    def loss(self) -> float:
        """Mean loss of a prediction in this step, in nats, as the loss of the settings measures it."""
        return float(self._loss)


class Trainer:
    """A student, a text, and where they stand."""

    def __init__(
        self,
        student: Student,
        shards: Shards,
        loss: LossSettings,
        loop: LoopSettings,
        device: torch.device,
        processes: Processes = Processes(),  # noqa: B008 - frozen
    ) -> None:
        self.student, self.loop, self.processes = student, loop, processes
        student.bilm.to(device).train()
        student.head.to(device).train()
        measure = make_loss(loss, student.head, student.counts)
        self._learner = Learner(student.bilm, student.head, measure, loop.dropout, loop.precision)
        self._optimizer = make_optimizer(loop, self._learner.parameters)
        self._windows = Windows(shards, student.words, student.vocabulary, loop, processes, device)
        self._rows = processes.share(loop.rows)
        self._states = self._learner.initial_states(self._rows.stop - self._rows.start)
        self.steps = loop.steps or max(1, round(loop.epochs * self._windows.windows_per_epoch))
        self.step = self.skipped = self._in_a_row = 0

    def take_step(self) -> Report:
        """Read a window and learn from it."""
        begun = time.perf_counter()
        loop = self.loop
        generator = torch.Generator().manual_seed(mixed(loop.seed, self.step, 2))
        self._learner.loss.draw(float(torch.rand((), generator=generator, dtype=torch.float64)))
        window = self._windows.step(generator)
        predictions = DIRECTIONS * loop.rows * loop.window
        seed = mixed(loop.seed, self.step, 3, self.processes.rank)
        learned = self._learner.learn(window, self._states, predictions, seed)
        self._states = learned.states
        loss, rate = learned.loss, learning_rate(loop, self.step, self.steps)
        self.processes.sum([*self.gradients(), loss])
        norm = self._update(rate)
        self.step += 1
        tokens = self.step * loop.rows * loop.window
        seconds = time.perf_counter() - begun
        return Report(self.step, self.steps, self._windows.epochs, tokens, rate, norm, self.skipped, seconds, loss)

    def gradients(self) -> list[Tensor]:
        """Those of the last step, in the order of the weights."""
        return self._learner.gradients()

    def checkpoint(self) -> Checkpoint:
        """Everything that going on needs; all processes must ask at the same step."""
        position, places = self._windows.position()
        tensors = {f"bilm.{name}": tensor for name, tensor in self.student.bilm.state_dict().items()}
        tensors |= {f"head.{name}": tensor for name, tensor in self.student.head.state_dict().items()}
        tensors |= optimizer_tensors(self._optimizer)
        rows = {f"place.{name}": tensor for name, tensor in places.items()}
        for direction, state in enumerate(self._states):
            rows |= {f"state.{direction}.{name}": part for name, part in state._asdict().items()}
        tensors |= {name: self.processes.gather(tensor, dim=1) for name, tensor in rows.items()}
        facts = {"step": self.step, "skipped": self.skipped, "in_a_row": self._in_a_row, "position": position}
        return Checkpoint(tensors, facts)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from there as if nothing had happened."""
        tensors, facts = checkpoint
        try:
            for name, module in (("bilm", self.student.bilm), ("head", self.student.head)):
                module.load_state_dict(_below(tensors, f"{name}."))
            restore_optimizer(self._optimizer, tensors)
            self._windows.restore(facts["position"], _below(tensors, "place."))
            device = self._states[0].hidden.device
            self._states = [
                LstmState(**{n: t[:, self._rows].to(device) for n, t in _below(tensors, f"state.{d}.").items()})
                for d in range(DIRECTIONS)
            ]
            self.step, self.skipped, self._in_a_row = (int(facts[n]) for n in ("step", "skipped", "in_a_row"))
        except (KeyError, TypeError, RuntimeError) as error:
            raise FormatError(f"the checkpoint does not fit this run: {' '.join(str(error).split())[:300]}") from error

    def _update(self, rate: float) -> float:
        """Follow the gradient, unless there is none to follow."""
        parameters = self._learner.parameters
        clip = self.loop.clip / self.loop.loss_factor
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, clip))
        if norm == norm and norm != float("inf"):
            self._in_a_row = 0
            if self.loop.loss_factor != 1:
                for gradient in self.gradients():
                    gradient.mul_(self.loop.loss_factor)
            for group in self._optimizer.param_groups:
                group["lr"] = rate
            self._optimizer.step()
            return norm
        self.skipped, self._in_a_row = self.skipped + 1, self._in_a_row + 1
        if self._in_a_row >= self.loop.patience:
            raise TrainingError(
                f"{self._in_a_row} steps in a row had no finite gradient (the last was step {self.step + 1}); "
                "lower training.learning_rate or training.clip"
            )
        return norm


def _below(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
