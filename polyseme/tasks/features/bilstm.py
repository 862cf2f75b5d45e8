"""The BiLSTM that most tasks are built on, and what it reads: encoder layers, word vectors, a character CNN.

Where the contextual vectors enter, by ``where``:

- ``input``: a learned mix of the layers beside the word vectors and spellings, as ELMo's paper has it;
- ``output``: a learned mix beside the output of the last LSTM layer;
- ``both``: at both places, each with its own mixing weights;
- ``taglm``: the top layer alone, beside the output of the first LSTM layer, as in the TagLM paper.

Shapes: B sentences, T words of the longest, U distinct words, L layers, D dim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from polyseme.embedding.layers import Mix
from polyseme.errors import ConfigError
from polyseme.model.config import CharCnnConfig
from polyseme.model.input import CharEncoder
from polyseme.tasks.features.mixing import Mixes, MixSettings, TaskNetwork
from polyseme.tasks.features.reader import LONGEST_SPELLING, FeatureBatch, FeatureReader
from polyseme.tasks.parameters import check_choice, check_range

Where = Literal["input", "output", "both", "taglm"]


@dataclass(frozen=True)
class CharCnnSettings:
    """Settings of the task's own character convolution (CNN)."""

    dim: int = 30
    width: int = 3
    filters: int = 30

    def __post_init__(self) -> None:
        check_range(self, "dim", 1, 1 << 12)
        check_range(self, "width", 1, LONGEST_SPELLING)
        check_range(self, "filters", 1, 1 << 16)


class SpellingCnn(nn.Module):
    """Character CNN over the spellings of distinct words: features (B, T, filters) of every word."""

    def __init__(self, settings: CharCnnSettings) -> None:
        super().__init__()
        filters = ((settings.width, settings.filters),)
        self.encoder = CharEncoder(CharCnnConfig(dim=settings.dim, filters=filters, num_highway=0))
        self.dim = settings.filters

    def forward(self, inputs: FeatureBatch) -> Tensor:
        """The features (B, T, filters); each distinct word is computed once."""
        return self.encoder(inputs.spellings, inputs.spelling_lengths)[inputs.places]


class ContextFreeVectors(nn.Module):
    """Context-free word vectors: static ones and the character CNN's, side by side; either may be missing."""

    def __init__(self, reader: FeatureReader, spelling: CharCnnSettings | None) -> None:
        super().__init__()
        self.spelling = SpellingCnn(spelling) if spelling else None
        self.has_words = reader.words is not None
        self.dim = (reader.words.dim if reader.words else 0) + (self.spelling.dim if self.spelling else 0)

    def forward(self, inputs: FeatureBatch) -> list[Tensor]:
        """The static vectors and spelling features (B, T, D) that there are."""
        parts = [inputs.words] if self.has_words and inputs.words is not None else []
        return [*parts, self.spelling(inputs)] if self.spelling else parts


class ContextualLayers(nn.Module):
    """All layers (B, L, T, D) of each encoder: from the batch, or computed here when encoders are fine-tuned."""

    def __init__(self, reader: FeatureReader) -> None:
        super().__init__()
        self.encoders = nn.ModuleList(reader.encoders if reader.learns else ())

    def forward(self, inputs: FeatureBatch) -> Sequence[Tensor]:
        """The layers (B, L, T, D), one tensor for each encoder."""
        if not len(self.encoders):
            return inputs.layers
        pairs = zip(self.encoders, inputs.encoded, strict=True)
        return [encoder(batch)[0] for encoder, batch in pairs]


@dataclass(frozen=True)
class BiLstmSettings:
    """Settings of a BiLSTM over contextual and context-free word vectors.

    Attributes:
        where: Where the contextual vectors enter.
        mix: How their layers are mixed; TagLM takes the top one as it is.
        spelling: The task's own character convolution; None for none.
        cells: LSTM cells of each direction of each layer.
        layers: Number of LSTM layers.
        dropout: On word vectors and spelling features, and on the output of every LSTM layer.
        fine_tune: Whether the encoders are trained too.
    """

    where: Where = "input"
    mix: MixSettings = field(default_factory=MixSettings)
    spelling: CharCnnSettings | None = field(default_factory=CharCnnSettings)
    cells: int = 200
    layers: int = 2
    dropout: float = 0.5
    fine_tune: bool = False

    def __post_init__(self) -> None:
        check_choice(self, "where", ("input", "output", "both", "taglm"))
        check_range(self, "cells", 1, 1 << 16)
        check_range(self, "layers", 1, 100)
        check_range(self, "dropout", 0, 1)


