"""Triton kernel of softmax cross-entropy with its gradient, in place. Imported only where Triton is."""

# pyright: reportMissingImports=false, reportIndexIssue=false
# ruff: noqa: ANN001, ANN202, N803 - what Triton compiles is not quite Python
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 4096  # scores that a program looks at together


@triton.jit
def _cross_entropy(scores, gradient, offsets, columns, wanted, losses, missing, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    own = tl.load(columns + row)
    score_of_own = tl.load(wanted + row)
    scores += row * n
    gradient += row * n
    highest = score_of_own
    whole = 1.0
    for first in range(0, n, BLOCK):
        column = first + tl.arange(0, BLOCK)
        there = (column < n) & (column != own)
        score = tl.load(scores + column, there, float("-inf")).to(tl.float32) + tl.load(offsets + column, there, 0.0)
        higher = tl.maximum(highest, tl.max(score, 0))
        whole = whole * tl.exp(highest - higher) + tl.sum(tl.exp(score - higher), 0)
        highest = higher
    logarithm = highest + tl.log(whole)
    short_of_one = tl.exp(score_of_own - logarithm) - 1.0
    tl.store(losses + row, logarithm - score_of_own)
    tl.store(missing + row, short_of_one)
    for first in range(0, n, BLOCK):
        column = first + tl.arange(0, BLOCK)
        there = column < n
        score = tl.load(scores + column, there, float("-inf")).to(tl.float32) + tl.load(offsets + column, there, 0.0)
        probability = tl.where(column == own, short_of_one, tl.exp(score - logarithm))
        tl.store(gradient + column, probability.to(tl.bfloat16), there)


def cross_entropy_gradient(
    scores: Tensor, offsets: Tensor, columns: Tensor, wanted: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradient of the loss by the scores (N, n), the losses (N,), and p - 1 of each target (N,), negative.

    The gradient is the softmax probability of each word, and p - 1 in the target's own column. It lies in the memory
    of the scores.

    Args:
        scores: In float16 (N, n), of words that stand for all others; they are written over.
        offsets: To be added to each column (n,).
        columns: Where a row's target is among them (N,), or -1.
        wanted: The target's own score (N,), float32.
    """
    rows, words = scores.shape
    gradient = scores.view(torch.bfloat16)
    losses, missing = torch.empty_like(wanted), torch.empty_like(wanted)
    _cross_entropy[(rows,)](
        scores, gradient, offsets, columns, wanted, losses, missing, words, BLOCK=BLOCK, num_warps=8
    )
    return gradient, losses, missing
