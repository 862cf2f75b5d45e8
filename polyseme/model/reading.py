"""One direction of a biLM over words in the order in which it reads them, as language models are trained and asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor

from polyseme.kernels.reference import LstmpWeights, LstmState
from polyseme.kernels.sequence import run_sequence
from polyseme.model.bilm import BiLM
from polyseme.model.lstmp import Lstmp


def read(
    bilm: BiLM,
    direction: int,
    inputs: Tensor,
    state: LstmState | None = None,
    drop: Callable[[Tensor], Tensor] = lambda vectors: vectors,
) -> tuple[Tensor, LstmState]:
    """The top layer (T, B, P) after each word, and the state (layers, B, ...) after the last.

    Args:
        bilm: The model.
        direction: Which of its directions, by place in ``bilm.config.directions``.
        inputs: Context-free vectors (T, B, P) of the words in reading order: for the backward direction, last first.
        state: Where the direction stands; fresh when not given. No gradient flows into it.
        drop: What is done to the input of each LSTM layer and to the top layer: dropout, in training.
    """
    state = initial_state(bilm, inputs.shape[1]) if state is None else state
    config = bilm.config.lstm
    hiddens, cells = [], []
    for number, lstm in enumerate(cast("Sequence[Lstmp]", bilm.lstms[direction])):
        inputs = drop(inputs)
        outputs, after = run_sequence(
            LstmpWeights(lstm.input, lstm.recurrent, lstm.bias, lstm.projection),
            inputs,
            LstmState(state.hidden[number], state.cell[number]),
            cell_clip=config.cell_clip,
            output_clip=config.output_clip,
            forget_bias=config.forget_bias,
        )
        hiddens.append(after.hidden)
        cells.append(after.cell)
        inputs = outputs + inputs if config.residual and number > 0 else outputs
    return drop(inputs), LstmState(torch.stack(hiddens), torch.stack(cells)) if hiddens else state


def initial_state(bilm: BiLM, rows: int) -> LstmState:
    """Nothing read yet, in one direction."""
    lstm, like = bilm.config.lstm, next(bilm.parameters())
    return LstmState(like.new_zeros(lstm.num_layers, rows, lstm.dim), like.new_zeros(lstm.num_layers, rows, lstm.cells))
