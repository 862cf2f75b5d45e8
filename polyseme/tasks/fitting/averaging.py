"""A running mean of a network's weights: it jumps about less than the weights themselves, and is usually better."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class Average:
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
