"""A linear-chain conditional random field (CRF) over the labels of a sentence.

Shapes: B sentences, T words of the longest, K labels. Every sentence has at least one word, and its words come first
in its row of the mask.
"""

from __future__ import annotations

from itertools import islice

import torch
from torch import Tensor, nn

from polyseme.tasks.tagging.schemes import Constraints

MOST_AT_ONCE = 1 << 28  # numbers that a GPU may hold for one sum
FORBIDDEN = -1e30  # its exponential is exactly 0, and unlike infinity it leaves gradients numbers


class Crf(nn.Module):
    """Conditional random field: learned transition scores; what the constraints forbid is never predicted."""

    forbidden_start: Tensor
    forbidden_between: Tensor
    forbidden_end: Tensor

    def __init__(self, constraints: Constraints) -> None:
        super().__init__()
        count = len(constraints.start)
        self.start = nn.Parameter(torch.zeros(count))
        self.between = nn.Parameter(torch.zeros(count, count))  # from, to
        self.end = nn.Parameter(torch.zeros(count))
        for name, allowed in constraints._asdict().items():
            self.register_buffer(f"forbidden_{name}", torch.from_numpy(~allowed), persistent=False)

    def loss(self, emissions: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
        """The negative log-probability (B,) of labels (B, T), given each word's scores (B, T, K)."""
        return self.log_partition(emissions, mask) - self.score(emissions, labels, mask)

    def score(self, emissions: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
        """The unnormalised score (B,) of labels (B, T); those beyond a sentence's end may be any that exist."""
        start, between, end = self._scores()
        words = emissions.gather(2, labels.unsqueeze(2)).squeeze(2)
        pairs = between[labels[:, :-1], labels[:, 1:]]
        last = labels.gather(1, mask.sum(dim=1, keepdim=True) - 1).squeeze(1)
        return start[labels[:, 0]] + (words * mask).sum(dim=1) + (pairs * mask[:, 1:]).sum(dim=1) + end[last]

    def log_partition(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """The log partition function (B,), over all allowed sequences (forward algorithm)."""
        start, between, end = self._scores()
        _, steps, count = emissions.shape
        first = start + emissions[:, 0]
        if steps == 1 or not emissions.is_cuda or emissions.numel() * count * count > MOST_AT_ONCE:
            return torch.logsumexp(_forward_by_word(first, between, emissions, mask) + end, dim=1)
        return torch.logsumexp(first.unsqueeze(2) + _forward_by_halving(between, emissions, mask) + end, dim=(1, 2))

    def marginals(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """The marginal probability (B, T, K) of each label of each word, over all allowed sequences."""
        with torch.enable_grad():
            scores = emissions.detach().requires_grad_()
            (probabilities,) = torch.autograd.grad(self.log_partition(scores, mask).sum(), scores)
        return probabilities

    @torch.no_grad()
    def decode(self, emissions: Tensor, mask: Tensor) -> list[list[int]]:
        """The best allowed label sequence of each sentence (Viterbi)."""
        start, between, end = self._scores()
        best, came_from = start + emissions[:, 0], []
        nothing = torch.arange(len(start), device=emissions.device).expand_as(best)
        for step in range(1, emissions.shape[1]):
            further, origin = (best.unsqueeze(2) + between).max(dim=1)
            present = mask[:, step, None]
            best = torch.where(present, further + emissions[:, step], best)
            came_from.append(torch.where(present, origin, nothing))
        path = [(best + end).argmax(dim=1)]
        for origin in reversed(came_from):
            path.append(origin.gather(1, path[-1].unsqueeze(1)).squeeze(1))
        rows = torch.stack(path[::-1], dim=1).tolist()
        return [row[:length] for row, length in zip(rows, mask.sum(dim=1).tolist(), strict=True)]

    def _scores(self) -> tuple[Tensor, Tensor, Tensor]:
        return (
            self.start.masked_fill(self.forbidden_start, FORBIDDEN),
            self.between.masked_fill(self.forbidden_between, FORBIDDEN),
            self.end.masked_fill(self.forbidden_end, FORBIDDEN),
        )


def _forward_by_word(total: Tensor, between: Tensor, emissions: Tensor, mask: Tensor) -> Tensor:
    """Forward algorithm word by word: log sums (B, K) of all paths to each label of the last words."""
    steps = zip(emissions.unbind(1), mask.unsqueeze(2).unbind(1), strict=True)  # a slice a word would be quadratic
    for scores, present in islice(steps, 1, None):
        further = torch.logsumexp(total.unsqueeze(2) + between, dim=1) + scores
        total = torch.where(present, further, total)
    return total


def _forward_by_halving(between: Tensor, emissions: Tensor, mask: Tensor) -> Tensor:
    """Forward algorithm by halving: log sums (B, K, K) of all paths from each first label to each last.

    Neighbours are joined, then pairs of neighbours, and so on: more work in fewer steps, which is faster on a GPU.
    """
    idle = torch.full_like(between, FORBIDDEN).fill_diagonal_(0.0)  # beyond the end a label stays what it is
    paths = torch.where(mask[:, 1:, None, None], between + emissions[:, 1:, None, :], idle)
    while paths.shape[1] > 1:
        if paths.shape[1] % 2:
            paths = torch.cat([paths, idle.expand(len(paths), 1, -1, -1)], dim=1)
        paths = torch.logsumexp(paths[:, ::2].unsqueeze(4) + paths[:, 1::2].unsqueeze(2), dim=3)
    return paths[:, 0]
