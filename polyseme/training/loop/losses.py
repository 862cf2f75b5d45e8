"""Training losses of next-word prediction: full softmax, sampled softmax, adaptive softmax.

All three are called the same way and return the sum over the predictions; the caller divides.

Shapes: N predictions, P dim, V words of the vocabulary.
"""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from polyseme.model.softmax import AdaptiveSoftmax, Softmax
from polyseme.training.loop.cross_entropy import cross_entropy
from polyseme.training.loop.sampled_softmax import SampledLoss, Sampler, log_uniform, unigram
from polyseme.training.settings import LossSettings


class Loss(Protocol):
    """Training loss of predictions, callable on hidden vectors and target words."""

    def draw(self, offset: float) -> None:
        """Draw the negative samples of this step; ``offset`` in [0, 1) is random and the same in every process."""
        ...

    def __call__(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Cross-entropy of vectors (N, P) against target words (N,) in nats, summed over the predictions."""
        ...


class FullLoss:
    """Full softmax cross-entropy: every word of the vocabulary is scored."""

    def __init__(self, softmax: Softmax) -> None:
        self._softmax = softmax

    def draw(self, offset: float) -> None:
        """Do nothing: a full softmax draws no samples."""

    def __call__(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """The exact cross-entropy over the whole vocabulary."""
        return cross_entropy(hidden, self._softmax, targets, None, None)


class AdaptiveLoss:
    """Adaptive softmax cross-entropy: frequent words are scored directly, rare ones through their cluster."""

    def __init__(self, softmax: AdaptiveSoftmax) -> None:
        self._softmax = softmax

    def draw(self, offset: float) -> None:
        """Do nothing: an adaptive softmax draws no samples."""

    def __call__(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """The exact cross-entropy under the adaptive softmax."""
        return -self._softmax.log_prob(hidden.float(), targets).sum()


def make_loss(settings: LossSettings, softmax: Softmax | AdaptiveSoftmax, counts: Tensor) -> Loss:
    """Build the loss that the settings ask for; counts (V,) are the word frequencies that sampling uses."""
    if isinstance(softmax, AdaptiveSoftmax):
        return AdaptiveLoss(softmax)
    if settings.kind == "full" or settings.samples >= len(counts):
        return FullLoss(softmax)
    weights = unigram(counts) if settings.weighting == "unigram" else log_uniform(len(counts))
    return SampledLoss(softmax, Sampler(weights, settings.samples))
