"""One step of LSTM cells for a GPU: gates in, cells renewed, what they let out. One kernel where Triton is there.

Shapes: W ways (directions), N rows at work, H cells.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


class Gates(NamedTuple):
    """What is added up to the gates of N words. Rows are contiguous."""

    inputs: Tensor  # (W, ·, 4H) products of the inputs with their weights
    places: Tensor | None  # (W, words) which of them a word has; without it they are in the words' order
    first: int  # the first of the N words
    recurrent: Tensor  # (W, N, 4H) products of what was put out before
    bias: Tensor  # (W, 4H), 32-bit


def step_cells(gates: Gates, cell: Tensor, out: Tensor, clip: float) -> None:
    """Renew the first N cells (W, ·, H), 32-bit, in place, and write what they let out (W, N, H).

    The cell is kept within the clip, if that is not 0.
    """
    kernel = _kernel() if out.is_cuda else None
    (kernel or _plain)(gates, cell, out, clip)


def _plain(gates: Gates, cell: Tensor, out: Tensor, clip: float) -> None:
    here = slice(gates.first, gates.first + out.shape[1])
    for way in range(len(out)):
        rows = here if gates.places is None else gates.places[way, here].long()
        sums = gates.inputs[way, rows].float() + gates.recurrent[way].float() + gates.bias[way]
        opening, forget, candidate, output = sums.chunk(4, dim=1)
        now = cell[way, : out.shape[1]]
        now.mul_(torch.sigmoid(forget)).add_(torch.sigmoid(opening) * torch.tanh(candidate))
        if clip:
            now.clamp_(-clip, clip)
        out[way] = torch.sigmoid(output) * torch.tanh(now)


@functools.cache
def _kernel() -> Callable[[Gates, Tensor, Tensor, float], None] | None:
    try:
        from polyseme.kernels import triton_cells
    except ImportError:
        return None
    return triton_cells.step_cells
