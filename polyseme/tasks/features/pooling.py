"""Pooling of word vectors to sentence vectors, and soft alignment of two sentences.

Shapes: B sentences, T words of the longest, D dim.
"""

from __future__ import annotations

from torch import Tensor, nn

_NOWHERE = -1e30  # its exponential is exactly 0


class AttentionPool(nn.Module):
    """Attention pooling: weighted means (B, heads · D) of the words of each sentence, the weights learned."""

    def __init__(self, dim: int, hidden: int, heads: int = 1) -> None:
        super().__init__()
        self.scores = nn.Sequential(nn.Linear(dim, hidden), nn.Tanh(), nn.Linear(hidden, heads, bias=False))
        self.dim = heads * dim

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """The weighted means of all heads, concatenated."""
        return (self.weights(vectors, mask).transpose(1, 2) @ vectors).flatten(1)

    def weights(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """The attention weights (B, T, heads) of the words."""
        return self.scores(vectors).masked_fill(~mask.unsqueeze(2), _NOWHERE).softmax(dim=1)


def mean_pool(vectors: Tensor, mask: Tensor) -> Tensor:
    """The mean (B, D) of the words of each sentence."""
    present = mask.unsqueeze(2)
    return (vectors * present).sum(dim=1) / present.sum(dim=1)


def max_pool(vectors: Tensor, mask: Tensor) -> Tensor:
    """The maximum (B, D) over the words of each sentence, in each dimension."""
    return vectors.masked_fill(~mask.unsqueeze(2), _NOWHERE).max(dim=1).values


def align(one: Tensor, other: Tensor, masks: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Soft alignment: what each word attends to in the other sentence, both ways: (B, T, D) and (B, T', D)."""
    similarity = one @ other.transpose(1, 2) / one.shape[2] ** 0.5
    here, there = (~mask for mask in masks)
    to_other = similarity.masked_fill(there.unsqueeze(1), _NOWHERE).softmax(dim=2)
    to_one = similarity.masked_fill(here.unsqueeze(2), _NOWHERE).softmax(dim=1)
    return to_other @ other, to_one.transpose(1, 2) @ one
