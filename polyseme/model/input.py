"""Character CNN, highway layers and word embeddings: context-free word vectors, layer 0."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

import torch
from torch import Tensor, nn

from polyseme.kernels.char_cnn import char_cnn_on_cpu, char_cnn_on_gpu
from polyseme.kernels.reference import min_stable_rows, pad_rows, prepare_char_cnn
from polyseme.model.config import CharCnnConfig, InputConfig


class Highway(nn.Module):
    """Highway layer: g·relu(transform(x)) + (1 - g)·x with g = σ(gate(x))."""

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
        """Features of any shape (..., dim) to the same shape."""
        return torch.lerp(features, torch.relu(self.transform(features)), torch.sigmoid(self.gate(features)))


class CharEncoder(nn.Module):
    """Character CNN: spellings (U, C) to features (U, filters), max-pooled, then highway layers."""

    def __init__(self, config: CharCnnConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.num_characters, config.dim)
        self.convolutions = nn.ModuleList(nn.Conv1d(config.dim, count, width) for width, count in config.filters)
        self.highways = nn.ModuleList(Highway(config.num_filters) for _ in range(config.num_highway))
        nn.init.uniform_(self.embedding.weight, -1, 1)

    def forward(self, characters: Tensor, lengths: Tensor) -> Tensor:
        """Encode padded spellings (U, C) of the given lengths (U,)."""
        features = self._windows(characters, lengths) if self.training else self._convolve(characters, lengths)
        for highway in self.highways:
            features = highway(features)
        return features

    def _convolve(self, characters: Tensor, lengths: Tensor) -> Tensor:
        convolve = prepare_char_cnn(self._filters(), self._activation(), self.config.max_characters)
        return convolve(self.embedding(characters), lengths)

    def _windows(self, characters: Tensor, lengths: Tensor) -> Tensor:
        """The same but for rounding, with a faster gradient; very long words, which are few, go the other way."""
        if characters.is_cuda:
            return self._activation()(char_cnn_on_gpu(characters, lengths, self.embedding.weight, self._filters()))
        widest = max(width for width, _ in self.config.filters)
        short = lengths + widest <= self.config.max_characters
        if not short.all():
            features = torch.empty(len(lengths), self.config.num_filters, device=lengths.device)
            for chosen, encode in ((short, self._windows), (~short, self._convolve)):
                if chosen.any():
                    part = encode(characters[chosen], lengths[chosen])
                    features = features.to(part.dtype).index_put((chosen.nonzero().squeeze(1),), part)
            return features
        return self._activation()(char_cnn_on_cpu(characters, lengths, self.embedding.weight, self._filters()))

    def _filters(self) -> list[tuple[Tensor, Tensor]]:
        return [(c.weight, c.bias) for c in cast("Iterable[nn.Conv1d]", self.convolutions) if c.bias is not None]

    def _activation(self) -> Callable[[Tensor], Tensor]:
        return torch.relu if self.config.activation == "relu" else torch.tanh


class WordInput(nn.Module):
    """Input encoder of the LSTMs: distinct words to context-free vectors (U, dim)."""

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
        rows = min_stable_rows(*(layer.weight for layer in self.modules() if isinstance(layer, nn.Linear)))
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
