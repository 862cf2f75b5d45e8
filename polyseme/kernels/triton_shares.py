"""Scores to shares of the probability as one kernel. Imported only where Triton is."""

# pyright: reportMissingImports=false, reportIndexIssue=false
# ruff: noqa: ANN001, ANN202, N803 - what Triton compiles is not quite Python
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 4096  # scores that a program looks at together


@triton.jit
def _share(scores, shares, offsets, columns, wanted, losses, missing, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    own = tl.load(columns + row)
    score_of_own = tl.load(wanted + row)
    scores += row * n
    shares += row * n
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
        share = tl.where(column == own, short_of_one, tl.exp(score - logarithm))
        tl.store(shares + column, share.to(tl.bfloat16), there)


def shares_of(scores: Tensor, offsets: Tensor, columns: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Each word's share of the probability, the losses (N,), and what each target is short of one (N,), negative.

    In the target's own column stands what it is short of, so the shares (N, n) are the gradient of the loss by the
    scores. They lie in the memory of the scores.

    Args:
        scores: In float16 (N, n), of words that stand for all others; they are written over.
        offsets: To be added to each column (n,).
        columns: Where a row's target is among them (N,), or -1.
        wanted: The target's own score (N,), float32.
    """
    rows, words = scores.shape
    shares = scores.view(torch.bfloat16)
    losses, missing = torch.empty_like(wanted), torch.empty_like(wanted)
    _share[(rows,)](scores, shares, offsets, columns, wanted, losses, missing, words, BLOCK=BLOCK, num_warps=8)
    return shares, losses, missing
