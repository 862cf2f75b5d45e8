"""What most tasks are built on: vectors of words, and LSTM layers that read them both ways.

Where the contextual vectors enter, by ``where``:

- ``input``: a learned mix of the layers beside the word vectors and spellings, as ELMo's paper has it;
- ``output``: a learned mix beside what the last LSTM layer gives;
- ``both``: there and there, each place with weights of its own;
- ``taglm``: the top layer alone, beside what the first LSTM layer gives, as in the TagLM paper.

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
from polyseme.tasks.fitting.settings import check_choice, check_range

Where = Literal["input", "output", "both", "taglm"]


@dataclass(frozen=True)
class CharCnnSettings:
    """The task's own character convolution."""

    dim: int = 30
    width: int = 3
    filters: int = 30

    def __post_init__(self) -> None:
        check_range(self, "dim", 1, 1 << 12)
        check_range(self, "width", 1, LONGEST_SPELLING)
        check_range(self, "filters", 1, 1 << 16)


class CharCnn(nn.Module):
    """Spellings of distinct words to features of the words where they stand (B, T, filters)."""

    def __init__(self, settings: CharCnnSettings) -> None:
        super().__init__()
        filters = ((settings.width, settings.filters),)
        self.encoder = CharEncoder(CharCnnConfig(dim=settings.dim, filters=filters, num_highway=0))
        self.dim = settings.filters

    def forward(self, inputs: FeatureBatch) -> Tensor:
        """Each distinct word once."""
        return self.encoder(inputs.spellings, inputs.spelling_lengths)[inputs.places]


class ContextFreeVectors(nn.Module):
    """The vectors of words that know no context: static ones, and those of the spelling; side by side, or nothing."""

    def __init__(self, reader: FeatureReader, spelling: CharCnnSettings | None) -> None:
        super().__init__()
        self.spelling = CharCnn(spelling) if spelling else None
        self.has_words = reader.words is not None
        self.dim = (reader.words.dim if reader.words else 0) + (self.spelling.dim if self.spelling else 0)

    def forward(self, inputs: FeatureBatch) -> list[Tensor]:
        """The parts (B, T, D) there are."""
        parts = [inputs.words] if self.has_words and inputs.words is not None else []
        return [*parts, self.spelling(inputs)] if self.spelling else parts


class ContextualLayers(nn.Module):
    """All layers (B, L, T, D) of each encoder: as the batch brings them, or computed here so that encoders learn."""

    def __init__(self, reader: FeatureReader) -> None:
        super().__init__()
        self.encoders = nn.ModuleList(reader.encoders if reader.learns else ())

    def forward(self, inputs: FeatureBatch) -> Sequence[Tensor]:
        """From the top of the batch, whichever way."""
        if not len(self.encoders):
            return inputs.layers
        pairs = zip(self.encoders, inputs.encoded, strict=True)
        return [encoder(batch)[0] for encoder, batch in pairs]


@dataclass(frozen=True)
class BiLstmSettings:
    """What the stack is made of.

    Attributes:
        where: Where the contextual vectors enter.
        mix: What is made of their layers; TagLM takes the top one as it is.
        spelling: The task's own character convolution; None for none.
        cells: Of each direction of each LSTM layer.
        layers: LSTM layers.
        dropout: On word vectors and spellings, and on what every LSTM layer gives.
        fine_tune: Whether the encoders learn too.
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
            raise ConfigError("there is nothing to read at the input: give word vectors, spellings, or where='input'")
        self.lstms = nn.ModuleList()
        for number in range(settings.layers):
            self.lstms.append(make_bilstm(dim + (self._mix_dim("middle") if number == 1 else 0), settings.cells))
            dim = 2 * settings.cells
        self.dim = dim + self._mix_dim("output") + (self._mix_dim("middle") if settings.layers == 1 else 0)

    def read(self, inputs: FeatureBatch) -> Tensor:
        """The vectors (B, T, ``dim``)."""
        encoded = self.contextual(inputs) if len(self.mixes) else []
        parts = [self.dropout(part) for part in self.own(inputs)]
        vectors = torch.cat([*parts, *self._mixed("input", encoded, inputs)], dim=2)
        for number, lstm in enumerate(self.lstms):
            vectors = self.dropout(run_bilstm(lstm, vectors, inputs.lengths))
            if number == 0:
                vectors = torch.cat([vectors, *self._mixed("middle", encoded, inputs)], dim=2)
        return torch.cat([vectors, *self._mixed("output", encoded, inputs)], dim=2)

    def penalty(self) -> Tensor | float:
        """What the loss has to bear for uneven mixes."""
        return sum(mixes.penalty() for mixes in self.mixes.values())  # pyright: ignore[reportCallIssue]

    def fitted_mixes(self) -> dict[str, list[Mix]]:
        """What was learned of the layers: for each place a mix for each encoder."""
        return {place: mixes.fitted() for place, mixes in self.mixes.items()}  # pyright: ignore[reportCallIssue]

    def _mix_dim(self, place: str) -> int:
        return self.mixes[place].dim if place in self.mixes else 0  # pyright: ignore[reportReturnType]

    def _mixed(self, place: str, encoded: Sequence[Tensor], inputs: FeatureBatch) -> list[Tensor]:
        return [self.mixes[place](encoded, inputs.mask)] if place in self.mixes else []


def make_bilstm(dim: int, cells: int) -> nn.LSTM:
    """One layer, both directions, that remembers at first."""
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
    """Both ways over each sentence, without a step beyond its end, so that it does not depend on its company."""
    packed = pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
    return pad_packed_sequence(lstm(packed)[0], batch_first=True, total_length=vectors.shape[1])[0]


def layers_of_weights(encoder: nn.Module, batch: object) -> list[list[nn.Parameter]]:
    """The weights of an encoder by the first layer whose vectors they have a part in, from the bottom up.

    It is found out by gradients, so that nobody needs to know what the encoder is made of. Weights without a part in
    any layer (a pooler, say) are left out.
    """
    weights = [weight for weight in encoder.parameters() if weight.requires_grad]
    layers: Tensor = encoder(batch)[0]
    rng = torch.randn(layers[:, 0].shape, generator=torch.Generator().manual_seed(0)).to(layers)
    groups: list[list[nn.Parameter]] = []
    for number in range(layers.shape[1]):
        gradients = torch.autograd.grad((layers[:, number] * rng).sum(), weights, retain_graph=True, allow_unused=True)
        used = [gradient is not None and bool(gradient.any()) for gradient in gradients]
        groups.append([weight for weight, wanted in zip(weights, used, strict=True) if wanted])
        weights = [weight for weight, wanted in zip(weights, used, strict=True) if not wanted]
    return groups


def learning_layers(reader: FeatureReader, words: Sequence[str]) -> list[list[nn.Parameter]]:
    """The weights of all encoders, layer by layer from the top; those without a part in any layer do not learn."""
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
