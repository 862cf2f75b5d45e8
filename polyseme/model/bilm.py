"""The bidirectional language model (biLM): LSTM layers with projection over context-free word vectors.

Shapes: B sentences, T words of the longest, N words in all, U distinct words, C characters, L layers, D dim.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from polyseme.errors import ConfigError, InputError
from polyseme.kernels.reference import LstmpWeights, LstmState, prepare_lstmp
from polyseme.kernels.sequence import run_sequence
from polyseme.model.config import BiLMConfig, LstmConfig
from polyseme.model.input import WordInput


@dataclass(frozen=True)
class WordBatch:
    """A padded batch of sentences as indices of distinct words, so that each word is encoded once."""

    places: Tensor  # (B, T) row of the distinct word; 0 beyond a sentence's end
    lengths: Tensor  # (B,) words of each sentence, on the CPU
    characters: Tensor | None = None  # (U, C) spellings
    character_lengths: Tensor | None = None  # (U,)
    ids: Tensor | None = None  # (U,) numbers in the vocabulary

    def to(self, device: torch.device | str) -> WordBatch:
        """The same batch on another device; lengths steer the loop and stay on the CPU."""
        moved = {
            field.name: value.to(device)
            for field in dataclasses.fields(self)
            if field.name != "lengths" and (value := getattr(self, field.name)) is not None
        }
        return dataclasses.replace(self, **moved)

    @property
    def mask(self) -> Tensor:
        """The mask (B, T): true where there is a word."""
        steps = torch.arange(self.places.shape[1], device=self.places.device)
        return steps < self.lengths.to(self.places.device).unsqueeze(1)


class BiLMState(NamedTuple):
    """LSTM state of all layers and directions after a batch, a row a sentence. The caller holds it."""

    hidden: Tensor  # (LSTM layers, directions, B, dim)
    cell: Tensor  # (LSTM layers, directions, B, cells)


class _Packing(NamedTuple):
    order: Tensor  # (B,) sentences by falling length
    flat: Tensor  # (N,) places in (B, T) of the packed words
    sizes: list[int]  # sentences that have a word at step t


class Lstmp(nn.Module):
    """An LSTM layer with projection (LSTMP) in one direction, cell and output clipped.

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


