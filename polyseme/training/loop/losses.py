"""How wrong a prediction of the next word is: by the full softmax, a sampled one, or an adaptive one.

All three are called the same way, and all give the sum over the predictions, for the caller to divide.

Shapes: N predictions, P dim, V words, n words of a sample.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from polyseme.model.softmax import AdaptiveSoftmax, Softmax
from polyseme.training.loop.sampling import Sampler, log_uniform, unigram
from polyseme.training.settings import LossSettings

CPU_BLOCK = 1 << 22  # scores that are held at a time on a CPU
GPU_BLOCK = 1 << 30
SPARE = 4096


class Loss(Protocol):
    """A way to measure predictions."""

    def draw(self, place: float) -> None:
        """Choose what this step looks at; ``place`` is a random number in [0, 1), the same in every process."""
        ...

    def __call__(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """The loss of vectors (N, P), each of which should have predicted its target (N,), in nats, summed."""
        ...


class FullLoss:
    """Every word is scored."""

    def __init__(self, softmax: Softmax) -> None:
        self._softmax = softmax

    def draw(self, place: float) -> None:
        """There is nothing to choose."""

    def __call__(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """The exact loss."""
        return _cross_entropy(hidden, self._softmax, targets, None, None)


class SampledLoss:
    """The target and a sample of all words are scored; the sample stands for the rest by 1/π each."""

    def __init__(self, softmax: Softmax, sampler: Sampler) -> None:
        self._softmax, self._sampler = softmax, sampler
        self.draw(0.5)

    def draw(self, place: float) -> None:
        """Choose the words for all predictions of a step."""
        self._words, self._log_shares = self._sampler.to(self._softmax.weight.device).draw(place)

    def __call__(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """An estimate, lower than the exact loss in the mean, and the nearer to it the larger the sample."""
        return _cross_entropy(hidden, self._softmax, targets, self._words, self._log_shares)


class AdaptiveLoss:
    """Frequent words are scored one by one, rare ones by way of their group."""

    def __init__(self, softmax: AdaptiveSoftmax) -> None:
        self._softmax = softmax

    def draw(self, place: float) -> None:
        """There is nothing to choose."""

    def __call__(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """The exact loss of this kind of softmax."""
        return -self._softmax.log_prob(hidden.float(), targets).sum()


def make_loss(settings: LossSettings, softmax: Softmax | AdaptiveSoftmax, counts: Tensor) -> Loss:
    """The loss that the settings ask for; counts (V,) say how often each word occurs."""
    if isinstance(softmax, AdaptiveSoftmax):
        return AdaptiveLoss(softmax)
    if settings.kind == "full" or settings.samples >= len(counts):
        return FullLoss(softmax)
    weights = unigram(counts) if settings.weighting == "unigram" else log_uniform(len(counts))
    return SampledLoss(softmax, Sampler(weights, settings.samples))


def _cross_entropy(
    hidden: Tensor, softmax: Softmax, targets: Tensor, words: Tensor | None, log_shares: Tensor | None
) -> Tensor:
    short = hidden.dtype in (torch.float16, torch.bfloat16)
    kind = _CrossEntropyOnGpu if hidden.is_cuda and short and _kernel() else _CrossEntropy
    return kind.apply(hidden, softmax.weight, softmax.bias, targets, words, log_shares)


@functools.cache
def _kernel() -> Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]] | None:
    try:
        from polyseme.kernels import triton_cross_entropy
    except ImportError:
        return None
    return triton_cross_entropy.cross_entropy_gradient


class _CrossEntropy(torch.autograd.Function):
    """Scores, loss and gradient in one go, a few rows at a time, so that no matrix of all scores is ever kept."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor,
        words: Tensor | None,
        log_shares: Tensor | None,
    ) -> Tensor:
        scored = weight if words is None else weight[words]
        offsets = bias if words is None or log_shares is None else bias[words] - log_shares
        scored = scored.to(hidden.dtype)
        columns = _columns(targets, words, len(weight))
        total = hidden.new_zeros((), dtype=torch.float32)
        hidden_change = torch.empty_like(hidden)
        weight_change, bias_change = torch.zeros_like(scored, dtype=torch.float32), torch.zeros_like(offsets)
        target_weight, target_change = weight[targets].to(hidden.dtype), torch.empty_like(total.expand(len(targets)))
        rows = max(1, (GPU_BLOCK if hidden.is_cuda else CPU_BLOCK) // len(scored))
        for first in range(0, len(hidden), rows):
            part = slice(first, first + rows)
            ahead, own = hidden[part], target_weight[part]
            scores = torch.addmm(offsets.to(hidden.dtype), ahead, scored.t())
            wanted = (ahead.float() * own.float()).sum(dim=1) + bias[targets[part]]
            scores = _without(scores, columns[part])
            highest = torch.maximum(scores.amax(dim=1).float(), wanted)
            shares = scores.sub_(highest.to(scores.dtype).unsqueeze(1)).exp_()  # of the probability, times `whole`
            own_share = torch.exp(wanted - highest)
            whole = shares.sum(dim=1, dtype=torch.float32) + own_share
            total += (torch.log(whole) + highest - wanted).sum()
            missing = own_share / whole - 1
            evened = (1 / whole).to(hidden.dtype).unsqueeze(1)
            hidden_change[part] = (shares @ scored) * evened + missing.to(hidden.dtype).unsqueeze(1) * own
            weight_change += shares.t() @ (ahead * evened)
            bias_change += (shares.t() @ evened).squeeze(1)
            target_change[part] = missing
        ctx.save_for_backward(hidden, hidden_change, weight_change, bias_change, target_change, targets, words)
        ctx.words = len(weight)
        return total

    @staticmethod
    def backward(ctx: Any, *factors: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        hidden, hidden_change, weight_change, bias_change, target_change, targets, words = ctx.saved_tensors
        factor = factors[0]
        if words is None:
            weight, bias = weight_change, bias_change
        else:
            weight = weight_change.new_zeros(ctx.words, weight_change.shape[1]).index_copy_(0, words, weight_change)
            bias = bias_change.new_zeros(ctx.words).index_copy_(0, words, bias_change)
        weight.index_add_(0, targets, target_change.unsqueeze(1) * hidden.float())
        bias.index_add_(0, targets, target_change)
        return hidden_change * factor.to(hidden_change.dtype), weight * factor, bias * factor, None, None, None


class _CrossEntropyOnGpu(torch.autograd.Function):
    """The same in short numbers: scores in float16, which has the finer steps, shares in bfloat16, which has the range.

    A target that is among the scored words is left to the products; only the others are added one by one, for adding
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
        log_shares: Tensor | None,
    ) -> Tensor:
        shares_of = _kernel()
        assert shares_of is not None
        scored = weight if words is None else weight[words]
        offsets = bias if words is None or log_shares is None else bias[words] - log_shares
        by_scores, by_shares = scored.half().t(), scored.bfloat16()
        columns = _columns(targets, words, len(weight))
        total = weight.new_zeros(())
        hidden_change, alone = torch.empty_like(hidden), torch.empty_like(targets, dtype=torch.float32)
        weight_change, bias_change = torch.zeros_like(scored), torch.zeros_like(offsets)
        rows = max(1, GPU_BLOCK // len(scored))
        for first in range(0, len(hidden), rows):
            part = slice(first, first + rows)
            ahead, own = hidden[part], weight[targets[part]]
            wanted = (ahead.float() * own).sum(dim=1) + bias[targets[part]]
            shares, losses, missing = shares_of(ahead.half() @ by_scores, offsets, columns[part], wanted)
            alone[part] = missing.where(columns[part] < 0, 0.0)
            total += losses.sum()
            hidden_change[part] = (shares @ by_shares).float() + alone[part].unsqueeze(1) * own
            weight_change += shares.t() @ ahead.bfloat16()
            bias_change += shares.sum(dim=0, dtype=torch.float32)
        ctx.save_for_backward(hidden, hidden_change, weight_change, bias_change, alone, columns, targets, words)
        ctx.words = len(weight)
        return total

    @staticmethod
    def backward(ctx: Any, *factors: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        hidden, hidden_change, weight_change, bias_change, alone, columns, targets, words = ctx.saved_tensors
        factor, bias_change = factors[0], bias_change * factors[0]
        hidden_change, weight_change = hidden_change * factor.to(hidden_change.dtype), weight_change * factor
        if words is None:
            return hidden_change, weight_change, bias_change, None, None, None
        weight = weight_change.new_zeros(ctx.words + SPARE, weight_change.shape[1])
        bias = bias_change.new_zeros(ctx.words + SPARE)
        weight[words], bias[words] = weight_change, bias_change
        # For targets among the scored words zero is added, to many spare rows, lest all of them wait for one.
        spare = ctx.words + torch.arange(len(targets), device=targets.device) % SPARE
        rows, change = torch.where(columns < 0, targets, spare), alone * factor
        weight.index_add_(0, rows, change.unsqueeze(1) * hidden.float())
        bias.index_add_(0, rows, change)
        return hidden_change, weight[: ctx.words], bias[: ctx.words], None, None, None


def _columns(targets: Tensor, words: Tensor | None, size: int) -> Tensor:
    """Where each target stands among the words that are scored; -1 where it does not."""
    if words is None:
        return targets
    places = torch.full((size,), -1, dtype=torch.int64, device=targets.device)
    places[words] = torch.arange(len(words), device=targets.device)
    return places[targets]


def _without(scores: Tensor, columns: Tensor) -> Tensor:
    """Take each row's own target out of its scores, if it is there: it counts by itself, with certainty."""
    rows = torch.arange(len(scores), device=scores.device)
    found = columns >= 0
    kept = torch.where(found, columns, 0)
    taken = torch.where(found, torch.full_like(scores[:, 0], -torch.inf), scores[rows, kept])
    scores[rows, kept] = taken
    return scores
