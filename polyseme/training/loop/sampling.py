"""Which words the sampled softmax looks at, and how likely each of them was to be looked at.

Every word has a share π: the probability that a draw contains it. Shares are proportional to how often a word occurs
(to a power), but none exceeds 1, so the commonest words are in every draw. A draw walks through the vocabulary in steps
of one unit of probability from a random place: it always has the same number of words, a word comes at most once, and
the shares hold exactly. So Σ exp(score)/π over the drawn words is an unbiased estimate of the sum over all words.
"""

from __future__ import annotations

import torch
from torch import Tensor

from polyseme.errors import ConfigError

WHOLE = 1 << 40  # a probability of one, in units: with whole numbers nothing is drawn twice or left out by rounding


class Sampler:
    """Draws of ``samples`` words out of a vocabulary.

    Args:
        weights: How much each word counts (V,), above zero.
        samples: Words a draw; all of them when there are no more.
    """

    def __init__(self, weights: Tensor, samples: int) -> None:
        if samples < 1:
            raise ConfigError(f"a sampled softmax needs 1 sample or more; got {samples}")
        self.samples = min(samples, len(weights))
        units = _in_units(_shares(weights.double(), self.samples), self.samples)
        self.shares = units.double() / WHOLE
        self._ends = units.cumsum(0)
        self._log_shares = self.shares.log().float()

    def draw(self, place: float) -> tuple[Tensor, Tensor]:
        """The words of a draw (n,), ascending, and the logarithms of their shares (n,); ``place`` in [0, 1) decides."""
        marks = torch.arange(self.samples, device=self._ends.device) * WHOLE + int(place * WHOLE)
        words = torch.searchsorted(self._ends, marks, right=True)
        return words, self._log_shares[words]

    def to(self, device: torch.device) -> Sampler:
        """The same on another device."""
        for name in ("shares", "_ends", "_log_shares"):
            setattr(self, name, getattr(self, name).to(device))
        return self


def unigram(counts: Tensor, power: float = 0.75) -> Tensor:
    """Weights by frequency; a word that was never seen counts as one that was seen once."""
    return counts.double().clamp(min=1) ** power


def log_uniform(size: int) -> Tensor:
    """Weights by rank alone, for a vocabulary in falling order of frequency, as TensorFlow's sampler has them."""
    ranks = torch.arange(size, dtype=torch.float64)
    return torch.log1p(1 / (ranks + 1))


def _shares(weights: Tensor, samples: int) -> Tensor:
    """min(1, c·weight) with c such that they sum to the number of samples."""
    falling = weights.sort(descending=True).values
    rest = falling.flip(0).cumsum(0).flip(0)  # weight of a word and all lighter ones
    room = samples - torch.arange(len(falling), dtype=torch.float64)  # if all heavier words are always drawn
    certain = int((falling * room >= rest).sum())
    if certain == len(falling):
        return torch.ones_like(weights)
    return (weights * (room[certain] / rest[certain])).clamp(max=1.0)


def _in_units(shares: Tensor, samples: int) -> Tensor:
    """Shares as whole numbers that sum to the number of samples; what rounding leaves goes where there is room."""
    units = (shares * WHOLE).round().long().clamp(1, WHOLE)
    room = torch.minimum(units - 1, WHOLE - units)
    units[room.argmax()] += samples * WHOLE - units.sum()
    return units
