"""One direction of one LSTM layer with projection."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from polyseme.kernels.reference import LstmpWeights, LstmState, prepare_lstmp
from polyseme.model.config import LstmConfig


class Lstmp(nn.Module):
    """An LSTM whose output is projected down, with the cell and the output clipped.

    The cell: c = σ(f + forget_bias)·c₋₁ + σ(i)·tanh(g), clipped; the output: h = (σ(o)·tanh(c))·projection, clipped.
    Weights are used as x·W, their columns in the order i, f, g, o.
    """

    def __init__(self, config: LstmConfig, backward: bool = False) -> None:
        super().__init__()
        self.config = config
        self.backward = backward
        self.input = nn.Parameter(torch.empty(config.dim, 4 * config.cells))
        self.recurrent = nn.Parameter(torch.empty(config.dim, 4 * config.cells))
        self.bias = nn.Parameter(torch.zeros(4 * config.cells))
        self.projection = nn.Parameter(torch.empty(config.cells, config.dim)) if config.projected else None
        # As one Glorot-uniform matrix over input and output together, which is how TensorFlow keeps and starts it.
        bound = (6 / (2 * config.dim + 4 * config.cells)) ** 0.5
        for weight in (self.input, self.recurrent):
            nn.init.uniform_(weight, -bound, bound)
        if self.projection is not None:
            nn.init.xavier_uniform_(self.projection)

    def forward(self, inputs: Tensor, sizes: Sequence[int], state: LstmState) -> tuple[Tensor, LstmState]:
        """Packed inputs (N, dim) to packed outputs (N, dim) and the state after them."""
        run = prepare_lstmp(
            LstmpWeights(self.input, self.recurrent, self.bias, self.projection),
            cell_clip=self.config.cell_clip,
            output_clip=self.config.output_clip,
            forget_bias=self.config.forget_bias,
            backward=self.backward,
        )
        return run(inputs, sizes, state)

    def initial_state(self, rows: int) -> LstmState:
        """Nothing read yet."""
        return LstmState(self.bias.new_zeros(rows, self.config.dim), self.bias.new_zeros(rows, self.config.cells))
