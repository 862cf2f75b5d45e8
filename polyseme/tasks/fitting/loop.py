"""The training loop of every task: Adam, gradient clipping, early stopping on the dev set, the best epoch kept.

A task gives batches, a loss and a score; the loop yields a report after every step. A step depends only on the weights,
the seed and its number, so a run that was interrupted and resumed ends with the same bits as any other.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from polyseme.errors import ConfigError
from polyseme.tasks.fitting.checkpoint import FitCheckpoint, FitState, WeightAverage
from polyseme.tasks.parameters import check_range

_ARM = platform.machine().lower() in ("aarch64", "arm64")


@dataclass(frozen=True)
class FitSettings:
    """Training settings of a task: epochs, early stopping, learning rates, weight averaging.

    Attributes:
        epochs: Maximum number of epochs; without a dev set, the exact number.
        epoch_steps: Minimum number of steps in an epoch. An epoch is one pass over the training set, or several over a
            small one, which would otherwise be judged too often and stopped too early.
        patience: Early stopping: the loop ends after so many epochs without a better dev score.
        batch_size: Sentences a step.
        rate: Adam's learning rate.
        decay: The rates are multiplied by this after each ``decay_after`` epochs without a better score.
        decay_after: Epochs without a better score after which the rates decay.
        weight_decay: Decoupled weight decay (AdamW) on the weights of the task.
        encoder_rate: The learning rate of fine-tuned encoders.
        gradual: Gradual unfreezing of encoders from the top down, one layer more each epoch from the second on.
        average: Decay of the running (Polyak) average of the weights, which is what is evaluated and kept. With 0 the
            weights themselves are.
        clip: Gradient clipping: the largest norm of the gradient of all weights together.
        seed: Random seed of the fit.
    """

    epochs: int = 30
    epoch_steps: int = 100
    patience: int = 5
    batch_size: int = 32
    rate: float = 1e-3
    decay: float = 0.5
    decay_after: int = 2
    weight_decay: float = 0.0
    encoder_rate: float = 5e-5
    gradual: bool = False
    average: float = 0.99
    clip: float = 5.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "epoch_steps", "patience", "batch_size", "decay_after"):
            check_range(self, name, 1, math.inf)
        for name in ("rate", "encoder_rate", "weight_decay"):
            check_range(self, name, 0, 10)
        check_range(self, "average", 0, 1)
        check_range(self, "clip", 1e-6, math.inf)
        check_range(self, "decay", 0, 1.0001)
        check_range(self, "seed", 0, 1 << 63)


class DevScore(NamedTuple):
    """A score on the dev set, and its name; more is better."""

    value: float
    name: str


class Task(Protocol):
    """A training task as the loop sees it: batches, a loss, a dev score."""

    @property
    def network(self) -> nn.Module:
        """The network: all weights that are trained, and those saved with them."""
        ...

    def encoder_layers(self) -> Sequence[Sequence[nn.Parameter]]:
        """Weights of fine-tuned encoders, by layer from the bottom up; empty for frozen ones."""
        ...

    def batches(self, rng: np.random.Generator) -> Sequence[Any]:
        """One pass over the training set, in random order; at least one batch."""
        ...

    def loss(self, batch: Any) -> Tensor:  # noqa: ANN401 - one of its own batches
        """The training loss of a batch."""
        ...

    def score(self) -> DevScore | None:
        """The network's score on the dev set; None where there is no dev set."""
        ...


@dataclass(frozen=True)
class FitReport:
    """Progress of a fit after one training step.

    Attributes:
        epoch: Number of the epoch, from 1.
        step: Number of the step in the epoch, from 1.
        steps: Number of steps in the epoch.
        loss: Mean training loss of this epoch so far.
        score: The dev score, after the last step of an epoch.
        best: The best dev score so far.
        best_epoch: The epoch it was reached in.
        is_last: Whether this is the last report of the fit.
    """

    epoch: int
    step: int
    steps: int
    loss: float
    score: DevScore | None = None
    best: float | None = None
    best_epoch: int = 0
    is_last: bool = False

    def describe(self) -> str:
        """Loss and dev score as text: ``loss 0.214, dev F1 88.1 (best 88.4 in epoch 3)``."""
        score = f", dev {self.score.name} {100 * self.score.value:.1f}" if self.score else ""
        best = f" (best {100 * self.best:.1f} in epoch {self.best_epoch})" if self.best is not None else ""
        return f"loss {self.loss:.3f}{score}{best}"


def fit(task: Task, settings: FitSettings, checkpoint: FitCheckpoint | None = None) -> Iterator[FitReport]:
    """Train a task, yielding a report after every step. At the end the network has the weights of the best epoch.

    With a checkpoint every epoch is saved there, and an interrupted run resumes from it.
    """
    network, layers = task.network, task.encoder_layers()
    optimizer = make_optimizer(network, layers, settings)
    average = WeightAverage(network, settings.average)
    state = (checkpoint.load(network, optimizer, average) if checkpoint else None) or FitState()
    while not _is_over(state, settings):
        state.epoch += 1
        _set_rates(optimizer, state, settings)
        _unfreeze(layers, state.epoch if settings.gradual else None)
        report = None
        for report in _epoch(task, optimizer, state, settings):
            average.follow()
            if report.step < report.steps:
                yield report
        with average.in_place(), without_onednn_on_arm():
            score = task.score()
            _record(state, score, network)
        if checkpoint:
            checkpoint.save(state, network, optimizer, average)
        assert report is not None
        yield FitReport(
            *(report.epoch, report.step, report.steps, report.loss, score),
            *(state.best, state.best_epoch, _is_over(state, settings)),
        )
    if state.weights is not None:
        network.load_state_dict(state.weights)


