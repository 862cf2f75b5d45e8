"""The bidirectional language model: words in, a vector for each word from each layer out.

Shapes: B sentences, T words of the longest, N words in all, U distinct words, C characters, L layers, D dim.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from polyseme.errors import ConfigError, InputError
from polyseme.kernels.reference import LstmState
from polyseme.model.config import BiLMConfig
from polyseme.model.input import WordInput
from polyseme.model.lstmp import Lstmp


@dataclass(frozen=True)
class WordBatch:
    """Sentences as places of distinct words, so that each word is encoded once however often it stands there."""

    places: Tensor  # (B, T) row of the distinct word; 0 beyond a sentence's end
    lengths: Tensor  # (B,) words of each sentence, on the CPU
    characters: Tensor | None = None  # (U, C) spellings
    character_lengths: Tensor | None = None  # (U,)
    ids: Tensor | None = None  # (U,) numbers in the vocabulary

    def to(self, device: torch.device | str) -> WordBatch:
        """The same on another device; lengths steer the loop and stay where they are."""
        moved = {
            field.name: value.to(device)
            for field in dataclasses.fields(self)
            if field.name != "lengths" and (value := getattr(self, field.name)) is not None
        }
        return dataclasses.replace(self, **moved)

    @property
    def mask(self) -> Tensor:
        """(B, T): true where there is a word."""
        steps = torch.arange(self.places.shape[1], device=self.places.device)
        return steps < self.lengths.to(self.places.device).unsqueeze(1)


class BiLMState(NamedTuple):
    """Where every layer and direction stands after a batch, a row a sentence. The caller holds it."""

    hidden: Tensor  # (LSTM layers, directions, B, dim)
    cell: Tensor  # (LSTM layers, directions, B, cells)


class _Packing(NamedTuple):
    order: Tensor  # (B,) sentences by falling length
    flat: Tensor  # (N,) places in (B, T) of the packed words
    sizes: list[int]  # sentences that have a word at step t


class BiLM(nn.Module):
    """Context-free word vectors, then LSTM layers that read them forward, backward or both ways."""

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
        """Nothing read yet, for so many sentences."""
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


def join(forward: BiLM, backward: BiLM) -> BiLM:
    """One model out of two that read one way each; each keeps its own word encoder."""
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
