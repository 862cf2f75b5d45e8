"""Triton kernels of max pooling over each word's windows, forward and backward. Imported only where Triton is."""

# pyright: reportMissingImports=false, reportIndexIssue=false
# ruff: noqa: ANN001, ANN202, N803 - what Triton compiles is not quite Python
from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024  # filters that one program works on


@triton.jit
def _find(scores, ends, last, out, where, K: tl.constexpr, BLOCK: tl.constexpr):
    word = tl.program_id(0).to(tl.int64)
    filters = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    there = filters < K
    first = tl.load(ends + word)
    count = (tl.load(ends + word + 1) - first).to(tl.int32)
    allowed = tl.load(last + filters, there, 0)
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    found = tl.zeros((BLOCK,), tl.int32)
    scores += first * K + filters
    for place in range(count):
        score = tl.load(scores, there, 0.0).to(tl.float32)
        better = (score > best) & (place <= allowed)
        best = tl.where(better, score, best)
        found = tl.where(better, place, found)
        scores += K
    tl.store(out + word * K + filters, best.to(out.dtype.element_ty), there)
    tl.store(where + word * K + filters, found.to(tl.uint8), there)


@triton.jit
def _spread(changes, where, ends, out, K: tl.constexpr, BLOCK: tl.constexpr):
    word = tl.program_id(0).to(tl.int64)
    filters = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    there = filters < K
    first = tl.load(ends + word)
    count = (tl.load(ends + word + 1) - first).to(tl.int32)
    change = tl.load(changes + word * K + filters, there, 0.0)
    found = tl.load(where + word * K + filters, there, 0).to(tl.int32)
    out += first * K + filters
    for place in range(count):
        tl.store(out, tl.where(found == place, change, 0.0), there)
        out += K


class _MaxPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, ends: Tensor, last: Tensor) -> Tensor:  # noqa: ANN401
        words, filters = len(ends) - 1, scores.shape[1]
        out = scores.new_empty(words, filters)
        where = torch.empty(words, filters, dtype=torch.uint8, device=scores.device)
        grid = (words, triton.cdiv(filters, BLOCK))
        _find[grid](scores.contiguous(), ends, last, out, where, K=filters, BLOCK=BLOCK)
        ctx.save_for_backward(where, ends)
        ctx.windows = len(scores)
        return out

    @staticmethod
    def backward(ctx: Any, *changes: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        where, ends = ctx.saved_tensors
        words, filters = where.shape
        out = changes[0].new_empty(ctx.windows, filters)
        grid = (words, triton.cdiv(filters, BLOCK))
        _spread[grid](changes[0].contiguous(), where, ends, out, K=filters, BLOCK=BLOCK)
        return out, None, None


def max_pool(scores: Tensor, ends: Tensor, last: Tensor) -> Tensor:
    """Max pooling of scores (N, K) over each word (U, K): those of a word end at ``ends`` (U + 1,).

    A filter is asked at places up to its ``last`` (K,) only; a word has at most 255 places.
    """
    return _MaxPool.apply(scores, ends, last)