class BiLstmNetwork(TaskNetwork):
    """BiLSTM layers: a `FeatureBatch` to one vector (B, T, ``dim``) for each word in its sentence."""

    def __init__(self, settings: BiLstmSettings, reader: FeatureReader) -> None:
        super().__init__()
        self.contextual = ContextualLayers(reader)
        self.own = ContextFreeVectors(reader, settings.spelling)
        places = _places(settings.where) if reader.encoders else {}
        self.mixes = nn.ModuleDict(
            {place: Mixes(reader.shapes, _mix(settings, place)) for place, used in places.items() if used}
        )
        self.dropout = nn.Dropout(settings.dropout)
        dim = self.own.dim + self._mix_dim("input")
        if not dim:
            raise ConfigError(
                "there is nothing to read at the input: give word vectors, spelling settings, or where='input'"
            )
        self.lstms = nn.ModuleList()
        for number in range(settings.layers):
            self.lstms.append(make_bilstm(dim + (self._mix_dim("middle") if number == 1 else 0), settings.cells))
            dim = 2 * settings.cells
        self.dim = dim + self._mix_dim("output") + (self._mix_dim("middle") if settings.layers == 1 else 0)

    def read(self, inputs: FeatureBatch) -> Tensor:
        """The output vectors (B, T, ``dim``) of the last layer, with the mix for the output."""
        encoded = self.contextual(inputs) if len(self.mixes) else []
        parts = [self.dropout(part) for part in self.own(inputs)]
        vectors = torch.cat([*parts, *self._mixed("input", encoded, inputs)], dim=2)
        for number, lstm in enumerate(self.lstms):
            vectors = self.dropout(run_bilstm(lstm, vectors, inputs.lengths))
            if number == 0:
                vectors = torch.cat([vectors, *self._mixed("middle", encoded, inputs)], dim=2)
        return torch.cat([vectors, *self._mixed("output", encoded, inputs)], dim=2)

    def penalty(self) -> Tensor | float:
        """The L2 penalty on the mixing weights of all places."""
        return sum(mixes.penalty() for mixes in self.mixes.values())  # pyright: ignore[reportCallIssue]

    def fitted_mixes(self) -> dict[str, list[Mix]]:
        """Learned layer weights: for each place where layers enter, a mix for each encoder."""
        return {place: mixes.fitted() for place, mixes in self.mixes.items()}  # pyright: ignore[reportCallIssue]

    def _mix_dim(self, place: str) -> int:
        return self.mixes[place].dim if place in self.mixes else 0  # pyright: ignore[reportReturnType]

    def _mixed(self, place: str, encoded: Sequence[Tensor], inputs: FeatureBatch) -> list[Tensor]:
        return [self.mixes[place](encoded, inputs.mask)] if place in self.mixes else []


def make_bilstm(dim: int, cells: int) -> nn.LSTM:
    """A bidirectional LSTM layer, its forget gates open and its recurrent weights orthogonal at first."""
    lstm = nn.LSTM(dim, cells, batch_first=True, bidirectional=True)
    with torch.no_grad():
        for name, weight in lstm.named_parameters():
            if name.startswith("bias"):
                weight.zero_()
                weight[cells : 2 * cells] = 0.5  # there are two of them: the forget gate is open at first
            elif name.startswith("weight_hh"):
                for gate in weight.split(cells):
                    nn.init.orthogonal_(gate)
            else:
                nn.init.xavier_uniform_(weight)
    return lstm


def run_bilstm(lstm: nn.Module, vectors: Tensor, lengths: Tensor) -> Tensor:
    """Run a BiLSTM over packed sentences: no step beyond the end, so a sentence does not depend on its batch."""
    packed = pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
    return pad_packed_sequence(lstm(packed)[0], batch_first=True, total_length=vectors.shape[1])[0]


def layers_of_weights(encoder: nn.Module, batch: object) -> list[list[nn.Parameter]]:
    """An encoder's weights grouped by the first layer that depends on them, from the bottom up.

    Gradients tell which weights a layer depends on, so any kind of encoder will do. Weights on which no layer depends
    (a pooler, say) are left out.
    """
    weights = [weight for weight in encoder.parameters() if weight.requires_grad]
    layers: Tensor = encoder(batch)[0]
    probe = torch.randn(layers[:, 0].shape, generator=torch.Generator().manual_seed(0)).to(layers)
    groups: list[list[nn.Parameter]] = []
    for number in range(layers.shape[1]):
        gradients = torch.autograd.grad(
            (layers[:, number] * probe).sum(), weights, retain_graph=True, allow_unused=True
        )
        used = [gradient is not None and bool(gradient.any()) for gradient in gradients]
        groups.append([weight for weight, is_used in zip(weights, used, strict=True) if is_used])
        weights = [weight for weight, is_used in zip(weights, used, strict=True) if not is_used]
    return groups


def learning_layers(reader: FeatureReader, words: Sequence[str]) -> list[list[nn.Parameter]]:
    """Weights of all fine-tuned encoders by layer, aligned at the top; those that no layer uses stay frozen."""
    if not reader.learns:
        return []
    groups: list[list[nn.Parameter]] = []
    for encoder in reader.encoders:
        encoder.requires_grad_(True)
        own = layers_of_weights(encoder, encoder.collate([words]).to(encoder.device))
        encoder.requires_grad_(False)
        missing = len(own) - len(groups)
        groups = [*([[]] * missing), *groups]
        offset = len(groups) - len(own)
        groups = [[*group, *own[n - offset]] if n >= offset else group for n, group in enumerate(groups)]
        for weight in (weight for layer in own for weight in layer):
            weight.requires_grad_(True)
    return groups


def _places(where: Where) -> dict[str, bool]:
    return {"input": where in ("input", "both"), "middle": where == "taglm", "output": where in ("output", "both")}


def _mix(settings: BiLstmSettings, place: str) -> MixSettings:
    return replace(settings.mix, layers="top", gamma="one") if place == "middle" else settings.mix
