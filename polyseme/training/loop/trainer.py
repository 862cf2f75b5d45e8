"""The loop: windows in, weights that predict better out. It writes no file; whoever runs it does."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from polyseme.errors import FormatError, TrainingError
from polyseme.kernels.reference import LstmState
from polyseme.training.loop.checkpoint import TrainingCheckpoint, optimizer_tensors, restore_optimizer
from polyseme.training.loop.distributed import ProcessGroup
from polyseme.training.loop.initial import TrainableModel
from polyseme.training.loop.learner import Learner
from polyseme.training.loop.losses import make_loss
from polyseme.training.loop.prefetch import PrefetchedWindows
from polyseme.training.loop.windows import DIRECTIONS, Windows, mix_seeds
from polyseme.training.settings import LoopSettings, LossSettings
from polyseme.training.shards.store import Shards

CHECKED = 32  # steps between two looks at a GPU; to look is to wait for it


class StepTensors(NamedTuple):
    """What came of a step, where it was computed: whoever reads a number waits for it."""

    loss: Tensor
    norm: Tensor
    skipped: Tensor


@dataclass(frozen=True)
class StepReport:
    """A step."""

    step: int  # steps taken so far
    steps: int  # of the whole run
    epochs: float  # how often the text was read so far
    tokens: int  # predicted so far, in each direction
    rate: float  # of learning
    seconds: float  # of this step; on a GPU, until it was under way
    _found: StepTensors = field(repr=False)

    @property
    def loss(self) -> float:
        """Mean loss of a prediction in this step, in nats, as the loss of the settings measures it."""
        return float(self._found.loss)

    @property
    def norm(self) -> float:
        """Of the gradient, before it was clipped."""
        return float(self._found.norm)

    @property
    def skipped(self) -> int:
        """Steps that came to nothing so far."""
        return int(self._found.skipped)


class Trainer:
    """A model, a text, and where they stand."""

    def __init__(
        self,
        model: TrainableModel,
        shards: Shards,
        loss: LossSettings,
        loop: LoopSettings,
        device: torch.device,
        processes: ProcessGroup = ProcessGroup(),  # noqa: B008 - frozen
    ) -> None:
        self.model, self.loop, self.processes = model, loop, processes
        model.bilm.to(device).train()
        model.head.to(device).train()
        measure = make_loss(loss, model.head, model.counts)
        self._learner = Learner(model.bilm, model.head, measure, loop.dropout, loop.precision)
        self._optimizer = make_optimizer(loop, self._learner.parameters)
        windows = Windows(shards, model.words, model.vocabulary, loop, processes, device)
        self._windows = PrefetchedWindows(windows, device) if device.type == "cuda" else windows
        self._rows = processes.share(loop.rows)
        self._states = self._learner.initial_states(self._rows.stop - self._rows.start)
        self.steps = loop.steps or max(1, round(loop.epochs * self._windows.windows_per_epoch))
        self.step = 0
        self._skipped, self._in_a_row = (torch.zeros((), dtype=torch.int64, device=device) for _ in range(2))

    def take_step(self) -> StepReport:
        """Read a window and learn from it."""
        begun = time.perf_counter()
        loop = self.loop
        self._learner.loss.draw(random.Random(mix_seeds(loop.seed, self.step, 4)).random())
        window = self._windows.step(self.step)
        predictions = DIRECTIONS * loop.rows * loop.window
        seed = mix_seeds(loop.seed, self.step, 3, self.processes.rank)
        learned = self._learner.compute_gradients(window, self._states, predictions, seed)
        self._states = learned.states
        loss, rate = learned.loss, learning_rate(loop, self.step, self.steps)
        self.processes.sum([*self.gradients(), loss])
        norm = self._update(rate)
        self.step += 1
        tokens = self.step * loop.rows * loop.window
        seconds = time.perf_counter() - begun
        found = StepTensors(loss, norm, self._skipped)
        return StepReport(self.step, self.steps, self._windows.epochs, tokens, rate, seconds, found)

    @property
    def skipped(self) -> int:
        """Steps that came to nothing so far."""
        return int(self._skipped)

    def gradients(self) -> list[Tensor]:
        """Those of the last step, in the order of the weights."""
        return self._learner.gradients()

    def checkpoint(self) -> TrainingCheckpoint:
        """Everything that going on needs; all processes must ask at the same step."""
        position, places = self._windows.position()
        tensors = {f"bilm.{name}": tensor for name, tensor in self.model.bilm.state_dict().items()}
        tensors |= {f"head.{name}": tensor for name, tensor in self.model.head.state_dict().items()}
        tensors |= optimizer_tensors(self._optimizer)
        rows = {f"place.{name}": tensor for name, tensor in places.items()}
        for direction, state in enumerate(self._states):
            rows |= {f"state.{direction}.{name}": part for name, part in state._asdict().items()}
        tensors |= {name: self.processes.gather(tensor, dim=1) for name, tensor in rows.items()}
        counts = {"step": self.step, "skipped": int(self._skipped), "in_a_row": int(self._in_a_row)}
        facts = {**counts, "position": position}
        return TrainingCheckpoint(tensors, facts)

    def restore(self, checkpoint: TrainingCheckpoint) -> None:
        """Go on from there as if nothing had happened."""
        tensors, facts = checkpoint
        try:
            for name, module in (("bilm", self.model.bilm), ("head", self.model.head)):
                module.load_state_dict(_below(tensors, f"{name}."))
            restore_optimizer(self._optimizer, tensors)
            self._windows.restore(facts["position"], _below(tensors, "place."))
            device = self._states[0].hidden.device
            self._states = [
                LstmState(**{n: t[:, self._rows].to(device) for n, t in _below(tensors, f"state.{d}.").items()})
                for d in range(DIRECTIONS)
            ]
            self.step, skipped, in_a_row = (int(facts[name]) for name in ("step", "skipped", "in_a_row"))
            self._skipped, self._in_a_row = (torch.tensor(count, device=device) for count in (skipped, in_a_row))
        except (KeyError, TypeError, RuntimeError) as error:
            raise FormatError(f"the checkpoint does not fit this run: {' '.join(str(error).split())[:300]}") from error

    def _update(self, rate: float) -> Tensor:
        """Follow the gradient, unless there is none to follow; how long it was."""
        gradients = self.gradients()
        norm = torch.nn.utils.get_total_norm(gradients)
        lost = ~torch.isfinite(norm)
        clip = self.loop.clip / self.loop.loss_factor
        shrink = torch.nan_to_num(norm / clip, posinf=1.0).clamp(min=1.0) / self.loop.loss_factor
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        if isinstance(self._optimizer, torch.optim.Adam):  # which can be told on the device itself
            vars(self._optimizer).update(grad_scale=shrink, found_inf=lost.float())
            self._optimizer.step()
        elif not lost:
            for gradient in gradients:
                gradient.div_(shrink)
            self._optimizer.step()
        self._skipped, self._in_a_row = self._skipped + lost, (self._in_a_row + 1) * lost
        if not norm.is_cuda or self.step % CHECKED == 0:
            self._check()
        return norm

    def _check(self) -> None:
        if self._in_a_row >= self.loop.patience:
            raise TrainingError(
                f"{int(self._in_a_row)} steps in a row had no finite gradient (the last was step {self.step + 1}); "
                "lower training.learning_rate or training.clip"
            )


def learning_rate(settings: LoopSettings, step: int, steps: int) -> float:
    """The rate of a step (from 0) of a run of so many: up in a line, then down as the settings say."""
    warm_up = round(settings.warm_up * steps)
    if step < warm_up:
        return settings.learning_rate * (step + 1) / warm_up
    gone = (step - warm_up) / max(1, steps - warm_up)
    left = {"cosine": (1 + math.cos(math.pi * gone)) / 2, "linear": 1 - gone, "none": 1.0}[settings.decay]
    return settings.learning_rate * (settings.floor + (1 - settings.floor) * left)


def make_optimizer(settings: LoopSettings, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Adam, or Adagrad as bilm-tf had it."""
    if settings.optimizer == "adagrad":
        return torch.optim.Adagrad(parameters, lr=settings.learning_rate, initial_accumulator_value=1.0, eps=0.0)
    return torch.optim.Adam(parameters, lr=settings.learning_rate, betas=(0.9, 0.99), eps=1e-9, fused=True)


def _below(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
