"""Character CNN for training: the max-pooled output of every filter for every word, with a fast gradient.

One product serves the filters of all widths, over windows of characters; narrow filters are padded with zeros to the
widest. That wastes a third of the multiplications and saves the rest: torch's convolution takes several times as long,
its gradient above all. On a CPU, words of similar length are padded together. On a GPU, the windows of all words lie
end to end: a word of n characters has n + 1 windows that differ, the last of padding alone, which stands for all
others of its kind.

Shapes: U distinct words, C characters, D dim of a character, K filters in all, W the widest of them, N windows in all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from polyseme.kernels.reference import MAX_GROUPS

SMALLEST_GROUP = 16


class WindowLayout(NamedTuple):
    """Where the windows of each word lie."""

    ends: Tensor  # (U + 1,) 0, and where each word's windows end and those of the next begin
    words: Tensor  # (N,) whose window it is
    places: Tensor  # (N,) where in the word it begins


def char_cnn_on_cpu(
    spellings: Tensor, lengths: Tensor, table: Tensor, filters: Sequence[tuple[Tensor, Tensor]]
) -> Tensor:
    """Max-pooled filter outputs (U, K) before the activation, words of similar length padded together.

    Args:
        spellings: Character ids (U, C), padded. Spellings must leave room for a window of nothing but padding.
        lengths: Characters of each before padding (U,).
        table: Vectors of the characters (characters, D).
        filters: Weight (K, D, width) and bias (K,) of each width.
    """
    matrix = joined_filters([weight for weight, _ in filters])
    widest = matrix.shape[0] // table.shape[1]
    order = torch.argsort(lengths, stable=True)
    groups = order.tensor_split(max(1, min(MAX_GROUPS, len(order) // SMALLEST_GROUP)))
    longest = lengths[torch.stack([group[-1] for group in groups])].tolist()
    outputs = []
    for group, length in zip(groups, longest, strict=True):
        windows = spellings[group, : length + widest].unfold(1, widest, 1)  # one of padding alone stands for all
        scores = F.embedding(windows, table).flatten(2) @ matrix
        outputs.append(scores.max(dim=1).values)
    return torch.cat(outputs)[torch.argsort(order)] + torch.cat([bias for _, bias in filters])


def char_cnn_on_gpu(
    spellings: Tensor, lengths: Tensor, table: Tensor, filters: Sequence[tuple[Tensor, Tensor]]
) -> Tensor:
    """Max-pooled filter outputs (U, K) before the activation, windows of all words end to end.

    Args:
        spellings: Character ids (U, C), padded.
        lengths: Characters of each before padding (U,). On the CPU nobody waits for them: they say what memory to take.
        table: Vectors of the characters (characters, D).
        filters: Weight (K, D, width) and bias (K,) of each width.
    """
    most = spellings.shape[1]
    layout = _lay_out(lengths, most, spellings.device)
    matrix = joined_filters([weight for weight, _ in filters])
    widest = matrix.shape[0] // table.shape[1]
    reach = torch.arange(widest, device=spellings.device)
    # What a window reads beyond the spelling's end only meets zeros: filters that reach there are not asked.
    columns = (layout.places.unsqueeze(1) + reach).clamp_(max=most - 1)
    windows = spellings[layout.words.unsqueeze(1), columns]
    scores = F.embedding(windows, table).flatten(1) @ matrix
    widths = torch.cat([torch.full((len(weight),), weight.shape[2]) for weight, _ in filters])
    answers = _max_pool(scores, layout, (most - widths).to(spellings.device, non_blocking=True))
    return answers + torch.cat([bias for _, bias in filters]).to(answers.dtype)


def joined_filters(weights: Sequence[Tensor]) -> Tensor:
    """Filters (K, D, width) of all widths as one matrix (W·D, K), the narrow ones padded with zeros."""
    widest = max(weight.shape[2] for weight in weights)
    joined = torch.cat([F.pad(weight, (0, widest - weight.shape[2])) for weight in weights])
    return joined.permute(2, 1, 0).flatten(0, 1)


def _lay_out(lengths: Tensor, most: int, device: torch.device) -> WindowLayout:
    counts = (lengths.cpu() + 1).clamp(max=most)
    ends = F.pad(counts.cumsum(0), (1, 0))
    total = int(ends[-1])
    if device.type == "cuda":
        counts, ends = (part.pin_memory().to(device, non_blocking=True) for part in (counts, ends))
    words = torch.repeat_interleave(torch.arange(len(counts), device=device), counts, output_size=total)
    return WindowLayout(ends, words, torch.arange(total, device=device) - ends[words])


def _max_pool(scores: Tensor, layout: WindowLayout, last: Tensor) -> Tensor:
    """Max pooling of scores (N, K) over each word (U, K); a filter may begin at places up to its ``last`` (K,)."""
    kernel = _kernel() if scores.is_cuda else None
    if kernel is not None:
        return kernel(scores, layout.ends, last)
    allowed = scores.where(layout.places.unsqueeze(1) <= last, -torch.inf)
    words = layout.words.unsqueeze(1).expand_as(scores)
    return scores.new_zeros(len(layout.ends) - 1, scores.shape[1]).scatter_reduce(
        0, words, allowed, "amax", include_self=False
    )


@functools.cache
def _kernel() -> Callable[[Tensor, Tensor, Tensor], Tensor] | None:
    try:
        from polyseme.kernels import triton_max_pool
    except ImportError:
        return None
    return triton_max_pool.max_pool