def make_optimizer(
    network: nn.Module, layers: Sequence[Sequence[nn.Parameter]], settings: FitSettings
) -> torch.optim.AdamW:
    """AdamW with one parameter group for the task's own weights, and one for those of encoders."""
    encoders = [weight for layer in layers for weight in layer]
    known = set(map(id, encoders))
    own = [weight for weight in network.parameters() if weight.requires_grad and id(weight) not in known]
    groups = [{"params": own, "lr": settings.rate, "weight_decay": settings.weight_decay}]
    if encoders:
        groups.append({"params": encoders, "lr": settings.encoder_rate, "weight_decay": 0.0})
    return torch.optim.AdamW(groups)


def length_batches(lengths: np.ndarray, size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Batches of example numbers: examples of similar length together, the batches in random order."""
    order = np.argsort(lengths + rng.uniform(0, 3, len(lengths)), kind="stable")
    groups = [order[first : first + size] for first in range(0, len(order), size)]
    return [groups[number] for number in rng.permutation(len(groups))]


def _epoch(task: Task, optimizer: torch.optim.Optimizer, state: FitState, settings: FitSettings) -> Iterator[FitReport]:
    batches = _epoch_batches(task, np.random.default_rng([settings.seed, state.epoch]), settings.epoch_steps)
    device = next(task.network.parameters()).device
    devices = [device.index or 0] if device.type == "cuda" else []
    total = 0.0
    for number, batch in enumerate(batches, start=1):
        rng = np.random.SeedSequence([settings.seed, state.epoch, number])
        with torch.random.fork_rng(devices), without_onednn_on_arm():
            torch.manual_seed(int(rng.generate_state(1, np.uint64)[0] >> 1))
            total += _step(task, batch, optimizer, settings)
        if not math.isfinite(total):
            raise ConfigError(
                f"the loss became NaN or infinite (epoch {state.epoch}, step {number}); a learning rate "
                f"below {settings.rate:g} may help"
            )
        yield FitReport(state.epoch, number, len(batches), total / number, None, state.best, state.best_epoch)


def _epoch_batches(task: Task, rng: np.random.Generator, min_steps: int) -> list[Any]:
    """The batches of an epoch: one pass, or as many as reach the minimum number of steps."""
    batches = list(task.batches(rng))
    return batches + [batch for _ in range(-(-min_steps // len(batches)) - 1) for batch in task.batches(rng)]


def _step(task: Task, batch: Any, optimizer: torch.optim.Optimizer, settings: FitSettings) -> float:  # noqa: ANN401
    task.network.train()
    optimizer.zero_grad()
    loss = task.loss(batch)
    loss.backward()
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    nn.utils.clip_grad_norm_(weights, settings.clip)
    optimizer.step()
    return loss.item()


def _record(state: FitState, score: DevScore | None, network: nn.Module) -> None:
    """Record an epoch's score, and keep its weights if they are the best; without a dev set the last are kept.

    A score of 0 does not count as a plateau: some tasks find nothing at all in their first epochs.
    """
    if score is not None and state.best is not None and 0 < state.best >= score.value:
        return
    state.best, state.best_epoch = (None if score is None else score.value), state.epoch
    state.weights = {name: weight.detach().clone() for name, weight in network.state_dict().items()}


def _is_over(state: FitState, settings: FitSettings) -> bool:
    return state.epoch >= settings.epochs or state.epoch - state.best_epoch >= settings.patience


def _set_rates(optimizer: torch.optim.Optimizer, state: FitState, settings: FitSettings) -> None:
    """Decay the learning rates when the dev score is on a plateau; they never rise again."""
    idle = state.epoch - 1 - state.best_epoch
    if idle and idle % settings.decay_after == 0:
        state.rate_factor *= settings.decay
    for group, rate in zip(optimizer.param_groups, (settings.rate, settings.encoder_rate), strict=False):
        group["lr"] = rate * state.rate_factor


def _unfreeze(layers: Sequence[Sequence[nn.Parameter]], epoch: int | None) -> None:
    """Gradual unfreezing: train one more of the top layers each epoch; all of them without an epoch."""
    for below_top, layer in enumerate(reversed(layers)):
        for weight in layer:
            weight.requires_grad_(epoch is None or below_top < epoch - 1)


@contextmanager
def without_onednn_on_arm() -> Iterator[None]:
    """Turn oneDNN off on ARM processors, where torch's LSTM and its gradient are 1.6 times as fast without it."""
    before = torch.backends.mkldnn.enabled
    if _ARM:
        torch.backends.mkldnn.enabled = False
    try:
        yield
    finally:
        torch.backends.mkldnn.enabled = before
