"""Layer mixing: an encoder's layers become one vector a word by learned weights, a choice, or concatenation.

Shapes: B sentences, T words of the longest, L layers, D dim.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from polyseme.embedding.layers import Mix, layers_of, parse_choice
from polyseme.errors import ConfigError
from polyseme.model.scalar_mix import ScalarMix
from polyseme.tasks.parameters import check_choice, check_range

_JOINED = "concat-last-four"


@dataclass(frozen=True)
class MixSettings:
    """Settings of layer mixing: how an encoder's layers become one vector a word.

    Attributes:
        layers: ``all`` learns a weight for each; ``average`` weighs all equally; ``top`` or a number takes one; weights
            like ``0.2,0.5,0.3`` stay fixed; and there are the BERT paper's ways, `embedding.STRATEGIES`.
        gamma: Whether the factor before the sum is ``learned`` or stays ``one``.
        l2: λ of the penalty λ·‖w‖² on the weights before the softmax: 0 leaves them free, 1 keeps them near even.
        dropout: On the mixed vectors.
        layer_norm: ``sentence`` brings each layer to mean 0 and variance 1 over the words of a sentence first.
    """

    layers: str = "all"
    gamma: Literal["learned", "one"] = "learned"
    l2: float = 0.001
    dropout: float = 0.5
    layer_norm: Literal["none", "sentence"] = "none"

    def __post_init__(self) -> None:
        check_choice(self, "gamma", ("learned", "one"))
        check_choice(self, "layer_norm", ("none", "sentence"))
        check_range(self, "l2", 0, math.inf)
        check_range(self, "dropout", 0, 1)
        parse_choice(str(self.layers))


class LayerMix(nn.Module):
    """Scalar mix or concatenation of one encoder's layers (B, L, T, D) to vectors (B, T, dim)."""

    def __init__(self, num_layers: int, dim: int, settings: MixSettings) -> None:
        super().__init__()
        self.num_layers = num_layers
        self.taken, weights = _taken(settings.layers, num_layers)
        count = len(range(*self.taken.indices(num_layers)))
        self.joined = settings.layers == _JOINED
        self.dim = dim * count if self.joined else dim
        self.l2 = settings.l2
        scores = None if weights is None else [math.log(weight) if weight > 0 else -1e4 for weight in weights]
        self.mix = ScalarMix(count, scores, layer_norm=settings.layer_norm)
        self.mix.scores.requires_grad_(weights is None and count > 1 and not self.joined)
        self.mix.gamma.requires_grad_(settings.gamma == "learned")

    def forward(self, layers: Tensor, mask: Tensor) -> Tensor:
        """The mixed vectors (B, T, dim), zeros where there is no word."""
        layers = layers[:, self.taken]
        if not self.joined:
            return self.mix(layers, mask)
        return self.mix.gamma * (layers * mask[:, None, :, None]).transpose(1, 2).flatten(2)

    def penalty(self) -> Tensor:
        """The L2 penalty on the mixing weights before the softmax."""
        return self.l2 * (self.mix.scores * self.mix.scores).sum() * self.mix.scores.requires_grad

    def fitted(self) -> Mix:
        """The learned layer weights, zero for layers that are not used, and γ."""
        weights = [0.0] * self.num_layers
        weights[self.taken] = [1.0] * len(self.mix.scores) if self.joined else self.mix.weights.tolist()
        return Mix(tuple(weights), self.mix.gamma.item())


class Mixes(nn.Module):
    """Layer mixes of several encoders at one place of a network, concatenated (B, T, Σdim)."""

    def __init__(self, shapes: Sequence[tuple[int, int]], settings: MixSettings) -> None:
        super().__init__()
        self.parts = nn.ModuleList(LayerMix(layers, dim, settings) for layers, dim in shapes)
        self.dim = sum(part.dim for part in self._parts)
        self.dropout = nn.Dropout(settings.dropout)

    @property
    def _parts(self) -> list[LayerMix]:
        return list(self.parts)  # pyright: ignore[reportReturnType]

    def forward(self, encoded: Sequence[Tensor], mask: Tensor) -> Tensor:
        """Mix the layers (B, L, T, D) of each encoder, and apply dropout."""
        mixed = [part(layers, mask) for part, layers in zip(self._parts, encoded, strict=True)]
        return self.dropout(torch.cat(mixed, dim=2))

    def penalty(self) -> Tensor:
        """The L2 penalty on the mixing weights before the softmax."""
        return torch.stack([part.penalty() for part in self._parts]).sum()

    def fitted(self) -> list[Mix]:
        """The learned layer weights and γ of each encoder."""
        return [part.fitted() for part in self._parts]


class TaskNetwork(nn.Module):
    """Base of all task networks over encoders."""

    def fitted_mixes(self) -> dict[str, list[Mix]]:
        """Learned layer weights: for each place where layers enter, a mix for each encoder."""
        return {}


def _taken(layers: str, num_layers: int) -> tuple[slice, Sequence[float] | None]:
    """Which layers are used, and their weights where these are fixed."""
    choice = parse_choice(layers)
    if isinstance(choice, Mix):
        if len(choice.weights) != num_layers:
            raise ConfigError(f"the mix has {len(choice.weights)} weights, but there are {num_layers} layers")
        return slice(0, num_layers), choice.weights
    if isinstance(choice, int):
        if not 0 <= choice < num_layers:
            raise ConfigError(f"there is no layer {choice}: the layers are 0 to {num_layers - 1}; 'top' is the last")
        return slice(choice, choice + 1), None
    if choice in ("all", "average"):
        return slice(0, num_layers), None if choice == "all" else [1 / num_layers] * num_layers
    return (slice(num_layers - 1, num_layers) if choice == "top" else layers_of(choice, num_layers)), None
