"""The first part of every task's network: from what a `Reader` gives to vectors of words.

Shapes: B sentences, T words of the longest, U distinct words, L layers, D dim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from polyseme.model.config import CharCnnConfig
from polyseme.model.input import CharEncoder
from polyseme.tasks.features.reader import LONGEST_SPELLING, Inputs, Reader
from polyseme.tasks.fitting.settings import check_range


@dataclass(frozen=True)
class SpellingSettings:
    """The task's own character convolution."""

    dim: int = 30
    width: int = 3
    filters: int = 30

    def __post_init__(self) -> None:
        check_range(self, "dim", 1, 1 << 12)
        check_range(self, "width", 1, LONGEST_SPELLING)
        check_range(self, "filters", 1, 1 << 16)


class Spelling(nn.Module):
    """Spellings of distinct words to features of the words where they stand (B, T, filters)."""

    def __init__(self, settings: SpellingSettings) -> None:
        super().__init__()
        filters = ((settings.width, settings.filters),)
        self.encoder = CharEncoder(CharCnnConfig(dim=settings.dim, filters=filters, num_highway=0))
        self.dim = settings.filters

    def forward(self, inputs: Inputs) -> Tensor:
        """Each distinct word once."""
        return self.encoder(inputs.spellings, inputs.spelling_lengths)[inputs.places]


class OwnVectors(nn.Module):
    """The vectors of words that know no context: static ones, and those of the spelling; side by side, or nothing."""

    def __init__(self, reader: Reader, spelling: SpellingSettings | None) -> None:
        super().__init__()
        self.spelling = Spelling(spelling) if spelling else None
        self.has_words = reader.words is not None
        self.dim = (reader.words.dim if reader.words else 0) + (self.spelling.dim if self.spelling else 0)

    def forward(self, inputs: Inputs) -> list[Tensor]:
        """The parts (B, T, D) there are."""
        parts = [inputs.words] if self.has_words and inputs.words is not None else []
        return [*parts, self.spelling(inputs)] if self.spelling else parts


class Contextual(nn.Module):
    """All layers (B, L, T, D) of each encoder: as the batch brings them, or computed here so that encoders learn."""

    def __init__(self, reader: Reader) -> None:
        super().__init__()
        self.encoders = nn.ModuleList(reader.encoders if reader.learns else ())

    def forward(self, inputs: Inputs) -> Sequence[Tensor]:
        """From the top of the batch, whichever way."""
        if not len(self.encoders):
            return inputs.layers
        pairs = zip(self.encoders, inputs.encoded, strict=True)
        return [encoder(batch)[0] for encoder, batch in pairs]


def layers_of_weights(encoder: nn.Module, batch: object) -> list[list[nn.Parameter]]:
    """The weights of an encoder by the first layer whose vectors they have a part in, from the bottom up.

    It is found out by gradients, so that nobody needs to know what the encoder is made of. Weights without a part in
    any layer (a pooler, say) are left out.
    """
    weights = [weight for weight in encoder.parameters() if weight.requires_grad]
    layers: Tensor = encoder(batch)[0]
    lot = torch.randn(layers[:, 0].shape, generator=torch.Generator().manual_seed(0)).to(layers)
    groups: list[list[nn.Parameter]] = []
    for number in range(layers.shape[1]):
        gradients = torch.autograd.grad((layers[:, number] * lot).sum(), weights, retain_graph=True, allow_unused=True)
        used = [gradient is not None and bool(gradient.any()) for gradient in gradients]
        groups.append([weight for weight, wanted in zip(weights, used, strict=True) if wanted])
        weights = [weight for weight, wanted in zip(weights, used, strict=True) if not wanted]
    return groups


def learning_layers(reader: Reader, words: Sequence[str]) -> list[list[nn.Parameter]]:
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
