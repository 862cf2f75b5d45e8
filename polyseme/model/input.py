"""From distinct words to context-free vectors: layer 0."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from polyseme.kernels.reference import pad_rows, prepare_char_cnn, steady_rows
from polyseme.model.config import CharCnnConfig, InputConfig


class Highway(nn.Module):
    """Lets a part of the input through unchanged: g·relu(transform(x)) + (1 - g)·x with g = σ(gate(x))."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.gate = nn.Linear(dim, dim)
        self.transform = nn.Linear(dim, dim)
        with torch.no_grad():
            for linear in (self.gate, self.transform):
                nn.init.normal_(linear.weight, std=dim**-0.5)
                nn.init.zeros_(linear.bias)
            self.gate.bias.fill_(-2.0)  # mostly closed at first

    def forward(self, features: Tensor) -> Tensor:
        """Any shape (..., dim) to the same shape."""
        return torch.lerp(features, torch.relu(self.transform(features)), torch.sigmoid(self.gate(features)))


class CharEncoder(nn.Module):
    """Spellings (U, C) to features (U, filters): a convolution for each width, the maximum, highway layers."""

    def __init__(self, config: CharCnnConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.num_characters, config.dim)
        self.convolutions = nn.ModuleList(nn.Conv1d(config.dim, count, width) for width, count in config.filters)
        self.highways = nn.ModuleList(Highway(config.num_filters) for _ in range(config.num_highway))
        nn.init.uniform_(self.embedding.weight, -1, 1)

    def forward(self, characters: Tensor, lengths: Tensor) -> Tensor:
        """Encode padded spellings (U, C) of the given lengths (U,)."""
        filters = [(convolution.weight, convolution.bias) for convolution in self.convolutions]
        activation = torch.relu if self.config.activation == "relu" else torch.tanh
        convolve = prepare_char_cnn(filters, activation, self.config.max_characters)  # pyright: ignore[reportArgumentType]
        features = convolve(self.embedding(characters), lengths)
        for highway in self.highways:
            features = highway(features)
        return features


class WordInput(nn.Module):
    """Distinct words to the vectors that an LSTM reads (U, dim)."""

    def __init__(self, config: InputConfig) -> None:
        super().__init__()
        self.words = nn.Embedding(config.num_words, config.word_dim) if config.num_words else None
        self.characters = CharEncoder(config.characters) if config.characters else None
        self.projection = nn.Linear(config.num_features, config.dim) if config.projected else None
        if self.projection:
            nn.init.normal_(self.projection.weight, std=config.num_features**-0.5)
            nn.init.zeros_(self.projection.bias)

    def forward(self, characters: Tensor | None, lengths: Tensor | None, ids: Tensor | None) -> Tensor:
        """Encode words by number (U,), by spelling (U, C) of given lengths (U,), or both."""
        rows = steady_rows(*(layer.weight for layer in self.modules() if isinstance(layer, nn.Linear)))
        features = []
        if self.words is not None and ids is not None:
            features.append(self.words(pad_rows(ids, rows)))
        if self.characters is not None and characters is not None and lengths is not None:
            features.append(self.characters(pad_rows(characters, rows), pad_rows(lengths, rows)))
        joined = torch.cat(features, dim=1)
        encoded = joined if self.projection is None else self.projection(joined)
        return encoded[: _count(characters, ids)]


def _count(characters: Tensor | None, ids: Tensor | None) -> int:
    return next(len(words) for words in (characters, ids) if words is not None)
