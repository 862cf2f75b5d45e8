"""Softmax cross-entropy with its gradient, a block of logits at a time, over all words or a sample of them.

Shapes: N predictions, P dim, V words of the vocabulary, n words that are scored.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from polyseme.model.softmax import Softmax

CPU_BLOCK = 1 << 22  # logits in memory at a time on a CPU
GPU_BLOCK = 1 << 30
SPARE = 4096


def cross_entropy(
    hidden: Tensor, softmax: Softmax, targets: Tensor, words: Tensor | None, log_probabilities: Tensor | None
) -> Tensor:
    """Cross-entropy of vectors (N, P) against targets (N,), summed; over all words, or a sample with its log π."""
    half_precision = hidden.dtype in (torch.float16, torch.bfloat16)
    kind = _CrossEntropyOnGpu if hidden.is_cuda and half_precision and _kernel() else _CrossEntropy
    return kind.apply(hidden, softmax.weight, softmax.bias, targets, words, log_probabilities)


@functools.cache
def _kernel() -> Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]] | None:
    try:
        from polyseme.kernels import triton_cross_entropy
    except ImportError:
        return None
    return triton_cross_entropy.cross_entropy_gradient


def _select_scored(
    weight: Tensor, bias: Tensor, targets: Tensor, words: Tensor | None, log_probabilities: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of the softmax to score: all words, or a sample whose biases are corrected by log π.

    Returns weights (n, P), biases (n,), and the column of each target among them (N,), -1 where it was not drawn.
    """
    if words is None or log_probabilities is None:
        return weight, bias, targets
    places = torch.full((len(weight),), -1, dtype=torch.int64, device=targets.device)
    places[words] = torch.arange(len(words), device=targets.device)
    return weight[words], bias[words] - log_probabilities, places[targets]


