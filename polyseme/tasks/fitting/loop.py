"""The one loop that fits every task: Adam, early stopping on the dev set, the best kept.

A task gives batches, a loss and a score; the loop gives reports, one a step. A step depends on the weights, the seed
and its number and on nothing else, so a run that was interrupted and goes on ends with the same bits as any other.
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
from polyseme.tasks.fitting.settings import check_range

_ARM = platform.machine().lower() in ("aarch64", "arm64")


@dataclass(frozen=True)
class FitSettings:
    """How a task is fitted.

    Attributes:
        epochs: At most so many; without a dev set, exactly so many.
        epoch_steps: Steps of an epoch at least. An epoch is one pass over the training set, and over a small one as
            many as that takes: it would be judged too often else, and given up too early.
        patience: Epochs without a better score on the dev set after which the loop ends.
        batch_size: Sentences a step.
        rate: Adam's learning rate.
        decay: The rates are multiplied by this after each ``decay_after`` epochs without a better score.
        decay_after: See there.
        weight_decay: Of Adam (decoupled), on the weights of the task.
        encoder_rate: The learning rate of encoders that learn.
        gradual: Let encoders learn from the top down, one layer more each epoch, from the second epoch on.
        average: How much of the running mean of the weights is kept at a step; the mean is what is judged and kept.
            With 0 the weights themselves are.
        clip: The longest that the gradient of all weights together may be.
        seed: Of everything that is drawn at random.
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
    """How good a model is on the dev set; more is better."""

    value: float
    name: str


class Task(Protocol):
    """What the loop fits."""

    @property
    def network(self) -> nn.Module:
        """All weights that are learned, and those saved with them."""
        ...

    def encoder_layers(self) -> Sequence[Sequence[nn.Parameter]]:
        """The weights of encoders that learn, by layer from the bottom up; empty for frozen ones."""
        ...

    def batches(self, rng: np.random.Generator) -> Sequence[Any]:
        """One pass over the training set, in random order; one batch at least."""
        ...

    def loss(self, batch: Any) -> Tensor:  # noqa: ANN401 - one of its own batches
        """What is to become small."""
        ...

    def score(self) -> DevScore | None:
        """How good the network is on the dev set; None where there is none."""
        ...


@dataclass(frozen=True)
class FitReport:
    """Where the loop stands.

    Attributes:
        epoch: From 1.
        step: Of the epoch's ``steps``, from 1.
        steps: Of the epoch.
        loss: The mean of this epoch so far.
        score: On the dev set, after the last step of an epoch.
        best: The best score so far.
        best_epoch: The epoch it was reached in.
        is_last: Whether this is the last of all reports.
    """

    epoch: int
    step: int
    steps: int
    loss: float
    score: DevScore | None = None
    best: float | None = None
    best_epoch: int = 0
    is_last: bool = False


def fit(task: Task, settings: FitSettings, checkpoint: FitCheckpoint | None = None) -> Iterator[FitReport]:
    """Fit a task, and report every step. At the end the network has the weights of the best epoch.

    With a checkpoint every epoch is saved there, and a run that was begun there goes on.
    """
    network, layers = task.network, task.encoder_layers()
    optimizer = make_optimizer(network, layers, settings)
    average = WeightAverage(network, settings.average)
    progress = (checkpoint.load(network, optimizer, average) if checkpoint else None) or FitState()
    while not _is_over(progress, settings):
        progress.epoch += 1
        _set_rates(optimizer, progress, settings)
        _unfreeze(layers, progress.epoch if settings.gradual else None)
        report = None
        for report in _epoch(task, optimizer, progress, settings):
            average.follow()
            if report.step < report.steps:
                yield report
        with average.in_place(), without_onednn_on_arm():
            score = task.score()
            _take(progress, score, network)
        if checkpoint:
            checkpoint.save(progress, network, optimizer, average)
        assert report is not None
        yield FitReport(
            *(report.epoch, report.step, report.steps, report.loss, score),
            *(progress.best, progress.best_epoch, _is_over(progress, settings)),
        )
    if progress.weights is not None:
        network.load_state_dict(progress.weights)


