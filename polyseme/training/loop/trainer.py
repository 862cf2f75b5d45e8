"""The training loop: optimizer steps with gradient clipping and a learning rate schedule. It writes no files."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from polyseme.embedding.encoder import Encoder
from polyseme.errors import FormatError, TrainingError
from polyseme.kernels.reference import LstmState
from polyseme.training.loop.checkpoint import TrainingCheckpoint, optimizer_tensors, restore_optimizer
from polyseme.training.loop.distributed import ProcessGroup
from polyseme.training.loop.initial import TrainableModel
from polyseme.training.loop.learner import Learner
from polyseme.training.loop.losses import make_loss
from polyseme.training.loop.prefetch import PrefetchedWindows
from polyseme.training.loop.teacher import make_teacher
from polyseme.training.loop.windows import DIRECTIONS, Windows, mix_seeds
from polyseme.training.settings import LoopSettings, LossSettings, TeacherSettings
from polyseme.training.shards.store import Shards

CHECK_STEPS = 32  # steps between two checks for divergence on a GPU, since each waits for it


class StepTensors(NamedTuple):
    """Numbers of a step as tensors on their device: converting one waits for the GPU."""

    loss: Tensor
    norm: Tensor
    skipped: Tensor
    distance: Tensor | None


@dataclass(frozen=True)
class StepReport:
    """Progress report of one optimizer step."""

    step: int  # steps taken so far
    steps: int  # of the whole run
    epochs: float  # passes over the text so far
    tokens: int  # predicted so far, in each direction
    learning_rate: float
    seconds: float  # of this step; on a GPU, until it was queued
    _tensors: StepTensors = field(repr=False)

    @property
    def loss(self) -> float:
        """Mean training loss of a prediction in this step, in nats."""
        return float(self._tensors.loss)

    @property
    def gradient_norm(self) -> float:
        """Norm of the gradient before clipping."""
        return float(self._tensors.norm)

    @property
    def skipped(self) -> int:
        """Steps skipped so far because their gradient was not finite."""
        return int(self._tensors.skipped)

    @property
    def teacher_distance(self) -> float | None:
        """Mean cosine distance to the teacher's vectors in this step; None without a teacher."""
        return None if self._tensors.distance is None else float(self._tensors.distance)


