"""LSTM layers of a biLM for a GPU: the weights of both directions stacked, so that one product serves both.

Shapes: W directions, U distinct words, N words in all, B sentences, P dim of one direction, H cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from polyseme.kernels.lstm_cell import Gates, step_cells
from polyseme.kernels.reference import add_forget_bias
from polyseme.model.bilm import BiLM

CHUNK_BYTES = 1 << 30  # of products of the inputs, held at a time


class StackedLayer(NamedTuple):
    """Weights of one LSTM layer, those of all directions stacked."""

    input: Tensor  # (W, P, 4H)
    recurrent: Tensor  # (W, P, 4H)
    bias: Tensor  # (W, 4H), 32-bit
    projection: Tensor | None  # (W, H, P)


class StackedState(NamedTuple):
    """Hidden and cell state of one LSTM layer, all directions."""

    hidden: Tensor  # (W, B, P)
    cell: Tensor  # (W, B, H), 32-bit


class StackedLstm:
    """All LSTM layers of a biLM, and their states after the first boundary word, which are constants.

    Args:
        bilm: The model.
        dtype: The type of the matrix products; cells stay in 32 bits.
        boundary: Vectors (W, P) of each direction's first boundary word.
    """

    def __init__(self, bilm: BiLM, dtype: torch.dtype, boundary: Tensor) -> None:
        self.config = bilm.config.lstm
        self.dtype, self.device = dtype, boundary.device
        self.layers = [_stack(layers, dtype) for layers in zip(*bilm.lstms, strict=True)]  # pyright: ignore[reportArgumentType]
        self.boundary_states, self.boundary_outputs = self._read_boundary(boundary.unsqueeze(1))

    def read(self, hidden: Tensor, places: Tensor, sizes: Sequence[int], after_boundary: bool) -> Iterator[Tensor]:
        """Packed outputs (W, N, P) of every layer, for distinct words (W, U, P) at their places (W, N).

        Args:
            hidden: Vectors of the distinct words.
            places: Which distinct word stands where.
            sizes: Sentences that have a word at each step.
            after_boundary: Start from the states after the first boundary word, not from zeros.
        """
        sentences = max(sizes, default=0)
        for number, layer in enumerate(self.layers):
            state = self._zeros(hidden, sentences)
            if after_boundary:  # as copies, because cells are updated in place
                state = StackedState(*(part.repeat(1, sentences, 1) for part in self.boundary_states[number]))
            output, _ = self._run(layer, hidden, None if number else places, sizes, state)
            hidden = output + hidden if self.config.residual and number else output
            yield hidden

    def _read_boundary(self, inputs: Tensor) -> tuple[list[StackedState], Tensor]:
        """The states after the first boundary word, and the outputs of every layer for it (L, W, P)."""
        places = torch.zeros(len(inputs), 1, dtype=torch.int32, device=self.device)
        states, outputs = [], [inputs.float()]
        hidden = inputs.to(self.dtype)
        for number, layer in enumerate(self.layers):
            output, state = self._run(layer, hidden, places, [1], self._zeros(hidden, 1))
            hidden = output + hidden if self.config.residual and number else output
            states.append(state)
            outputs.append(hidden.float())
        return states, torch.stack(outputs).squeeze(2)

    def _zeros(self, like: Tensor, sentences: int) -> StackedState:
        cells = torch.zeros(len(like), sentences, self.config.cells, device=self.device)
        return StackedState(like.new_zeros(len(like), sentences, self.config.dim), cells)

    def _run(
        self, layer: StackedLayer, inputs: Tensor, places: Tensor | None, sizes: Sequence[int], state: StackedState
    ) -> tuple[Tensor, StackedState]:
        """Packed outputs (W, N, P) of a layer, and the state after the words.

        With places (W, N), inputs are distinct words and the places say which word stands where.
        """
        ways, cells = len(inputs), self.config.cells
        widest = max(sizes, default=0)
        sums, active = (inputs.new_empty(ways, widest, size) for size in (4 * cells, cells))
        out = inputs.new_empty(ways, sum(sizes), self.config.dim)
        products = inputs if places is None else torch.bmm(inputs, layer.input)
        clip = self.config.cell_clip or 0.0
        hidden, first, begin, end = state.hidden, 0, 0, 0
        for number, (size, here) in enumerate(zip(sizes, out.split(list(sizes), dim=1), strict=True)):
            if places is None and first == end:
                begin, end = first, first + self._chunk(sizes[number:])
                products = torch.bmm(inputs[:, begin:end], layer.input)
            if size != sums.shape[1]:
                hidden, sums, active = hidden[:, :size], sums[:, :size], active[:, :size]
            torch.bmm(hidden, layer.recurrent, out=sums)
            step_cells(Gates(products, places, first - begin, sums, layer.bias), state.cell, active, clip)
            self._project(layer, active, here)
            hidden, first = here, first + size
        return out, StackedState(hidden, state.cell)

    def _project(self, layer: StackedLayer, active: Tensor, out: Tensor) -> None:
        limit = self.config.output_clip
        if layer.projection is None:
            out.copy_(active)
        elif limit:
            torch.clamp(torch.bmm(active, layer.projection), -limit, limit, out=out)
        else:
            torch.bmm(active, layer.projection, out=out)

    def _chunk(self, sizes: Sequence[int]) -> int:
        """Words of as many steps as may be held at a time; at least one step."""
        most = CHUNK_BYTES // (len(self.layers[0].bias) * 4 * self.config.cells * self.dtype.itemsize)
        total = 0
        for size in sizes:
            if total and total + size > most:
                break
            total += size
        return total


def _stack(layers: Sequence[Any], dtype: torch.dtype) -> StackedLayer:
    """Stack the weights of one layer in all directions."""
    biases = [add_forget_bias(layer.bias.detach().float(), layer.config.forget_bias) for layer in layers]

    def stack(name: str) -> Tensor:
        return torch.stack([getattr(layer, name).detach() for layer in layers]).to(dtype)

    projection = None if layers[0].projection is None else stack("projection")
    return StackedLayer(stack("input"), stack("recurrent"), torch.stack(biases), projection)