def make_optimizer(
    network: nn.Module, layers: Sequence[Sequence[nn.Parameter]], settings: FitSettings
) -> torch.optim.AdamW:
    """Adam with a group for the task's own weights, and one for those of encoders."""
    encoders = [weight for layer in layers for weight in layer]
    known = set(map(id, encoders))
    own = [weight for weight in network.parameters() if weight.requires_grad and id(weight) not in known]
    groups = [{"params": own, "lr": settings.rate, "weight_decay": settings.weight_decay}]
    if encoders:
        groups.append({"params": encoders, "lr": settings.encoder_rate, "weight_decay": 0.0})
    return torch.optim.AdamW(groups)


def length_batches(lengths: np.ndarray, size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Numbers of things of like length, in groups of a size and in random order."""
    order = np.argsort(lengths + rng.uniform(0, 3, len(lengths)), kind="stable")
    groups = [order[first : first + size] for first in range(0, len(order), size)]
    return [groups[number] for number in rng.permutation(len(groups))]


def _epoch(
    task: Task, optimizer: torch.optim.Optimizer, progress: FitState, settings: FitSettings
) -> Iterator[FitReport]:
    batches = _passes(task, np.random.default_rng([settings.seed, progress.epoch]), settings.epoch_steps)
    device = next(task.network.parameters()).device
    devices = [device.index or 0] if device.type == "cuda" else []
    total = 0.0
    for number, batch in enumerate(batches, start=1):
        rng = np.random.SeedSequence([settings.seed, progress.epoch, number])
        with torch.random.fork_rng(devices), without_onednn_on_arm():
            torch.manual_seed(int(rng.generate_state(1, np.uint64)[0] >> 1))
            total += _step(task, batch, optimizer, settings)
        if not math.isfinite(total):
            raise ConfigError(
                f"the loss is no number any more (epoch {progress.epoch}, step {number}); a lower rate than "
                f"{settings.rate:g} may help"
            )
        yield FitReport(progress.epoch, number, len(batches), total / number, None, progress.best, progress.best_epoch)


def _passes(task: Task, rng: np.random.Generator, least: int) -> list[Any]:
    """The batches of an epoch: a pass, or as many as give so many steps."""
    batches = list(task.batches(rng))
    return batches + [batch for _ in range(-(-least // len(batches)) - 1) for batch in task.batches(rng)]


def _step(task: Task, batch: Any, optimizer: torch.optim.Optimizer, settings: FitSettings) -> float:  # noqa: ANN401
    task.network.train()
    optimizer.zero_grad()
    loss = task.loss(batch)
    loss.backward()
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    nn.utils.clip_grad_norm_(weights, settings.clip)
    optimizer.step()
    return loss.item()


def _take(progress: FitState, score: DevScore | None, network: nn.Module) -> None:
    """Note an epoch's score, and keep the weights if they are the best; without a score the last are.

    A score of 0 is no standstill: some tasks find nothing at all in their first epochs.
    """
    if score is not None and progress.best is not None and 0 < progress.best >= score.value:
        return
    progress.best, progress.best_epoch = (None if score is None else score.value), progress.epoch
    progress.weights = {name: weight.detach().clone() for name, weight in network.state_dict().items()}


def _is_over(progress: FitState, settings: FitSettings) -> bool:
    return progress.epoch >= settings.epochs or progress.epoch - progress.best_epoch >= settings.patience


def _set_rates(optimizer: torch.optim.Optimizer, progress: FitState, settings: FitSettings) -> None:
    """Lower the rate when the score has stood still; it does not rise again."""
    idle = progress.epoch - 1 - progress.best_epoch
    if idle and idle % settings.decay_after == 0:
        progress.rate_factor *= settings.decay
    for group, rate in zip(optimizer.param_groups, (settings.rate, settings.encoder_rate), strict=False):
        group["lr"] = rate * progress.rate_factor


def _unfreeze(layers: Sequence[Sequence[nn.Parameter]], epoch: int | None) -> None:
    """Let the top layers learn, one more each epoch; all of them where no epoch is given."""
    for below_top, layer in enumerate(reversed(layers)):
        for weight in layer:
            weight.requires_grad_(epoch is None or below_top < epoch - 1)


@contextmanager
def without_onednn_on_arm() -> Iterator[None]:
    """On an ARM processor, keep oneDNN out: torch's LSTM and its gradient are 1.6 times as fast without it there."""
    before = torch.backends.mkldnn.enabled
    if _ARM:
        torch.backends.mkldnn.enabled = False
    try:
        yield
    finally:
        torch.backends.mkldnn.enabled = before
