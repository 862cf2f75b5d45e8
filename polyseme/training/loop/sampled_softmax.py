"""Sampled softmax: the training loss, and its negative samples by systematic sampling.

Every word has an inclusion probability π: the probability that a draw contains it. It is proportional to the word's
frequency (to a power) but at most 1, so the most frequent words are in every draw. A draw is systematic: it walks
through the cumulative probabilities in steps of 1 from a random offset. So it always has the same number of words, none
of them twice, and the π hold exactly: Σ exp(logit)/π over the drawn words is an unbiased estimate of the sum over all
words (the Horvitz-Thompson estimator).
"""

from __future__ import annotations

import torch
from torch import Tensor

from polyseme.errors import ConfigError
from polyseme.model.softmax import Softmax
from polyseme.training.loop.cross_entropy import cross_entropy

WHOLE = 1 << 40  # probability 1 in fixed point: with integers, rounding never draws a word twice or drops one


class Sampler:
    """Systematic sampler of ``samples`` distinct words from a vocabulary.

    Args:
        weights: Relative sampling weight of each word (V,), above zero.
        samples: Words per draw; the whole vocabulary if it is smaller.
    """

    def __init__(self, weights: Tensor, samples: int) -> None:
        if samples < 1:
            raise ConfigError(f"a sampled softmax needs 1 sample or more; got {samples}")
        self.samples = min(samples, len(weights))
        units = _to_fixed_point(_inclusion_probabilities(weights.double(), self.samples), self.samples)
        self.probabilities = units.double() / WHOLE
        self._ends = units.cumsum(0)
        self._log_probabilities = self.probabilities.log().float()

    def draw(self, offset: float) -> tuple[Tensor, Tensor]:
        """Draw words (n,), ascending, and the logs of their probabilities π (n,), from a random offset in [0, 1)."""
        marks = torch.arange(self.samples, device=self._ends.device) * WHOLE + int(offset * WHOLE)
        words = torch.searchsorted(self._ends, marks, right=True)
        return words, self._log_probabilities[words]

    def to(self, device: torch.device) -> Sampler:
        """Move the sampler to another device, in place."""
        for name in ("probabilities", "_ends", "_log_probabilities"):
            setattr(self, name, getattr(self, name).to(device))
        return self


def unigram(counts: Tensor, power: float = 0.75) -> Tensor:
    """Unigram sampling weights: frequency to a power; a word never seen counts as seen once."""
    return counts.double().clamp(min=1) ** power


def log_uniform(size: int) -> Tensor:
    """Log-uniform (Zipfian) weights by rank, for a vocabulary sorted by frequency; the same as TensorFlow's sampler."""
    ranks = torch.arange(size, dtype=torch.float64)
    return torch.log1p(1 / (ranks + 1))


def _inclusion_probabilities(weights: Tensor, samples: int) -> Tensor:
    """Inclusion probabilities min(1, c·weight), with c such that they sum to the number of samples."""
    sorted_weights = weights.sort(descending=True).values
    rest = sorted_weights.flip(0).cumsum(0).flip(0)  # weight of a word and all lighter ones
    room = samples - torch.arange(len(sorted_weights), dtype=torch.float64)  # if all heavier words are always drawn
    certain = int((sorted_weights * room >= rest).sum())
    if certain == len(sorted_weights):
        return torch.ones_like(weights)
    return (weights * (room[certain] / rest[certain])).clamp(max=1.0)


def _to_fixed_point(probabilities: Tensor, samples: int) -> Tensor:
    """Probabilities as integers that sum to ``samples * WHOLE``; one word with room takes the rounding error."""
    units = (probabilities * WHOLE).round().long().clamp(1, WHOLE)
    room = torch.minimum(units - 1, WHOLE - units)
    units[room.argmax()] += samples * WHOLE - units.sum()
    return units


class SampledLoss:
    """Sampled softmax: scores the target and a sample of words, each weighted by 1/π, its inclusion probability."""

    def __init__(self, softmax: Softmax, sampler: Sampler) -> None:
        self._softmax, self._sampler = softmax, sampler
        self.draw(0.5)

    def draw(self, offset: float) -> None:
        """Draw the sample that all predictions of a step share."""
        self._words, self._log_probabilities = self._sampler.to(self._softmax.weight.device).draw(offset)

    def __call__(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """An estimate of the cross-entropy: below the exact one on average, and closer to it with more samples."""
        return cross_entropy(hidden, self._softmax, targets, self._words, self._log_probabilities)
