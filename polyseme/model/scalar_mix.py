"""The task's own mixture of the layers: γ · Σⱼ sⱼ · hⱼ with softmax-normalised s."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from polyseme.errors import ConfigError, nearest

LayerNorm = Literal["none", "sentence", "bilm-tf", "allennlp"]
# The smallest variance of the published variants, as each toolkit has it.
_EPSILON = {"sentence": 1e-12, "bilm-tf": 1e-12, "allennlp": 1e-13}


class ScalarMix(nn.Module):
    """Mix layers (B, L, T, D) into one vector a word (B, T, D).

    Args:
        num_layers: L.
        scores: The weights before the softmax; zeros, an even mixture, when not given.
        gamma: The factor before the sum.
        trainable: Whether scores and gamma are learned. Given scores are usually frozen.
        layer_norm: Bring each layer to zero mean and unit variance first. ``sentence`` does so over the words of each
            sentence; ``bilm-tf`` and ``allennlp`` over all words of the batch, as those toolkits did (so that a vector
            depends on its batch mates), AllenNLP with the boundary words among them.
    """

    def __init__(
        self,
        num_layers: int,
        scores: Sequence[float] | None = None,
        gamma: float = 1.0,
        trainable: bool = True,
        layer_norm: LayerNorm = "none",
    ) -> None:
        super().__init__()
        if scores is not None and len(scores) != num_layers:
            raise ConfigError(f"a mix of {num_layers} layers needs {num_layers} scores; got {len(scores)}")
        if not all(map(math.isfinite, [*(scores or ()), gamma])):
            raise ConfigError(f"scores and gamma must be finite; got {scores} and {gamma}")
        if layer_norm != "none" and layer_norm not in _EPSILON:
            known = ["none", *_EPSILON]
            raise ConfigError(
                f"layer_norm must be one of {known}, not {layer_norm!r}.{nearest(str(layer_norm), known)}"
            )
        self.layer_norm = layer_norm
        self.scores = nn.Parameter(torch.zeros(num_layers) if scores is None else torch.tensor(scores).float())
        self.gamma = nn.Parameter(torch.tensor(float(gamma)))
        self.requires_grad_(trainable)

    @property
    def weights(self) -> Tensor:
        """The normalised weights s (L,)."""
        return torch.softmax(self.scores, dim=0)

    def forward(self, layers: Tensor, mask: Tensor) -> Tensor:
        """Mix (B, L, T, D) where the mask (B, T) says that there is a word; zeros elsewhere."""
        if layers.shape[1] != len(self.scores):
            raise ConfigError(f"this mix is for {len(self.scores)} layers; got {layers.shape[1]}")
        present = mask[:, None, :, None]
        if self.layer_norm != "none":
            layers = self._normalise(layers, present)
        mixed = torch.einsum("l,bltd->btd", self.weights.to(layers.dtype), layers)
        return self.gamma * mixed * mask.unsqueeze(-1)

    def _normalise(self, layers: Tensor, present: Tensor) -> Tensor:
        over = (2, 3) if self.layer_norm == "sentence" else (0, 2, 3)
        count = (present.sum(over, keepdim=True) * layers.shape[3]).clamp(min=1)
        mean = (layers * present).sum(over, keepdim=True) / count
        variance = (((layers - mean) * present) ** 2).sum(over, keepdim=True) / count
        return (layers - mean) / torch.sqrt(variance + _EPSILON[self.layer_norm])