class _CrossEntropy(torch.autograd.Function):
    """Fused cross-entropy: logits, loss and gradient block by block, so that no (N, n) matrix is ever kept."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor,
        words: Tensor | None,
        log_probabilities: Tensor | None,
    ) -> Tensor:
        scored, offsets, columns = _select_scored(weight, bias, targets, words, log_probabilities)
        scored = scored.to(hidden.dtype)
        total = hidden.new_zeros((), dtype=torch.float32)
        hidden_grad = torch.empty_like(hidden)
        weight_grad, bias_grad = torch.zeros_like(scored, dtype=torch.float32), torch.zeros_like(offsets)
        target_weight, target_grad = weight[targets].to(hidden.dtype), torch.empty_like(total.expand(len(targets)))
        rows = max(1, (GPU_BLOCK if hidden.is_cuda else CPU_BLOCK) // len(scored))
        for first in range(0, len(hidden), rows):
            block = slice(first, first + rows)
            vectors, own = hidden[block], target_weight[block]
            logits = torch.addmm(offsets.to(hidden.dtype), vectors, scored.t())
            target_logits = (vectors.float() * own.float()).sum(dim=1) + bias[targets[block]]
            logits = _mask_targets(logits, columns[block])
            maximum = torch.maximum(logits.amax(dim=1).float(), target_logits)
            exps = logits.sub_(maximum.to(logits.dtype).unsqueeze(1)).exp_()
            target_exp = torch.exp(target_logits - maximum)
            normalizer = exps.sum(dim=1, dtype=torch.float32) + target_exp
            total += (torch.log(normalizer) + maximum - target_logits).sum()
            error = target_exp / normalizer - 1  # of the target's probability: the gradient of its logit
            scale = (1 / normalizer).to(hidden.dtype).unsqueeze(1)
            hidden_grad[block] = (exps @ scored) * scale + error.to(hidden.dtype).unsqueeze(1) * own
            weight_grad += exps.t() @ (vectors * scale)
            bias_grad += (exps.t() @ scale).squeeze(1)
            target_grad[block] = error
        ctx.save_for_backward(hidden, hidden_grad, weight_grad, bias_grad, target_grad, targets, words)
        ctx.words = len(weight)
        return total

    @staticmethod
    def backward(ctx: Any, *factors: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        hidden, hidden_grad, weight_grad, bias_grad, target_grad, targets, words = ctx.saved_tensors
        factor = factors[0]
        if words is None:
            weight, bias = weight_grad, bias_grad
        else:
            weight = weight_grad.new_zeros(ctx.words, weight_grad.shape[1]).index_copy_(0, words, weight_grad)
            bias = bias_grad.new_zeros(ctx.words).index_copy_(0, words, bias_grad)
        weight.index_add_(0, targets, target_grad.unsqueeze(1) * hidden.float())
        bias.index_add_(0, targets, target_grad)
        return hidden_grad * factor.to(hidden_grad.dtype), weight * factor, bias * factor, None, None, None


class _CrossEntropyOnGpu(torch.autograd.Function):
    """Fused half-precision cross-entropy: logits in float16 for accuracy, probabilities in bfloat16 for range.

    A target among the scored words is left to the matrix products; only the others are added one by one, since adding
    thousands of times to the row of "the" would take longer than all the rest.
    """

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor,
        words: Tensor | None,
        log_probabilities: Tensor | None,
    ) -> Tensor:
        kernel = _kernel()
        assert kernel is not None
        scored, offsets, columns = _select_scored(weight, bias, targets, words, log_probabilities)
        for_logits, for_gradient = scored.half().t(), scored.bfloat16()
        total = weight.new_zeros(())
        hidden_grad, target_grad = torch.empty_like(hidden), torch.empty_like(targets, dtype=torch.float32)
        weight_grad, bias_grad = torch.zeros_like(scored), torch.zeros_like(offsets)
        rows = max(1, GPU_BLOCK // len(scored))
        for first in range(0, len(hidden), rows):
            block = slice(first, first + rows)
            vectors, own = hidden[block], weight[targets[block]]
            target_logits = (vectors.float() * own).sum(dim=1) + bias[targets[block]]
            probabilities, losses, errors = kernel(vectors.half() @ for_logits, offsets, columns[block], target_logits)
            target_grad[block] = errors.where(columns[block] < 0, 0.0)
            total += losses.sum()
            hidden_grad[block] = (probabilities @ for_gradient).float() + target_grad[block].unsqueeze(1) * own
            weight_grad += probabilities.t() @ vectors.bfloat16()
            bias_grad += probabilities.sum(dim=0, dtype=torch.float32)
        ctx.save_for_backward(hidden, hidden_grad, weight_grad, bias_grad, target_grad, columns, targets, words)
        ctx.words = len(weight)
        return total

    @staticmethod
    def backward(ctx: Any, *factors: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        hidden, hidden_grad, weight_grad, bias_grad, target_grad, columns, targets, words = ctx.saved_tensors
        factor, bias_grad = factors[0], bias_grad * factors[0]
        hidden_grad, weight_grad = hidden_grad * factor.to(hidden_grad.dtype), weight_grad * factor
        if words is None:
            return hidden_grad, weight_grad, bias_grad, None, None, None
        weight = weight_grad.new_zeros(ctx.words + SPARE, weight_grad.shape[1])
        bias = bias_grad.new_zeros(ctx.words + SPARE)
        weight[words], bias[words] = weight_grad, bias_grad
        # Targets among the scored words add zero to one of many spare rows, so that the adds do not wait for one row.
        spare = ctx.words + torch.arange(len(targets), device=targets.device) % SPARE
        rows, change = torch.where(columns < 0, targets, spare), target_grad * factor
        weight.index_add_(0, rows, change.unsqueeze(1) * hidden.float())
        bias.index_add_(0, rows, change)
        return hidden_grad, weight[: ctx.words], bias[: ctx.words], None, None, None


def _mask_targets(logits: Tensor, columns: Tensor) -> Tensor:
    """Mask each row's own target with -inf where it was drawn: it is counted by itself, with certainty."""
    rows = torch.arange(len(logits), device=logits.device)
    found = columns >= 0
    kept = torch.where(found, columns, 0)
    logits[rows, kept] = torch.where(found, torch.full_like(logits[:, 0], -torch.inf), logits[rows, kept])
    return logits
