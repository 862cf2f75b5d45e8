"""A small tagger that is fitted in seconds: a linear classifier of a word and its two neighbours over mixed layers.

The layers are standardised and mixed by learned weights (a scalar mix); the mixed vectors of a word, of the word before
and of the word after are the features of a multinomial logistic regression. L-BFGS fits all weights together.

Shapes: L layers, N words of all sentences, D dim, K labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

PENALTY = 3e-4  # on the squared weights of the classifier, half of it
MIX_PENALTY = 0.01  # on the squared scores of the layers before the softmax, so that no layer is dropped for nothing
NEIGHBOURS = 3  # the word, the one before and the one after


@dataclass(frozen=True)
class WindowRows:
    """The vectors (L, N, D) of all words, and the rows of each word's neighbours (N,); -1 beyond a sentence's end."""

    layers: Tensor
    before: Tensor
    after: Tensor

    @classmethod
    def of(cls, layers: np.ndarray | Tensor, lengths: Sequence[int]) -> WindowRows:
        """Find the neighbours of words that stand sentence after sentence."""
        before, after = np.arange(-1, sum(lengths) - 1), np.arange(1, sum(lengths) + 1)
        ends = np.cumsum(lengths)[[length > 0 for length in lengths]]
        after[ends - 1] = -1
        before[np.concatenate([[0], ends[:-1]])] = -1
        return cls(torch.as_tensor(layers, dtype=torch.float32), torch.from_numpy(before), torch.from_numpy(after))


class WindowTagger(nn.Module):
    """Linear classifier of words by mixed vectors, their own and their neighbours': (L, N, D) to scores (N, K)."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, layers: Tensor, labels: int) -> None:
        super().__init__()
        self.register_buffer("mean", layers.mean(dim=1, keepdim=True))
        self.register_buffer("deviation", layers.std(dim=1, keepdim=True).clamp_min(1e-6))
        self.scores = nn.Parameter(torch.zeros(len(layers)))
        self.weight = nn.Parameter(torch.zeros(layers.shape[2], NEIGHBOURS * labels))
        self.bias = nn.Parameter(torch.zeros(labels))

    def forward(self, rows: WindowRows) -> Tensor:
        """The scores (N, K) of each word's labels."""
        mixed = torch.einsum("l,lnd->nd", self.scores.softmax(0), (rows.layers - self.mean) / self.deviation)
        own, before, after = (mixed @ self.weight).chunk(NEIGHBOURS, dim=1)
        return self.bias + own + _take(before, rows.before) + _take(after, rows.after)

    def loss(self, rows: WindowRows, classes: Tensor) -> Tensor:
        """Cross-entropy with L2 penalties on the classifier's weights and on the layers' scores."""
        penalty = 0.5 * PENALTY * self.weight.square().sum() + MIX_PENALTY * self.scores.square().sum()
        return functional.cross_entropy(self(rows), classes) + penalty


def fit_window_tagger(rows: WindowRows, classes: Tensor, labels: int, steps: int) -> WindowTagger:
    """Fit a tagger by L-BFGS; deterministic."""
    tagger = WindowTagger(rows.layers, labels)
    optimizer = torch.optim.LBFGS(tagger.parameters(), max_iter=steps, history_size=10, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = tagger.loss(rows, classes)
        loss.backward()
        return loss

    optimizer.step(closure)  # pyright: ignore[reportArgumentType]
    return tagger


def _take(scores: Tensor, places: Tensor) -> Tensor:
    """Rows of scores, zeros for a place of -1."""
    return torch.where((places < 0)[:, None], 0.0, scores[places])
