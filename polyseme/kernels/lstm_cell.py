"""LSTM cell update for a GPU: one fused Triton kernel, or plain torch where Triton is missing.

Shapes: W directions, N rows at work, H cells.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


class Gates(NamedTuple):
    """The terms that add up to the gates of N words. Rows are contiguous."""

    inputs: Tensor  # (W, ·, 4H) products of the inputs with their weights
    places: Tensor | None  # (W, words) which of them a word has; without it they are in the words' order
    first: int  # the first of the N words
    recurrent: Tensor  # (W, N, 4H) products of the previous outputs
    bias: Tensor  # (W, 4H), 32-bit


def step_cells(gates: Gates, cell: Tensor, out: Tensor, clip: float) -> None:
    """Update the first N cells (W, ·, H), 32-bit, in place, and write their outputs (W, N, H).

    Cells are clipped to ``clip``, if that is not 0.
    """
    kernel = _kernel() if out.is_cuda else None
    (kernel or _plain)(*gates, cell, out, clip)


def _plain(
    inputs: Tensor,
    places: Tensor | None,
    first: int,
    recurrent: Tensor,
    bias: Tensor,
    cell: Tensor,
    out: Tensor,
    clip: float,
) -> None:
    here = slice(first, first + out.shape[1])
    for way in range(len(out)):
        rows = here if places is None else places[way, here].long()
        sums = inputs[way, rows].float() + recurrent[way].float() + bias[way]
        opening, forget, candidate, output = sums.chunk(4, dim=1)
        now = cell[way, : out.shape[1]]
        now.mul_(torch.sigmoid(forget)).add_(torch.sigmoid(opening) * torch.tanh(candidate))
        if clip:
            now.clamp_(-clip, clip)
        out[way] = torch.sigmoid(output) * torch.tanh(now)


@functools.cache
def _kernel() -> Callable[..., None] | None:
    try:
        from polyseme.kernels import triton_lstm_cell
    except ImportError:
        return None
    return triton_lstm_cell.step_cells