class BiLM(nn.Module):
    """The biLM: context-free word vectors, then LSTM layers that read them forward, backward or both ways."""

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        self.config = config
        self.inputs = nn.ModuleList(WordInput(config.input) for _ in range(2 if config.separate_inputs else 1))
        self.lstms = nn.ModuleList(
            nn.ModuleList(Lstmp(config.lstm, backward=direction == "backward") for _ in range(config.lstm.num_layers))
            for direction in config.directions
        )

    def forward(self, batch: WordBatch, state: BiLMState | None = None) -> tuple[Tensor, BiLMState]:
        """All layers (B, L, T, D), zero where there is no word, and the state after the batch.

        Without a state every sentence starts fresh. A direction's output at a word depends on the words it has read.
        """
        rows, steps = batch.places.shape
        packing = _pack(batch)
        state = self.initial_state(rows) if state is None else state
        if state.hidden.shape[2] != rows:
            raise InputError(f"the state is of {state.hidden.shape[2]} sentences, but the batch has {rows}")
        words = batch.places.flatten()[packing.flat]
        inputs = self.encode_words(batch)[words].chunk(len(self.lstms), dim=1)
        halves, states = [], []
        for number, layers in enumerate(self.lstms):
            before = LstmState(state.hidden[:, number, packing.order], state.cell[:, number, packing.order])
            outputs, after = self._run(layers, inputs[number], packing.sizes, before)
            halves.append(outputs)
            states.append(after)
        packed = torch.cat(halves, dim=2)
        spread = packed.new_zeros(packed.shape[0], rows * steps, packed.shape[2])
        spread[:, packing.flat] = packed
        back = torch.argsort(packing.order)
        after = BiLMState(*(torch.stack(parts, dim=1)[:, :, back] for parts in zip(*states, strict=True)))
        return spread.unflatten(1, (rows, steps)).transpose(0, 1), after

    def encode_words(self, batch: WordBatch) -> Tensor:
        """Context-free vectors of the distinct words (U, D), each direction's half in its place."""
        halves = [encode(batch.characters, batch.character_lengths, batch.ids) for encode in self.inputs]
        return torch.cat(halves * (len(self.lstms) // len(halves)), dim=1)

    def initial_state(self, rows: int) -> BiLMState:
        """The zero state for a number of sentences."""
        lstm, like = self.config.lstm, next(self.parameters())
        shape = (lstm.num_layers, len(self.lstms), rows)
        return BiLMState(like.new_zeros(*shape, lstm.dim), like.new_zeros(*shape, lstm.cells))

    def _run(self, layers: nn.Module, inputs: Tensor, sizes: list[int], state: LstmState) -> tuple[Tensor, LstmState]:
        """One direction through all layers: packed outputs (L, N, dim) and states (LSTM layers, B, ...)."""
        outputs, after = [inputs], []
        for number, lstm in enumerate(layers):  # pyright: ignore[reportArgumentType]
            output, stepped = lstm(outputs[-1], sizes, LstmState(state.hidden[number], state.cell[number]))
            residual = self.config.lstm.residual and number > 0
            outputs.append(output + outputs[-1] if residual else output)
            after.append(stepped)
        states = LstmState(*map(torch.stack, zip(*after, strict=True))) if after else state
        return torch.stack(outputs), states


def read_direction(
    bilm: BiLM,
    direction: int,
    inputs: Tensor,
    state: LstmState | None = None,
    drop: Callable[[Tensor], Tensor] = lambda vectors: vectors,
) -> tuple[Tensor, LstmState]:
    """One direction in reading order, as in training: the top layer (T, B, P), and the state after the last word.

    Takes the arguments of `read_layers`; dropout is applied to the top layer too.
    """
    layers, after = read_layers(bilm, direction, inputs, state, drop)
    return drop(layers[-1]), after


def read_layers(
    bilm: BiLM,
    direction: int,
    inputs: Tensor,
    state: LstmState | None = None,
    drop: Callable[[Tensor], Tensor] = lambda vectors: vectors,
) -> tuple[list[Tensor], LstmState]:
    """All layers (T, B, P) of one direction in reading order, the inputs first, and the state after the last word.

    Args:
        bilm: The model.
        direction: Which of its directions, by place in ``bilm.config.directions``.
        inputs: Context-free vectors (T, B, P) of the words in reading order: for the backward direction, last first.
        state: The state (layers, B, ...) to start from; zeros when not given. No gradient flows into it.
        drop: Dropout, applied to the input of each LSTM layer.
    """
    state = direction_state(bilm, inputs.shape[1]) if state is None else state
    config = bilm.config.lstm
    layers, hiddens, cells = [inputs], [], []
    for number, lstm in enumerate(cast("Sequence[Lstmp]", bilm.lstms[direction])):
        inputs = drop(layers[-1])
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
        layers.append(outputs + inputs if config.residual and number > 0 else outputs)
    return layers, LstmState(torch.stack(hiddens), torch.stack(cells)) if hiddens else state


def direction_state(bilm: BiLM, rows: int) -> LstmState:
    """The zero state of one direction for a number of sentences."""
    lstm, like = bilm.config.lstm, next(bilm.parameters())
    return LstmState(like.new_zeros(lstm.num_layers, rows, lstm.dim), like.new_zeros(lstm.num_layers, rows, lstm.cells))


def join(forward: BiLM, backward: BiLM) -> BiLM:
    """Join a forward and a backward model into one biLM; each keeps its own word encoder."""
    for model in (forward, backward):
        if len(model.config.directions) != 1:
            raise ConfigError(
                f"only models of one direction can be joined; got one that reads {model.config.directions}"
            )
    both = dataclasses.replace(forward.config, directions=("forward", "backward"), separate_inputs=True)
    if dataclasses.replace(backward.config, directions=both.directions, separate_inputs=True) != both:
        raise ConfigError("the two models differ in more than their direction, so their layers do not fit side by side")
    joined = BiLM(both)
    for number, model in enumerate((forward, backward)):
        joined.inputs[number].load_state_dict(model.inputs[0].state_dict())
        joined.lstms[number].load_state_dict(model.lstms[0].state_dict())
    return joined.to(next(forward.parameters()))


def _pack(batch: WordBatch) -> _Packing:
    """Put the words of all sentences in the order in which the LSTM reads them, without padding."""
    steps = batch.places.shape[1]
    order = torch.argsort(batch.lengths, descending=True, stable=True)
    present = torch.arange(steps).unsqueeze(1) < batch.lengths[order]  # (T, B)
    step, row = present.nonzero(as_tuple=True)
    device = batch.places.device
    return _Packing(order.to(device), (order[row] * steps + step).to(device), present.sum(dim=1).tolist())
