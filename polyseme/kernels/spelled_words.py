"""The character CNN as a GPU trains it: the windows of all words end to end, and not one of padding too many.

A word of n characters has n + 1 windows that differ, the last of padding alone, which stands for all others of its
kind. One product gives the answers of all filters to all windows, and a kernel finds each word's largest ones.

Shapes: U distinct words, C characters, D dim of a character, K filters in all, W the widest of them, N windows in all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F


class Layout(NamedTuple):
    """Where the windows of each word are."""

    ends: Tensor  # (U + 1,) 0, and where each word's windows end and those of the next begin
    words: Tensor  # (N,) whose window it is
    places: Tensor  # (N,) where in the word it begins


def answers_of_words(
    spellings: Tensor, lengths: Tensor, table: Tensor, filters: Sequence[tuple[Tensor, Tensor]]
) -> Tensor:
    """Each filter's largest answer to each word (U, K), before the activation.

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
    answers = _largest(scores, layout, (most - widths).to(spellings.device, non_blocking=True))
    return answers + torch.cat([bias for _, bias in filters]).to(answers.dtype)


def joined_filters(weights: Sequence[Tensor]) -> Tensor:
    """Filters (K, D, width) of all widths as one matrix (W·D, K), the narrow ones filled up with zeros."""
    widest = max(weight.shape[2] for weight in weights)
    joined = torch.cat([F.pad(weight, (0, widest - weight.shape[2])) for weight in weights])
    return joined.permute(2, 1, 0).flatten(0, 1)


def _lay_out(lengths: Tensor, most: int, device: torch.device) -> Layout:
    counts = (lengths.cpu() + 1).clamp(max=most)
    ends = F.pad(counts.cumsum(0), (1, 0))
    total = int(ends[-1])
    if device.type == "cuda":
        counts, ends = (part.pin_memory().to(device, non_blocking=True) for part in (counts, ends))
    words = torch.repeat_interleave(torch.arange(len(counts), device=device), counts, output_size=total)
    return Layout(ends, words, torch.arange(total, device=device) - ends[words])


def _largest(scores: Tensor, layout: Layout, last: Tensor) -> Tensor:
    """Of scores (N, K) the largest of each word (U, K); a filter may begin at places up to its ``last`` (K,)."""
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
        from polyseme.kernels import triton_largest
    except ImportError:
        return None
    return triton_largest.largest