class Trainer:
    """Trains a model on shards, one optimizer step at a time; its state can be checkpointed and restored.

    Args:
        model: The model to train.
        shards: The text.
        loss: Settings of the loss.
        loop: Settings of the loop.
        device: Device to train on.
        processes: The processes that train together.
        teacher: A model whose word vectors are learnt from too.
        lessons: Settings of that.
    """

    def __init__(
        self,
        model: TrainableModel,
        shards: Shards,
        loss: LossSettings,
        loop: LoopSettings,
        device: torch.device,
        processes: ProcessGroup = ProcessGroup(),  # noqa: B008 - frozen
        teacher: Encoder | None = None,
        lessons: TeacherSettings = TeacherSettings(),  # noqa: B008 - frozen
    ) -> None:
        self.model, self.loop, self.processes = model, loop, processes
        model.bilm.to(device).train()
        model.head.to(device).train()
        objective = make_loss(loss, model.head, model.counts)
        reader, distance = None, None
        if teacher:
            reader, distance = make_teacher(teacher, lessons, model.bilm.config.lstm, device, processes.count)
        self._learner = Learner(model.bilm, model.head, objective, loop.dropout, loop.precision, distance)
        self._optimizer = make_optimizer(loop, self._learner.parameters)
        windows = Windows(shards, model.words, model.vocabulary, loop, processes, device, reader, lessons.rows)
        self._windows = PrefetchedWindows(windows, device) if device.type == "cuda" else windows
        self._rows = processes.own_rows(loop.rows)
        self._states = self._learner.initial_states(self._rows.stop - self._rows.start)
        self.steps = loop.steps or max(1, round(loop.epochs * self._windows.windows_per_epoch))
        self.step = 0
        self._skipped, self._in_a_row = (torch.zeros((), dtype=torch.int64, device=device) for _ in range(2))

    def take_step(self) -> StepReport:
        """One optimizer step: forward, backward, gradient clipping, update."""
        started = time.perf_counter()
        loop = self.loop
        self._learner.loss.draw(random.Random(mix_seeds(loop.seed, self.step, 4)).random())
        window = self._windows.next_window(self.step)
        predictions = DIRECTIONS * loop.rows * loop.window
        seed = mix_seeds(loop.seed, self.step, 3, self.processes.rank)
        result = self._learner.compute_gradients(window, self._states, predictions, seed)
        self._states = result.states
        loss, rate = result.loss, learning_rate(loop, self.step, self.steps)
        distance = None if result.distance is None else result.distance / self.processes.count
        self.processes.sum([*self.gradients(), loss, *([] if distance is None else [distance])])
        norm = self._update(rate)
        self.step += 1
        tokens = self.step * loop.rows * loop.window
        seconds = time.perf_counter() - started
        tensors = StepTensors(loss, norm, self._skipped, distance)
        return StepReport(self.step, self.steps, self._windows.epochs, tokens, rate, seconds, tensors)

    @property
    def skipped(self) -> int:
        """Steps skipped so far because their gradient was not finite."""
        return int(self._skipped)

    def gradients(self) -> list[Tensor]:
        """Gradients of the last step, in the order of the weights."""
        return self._learner.gradients()

    def checkpoint(self) -> TrainingCheckpoint:
        """A checkpoint of everything that resuming needs; all processes must call this at the same step."""
        position, places = self._windows.position()
        tensors = {f"bilm.{name}": tensor for name, tensor in self.model.bilm.state_dict().items()}
        tensors |= {f"head.{name}": tensor for name, tensor in self.model.head.state_dict().items()}
        if self._learner.teacher:
            tensors |= {f"teacher.{name}": tensor for name, tensor in self._learner.teacher.state_dict().items()}
        tensors |= optimizer_tensors(self._optimizer)
        rows = {f"place.{name}": tensor for name, tensor in places.items()}
        for direction, state in enumerate(self._states):
            rows |= {f"state.{direction}.{name}": part for name, part in state._asdict().items()}
        tensors |= {name: self.processes.gather(tensor, dim=1) for name, tensor in rows.items()}
        counts = {"step": self.step, "skipped": int(self._skipped), "in_a_row": int(self._in_a_row)}
        facts = {**counts, "position": position}
        return TrainingCheckpoint(tensors, facts)

    def restore(self, checkpoint: TrainingCheckpoint) -> None:
        """Resume from a checkpoint, exactly as if the run had not stopped."""
        tensors, facts = checkpoint
        try:
            parts = {"bilm": self.model.bilm, "head": self.model.head, "teacher": self._learner.teacher}
            for name, module in parts.items():
                if module is None:
                    continue
                module.load_state_dict(_with_prefix(tensors, f"{name}."))
            restore_optimizer(self._optimizer, tensors)
            self._windows.restore(facts["position"], _with_prefix(tensors, "place."))
            device = self._states[0].hidden.device
            self._states = [
                LstmState(**{n: t[:, self._rows].to(device) for n, t in _with_prefix(tensors, f"state.{d}.").items()})
                for d in range(DIRECTIONS)
            ]
            self.step, skipped, in_a_row = (int(facts[name]) for name in ("step", "skipped", "in_a_row"))
            self._skipped, self._in_a_row = (torch.tensor(count, device=device) for count in (skipped, in_a_row))
        except (KeyError, TypeError, RuntimeError) as error:
            reason = " ".join(str(error).split())[:300]
            raise FormatError(f"the checkpoint does not fit this run: {reason}; start over with --overwrite") from error

    def _update(self, rate: float) -> Tensor:
        """Clip the gradient and update the weights; skip the step if it is not finite. Returns the gradient norm."""
        gradients = self.gradients()
        norm = torch.nn.utils.get_total_norm(gradients)
        overflow = ~torch.isfinite(norm)
        clip = self.loop.clip / self.loop.loss_factor
        divisor = torch.nan_to_num(norm / clip, posinf=1.0).clamp(min=1.0) / self.loop.loss_factor
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        if isinstance(self._optimizer, torch.optim.Adam):  # fused: it scales and skips without waiting for the device
            vars(self._optimizer).update(grad_scale=divisor, found_inf=overflow.float())
            self._optimizer.step()
        elif not overflow:
            for gradient in gradients:
                gradient.div_(divisor)
            self._optimizer.step()
        self._skipped, self._in_a_row = self._skipped + overflow, (self._in_a_row + 1) * overflow
        if not norm.is_cuda or self.step % CHECK_STEPS == 0:
            self._check_divergence()
        return norm

    def _check_divergence(self) -> None:
        if self._in_a_row >= self.loop.patience:
            raise TrainingError(
                f"{int(self._in_a_row)} steps in a row had no finite gradient (the last was step {self.step + 1}); "
                "lower training.learning_rate or training.clip"
            )


def learning_rate(settings: LoopSettings, step: int, steps: int) -> float:
    """Learning rate schedule: linear warm-up, then cosine or linear decay to a floor, or constant."""
    warm_up = round(settings.warm_up * steps)
    if step < warm_up:
        return settings.learning_rate * (step + 1) / warm_up
    progress = (step - warm_up) / max(1, steps - warm_up)
    decay = {"cosine": (1 + math.cos(math.pi * progress)) / 2, "linear": 1 - progress, "none": 1.0}[settings.decay]
    return settings.learning_rate * (settings.floor + (1 - settings.floor) * decay)


def make_optimizer(settings: LoopSettings, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """The optimizer: Adam, or Adagrad with the constants of bilm-tf."""
    if settings.optimizer == "adagrad":
        return torch.optim.Adagrad(parameters, lr=settings.learning_rate, initial_accumulator_value=1.0, eps=0.0)
    return torch.optim.Adam(parameters, lr=settings.learning_rate, betas=(0.9, 0.99), eps=1e-9, fused=True)


def _with_prefix(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
