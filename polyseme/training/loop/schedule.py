"""The learning rate over a run, and the optimiser that follows it."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import nn

from polyseme.training.settings import LoopSettings


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
