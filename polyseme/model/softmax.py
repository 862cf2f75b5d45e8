"""Softmax heads of a language model: from a direction's top layer to the probability of each word.

Two kinds behind one small interface: one full matrix, and the adaptive softmax of Grave et al. (2017), which gives rare
words fewer numbers. Both are exact: probabilities sum to one. The sampled softmax is a training loss:
`polyseme.training.loop.sampled_softmax`.

Shapes: N places in the text, P dim of one direction, V words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from polyseme.errors import ConfigError
from polyseme.model.config import MAX_DIM, MAX_ROWS

PIECE, GPU_PIECE = 1 << 22, 1 << 27  # scores (N, V) that are held at a time
SHRINKING = 4  # each cluster of rarer words has so many times fewer dimensions, as torch has it


@dataclass(frozen=True)
class SoftmaxConfig:
    """A head over so many words, by falling frequency, for vectors of so many dimensions.

    Attributes:
        num_words: V, the special words among them.
        dim: P.
        cutoffs: Where clusters of rarer words begin; none for one full matrix.
    """

    num_words: int
    dim: int
    cutoffs: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name, least, most in (("num_words", 3, MAX_ROWS), ("dim", 1, MAX_DIM)):
            if not least <= getattr(self, name) <= most:
                raise ConfigError(f"{name} of a softmax must be {least} to {most:,}; got {getattr(self, name)}")
        places = (0, *self.cutoffs, self.num_words)
        if any(later <= earlier for earlier, later in pairwise(places)):
            raise ConfigError(f"cutoffs must rise from 1 to below {self.num_words} words; got {self.cutoffs}")
        if self.dim < SHRINKING ** len(self.cutoffs):
            raise ConfigError(f"{self.dim} dimensions are too few for {len(self.cutoffs)} cutoffs: the last gets none")


class Softmax(nn.Module):
    """One matrix: the score of a word is ``hidden · weight[word] + bias[word]``."""

    def __init__(self, config: SoftmaxConfig) -> None:
        super().__init__()
        self.config = config
        self.weight = nn.Parameter(torch.empty(config.num_words, config.dim))
        self.bias = nn.Parameter(torch.empty(config.num_words))
        nn.init.normal_(self.weight, std=config.dim**-0.5)
        nn.init.zeros_(self.bias)

    def log_probs(self, hidden: Tensor) -> Tensor:
        """Log-probabilities (N, V) of all words after each of (N, P)."""
        return self._scores(hidden).log_softmax(dim=1)

    def log_prob(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Log-probability (N,) of the given word after each of (N, P); the matrix (N, V) is never held whole."""
        return _in_pieces(self._log_prob, hidden, targets, self.config.num_words)

    def _log_prob(self, hidden: Tensor, targets: Tensor) -> Tensor:
        scores = self._scores(hidden)
        return scores.gather(1, targets.unsqueeze(1)).squeeze(1) - scores.logsumexp(dim=1)

    def _scores(self, hidden: Tensor) -> Tensor:
        return F.linear(hidden, self.weight, self.bias).float()


class AdaptiveSoftmax(nn.Module):
    """Frequent words in one matrix, rarer ones in clusters with fewer dimensions: torch's, behind our interface."""

    def __init__(self, config: SoftmaxConfig) -> None:
        super().__init__()
        self.config = config
        self.clusters = nn.AdaptiveLogSoftmaxWithLoss(
            config.dim, config.num_words, list(config.cutoffs), div_value=SHRINKING
        )

    def log_probs(self, hidden: Tensor) -> Tensor:
        """Log-probabilities (N, V) of all words after each of (N, P)."""
        return self.clusters.log_prob(hidden)

    def log_prob(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Log-probability (N,) of the given word after each of (N, P); the matrix (N, V) is never held whole."""
        return _in_pieces(self._log_prob, hidden, targets, self.config.num_words)

    def _log_prob(self, hidden: Tensor, targets: Tensor) -> Tensor:
        return self.clusters(hidden, targets).output


Head = Softmax | AdaptiveSoftmax


def build_softmax(config: SoftmaxConfig) -> Head:
    """The module that the settings describe, with fresh weights."""
    return AdaptiveSoftmax(config) if config.cutoffs else Softmax(config)


def _in_pieces(work: Callable[[Tensor, Tensor], Tensor], hidden: Tensor, targets: Tensor, words: int) -> Tensor:
    """Work through rows in blocks; with gradients, scores are recomputed (checkpointing) rather than kept."""
    rows = max(1, (GPU_PIECE if hidden.is_cuda else PIECE) // words)
    if len(hidden) <= rows:
        return work(hidden, targets)
    keeping = torch.is_grad_enabled()
    pieces = [
        checkpoint(work, *piece, use_reentrant=False) if keeping else work(*piece)
        for piece in zip(hidden.split(rows), targets.split(rows), strict=True)
    ]
    return torch.cat(pieces)  # pyright: ignore[reportCallIssue, reportArgumentType]
