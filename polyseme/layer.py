"""`ElmoLayer`: ELMo, or any other encoder, as a layer of your own network."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from polyseme.backends.elmo.encoder import ElmoEncoder, drop_boundaries
from polyseme.embedding.batching import SPLIT_REMEDY, check_sentences
from polyseme.embedding.encoder import Encoder
from polyseme.embedding.interfaces import Batch
from polyseme.errors import ConfigError
from polyseme.loading import LOAD_SETTINGS, backend_of, check_setting, load
from polyseme.model.scalar_mix import LayerNorm, ScalarMix


class Mixed(NamedTuple):
    """Output of an `ElmoLayer`: mixed vectors and the mask."""

    vectors: Tensor | list[Tensor]  # (B, T, D); a list of them for several mixes
    mask: Tensor  # (B, T): true where there is a word


class ElmoLayer(nn.Module):
    """A PyTorch layer: sentences in, mixed word vectors (B, T, D) and a mask (B, T) out.

    Args:
        encoder: A biLM, as `polyseme.load` gives it, or any other encoder: BERT's layers mix the same way. It becomes
            part of this layer, and is frozen or not with it.
        num_mixes: How many mixtures are made of one pass, each with weights of its own: one for the input of a task's
            network and one for its output, say. With more than one, the vectors are a list.
        dropout: Dropout on the mixed vectors.
        trainable: Whether the encoder learns too. If not, it stays in evaluation mode and no graph is kept for it.
        scores: Weights of the mixture before the softmax; when given they are kept as they are, γ too.
        gamma: The scale of the mixture, initial or fixed.
        layer_norm: See `ScalarMix`.
    """

    def __init__(
        self,
        encoder: Encoder,
        *,
        num_mixes: int = 1,
        dropout: float = 0.5,
        trainable: bool = False,
        scores: Sequence[float] | None = None,
        gamma: float = 1.0,
        layer_norm: LayerNorm = "none",
    ) -> None:
        super().__init__()
        if not isinstance(encoder, Encoder):
            raise ConfigError(f"ElmoLayer takes a loaded encoder, not {encoder!r:.60}; for a path use from_pretrained")
        if num_mixes < 1:
            raise ConfigError(f"num_mixes must be 1 or more; got {num_mixes}")
        if layer_norm == "allennlp" and not isinstance(encoder, ElmoEncoder):
            raise ConfigError("layer_norm 'allennlp' counts ELMo's boundary words in; use 'sentence' or 'bilm-tf' here")
        self.encoder = encoder.requires_grad_(trainable)
        self.trainable = trainable
        self.layer_norm = layer_norm
        self.dim = encoder.dim
        self.mixes = nn.ModuleList(
            ScalarMix(encoder.num_layers, scores, gamma, trainable=scores is None, layer_norm=layer_norm)
            for _ in range(num_mixes)
        )
        self.dropout = nn.Dropout(dropout)
        self.train(self.training)

    @classmethod
    def from_pretrained(cls, path: str | Path | None = None, **settings: Any) -> ElmoLayer:  # noqa: ANN401
        """A layer with the weights of a model; settings are those of the constructor and of `polyseme.load`.

        ``trainable`` is of both for static vectors, which are copied into memory when they are to learn.
        """
        own = [name for name in inspect.signature(cls).parameters if name != "encoder"]
        for name in settings:
            check_setting(name, [*own, *LOAD_SETTINGS], "from_pretrained")
        both = backend_of(path).settings if path is not None else ()
        encoder = load(path, **{name: value for name, value in settings.items() if name not in own or name in both})
        return cls(encoder, **{name: value for name, value in settings.items() if name in own})

    def collate(self, sentences: Sequence[Sequence[str]]) -> Batch:
        """Make word lists ready for `forward`, in a data loader's process for example."""
        return self.encoder.collate(list(check_sentences(sentences, SPLIT_REMEDY)))

    def forward(self, sentences: Sequence[Sequence[str]] | Batch) -> Mixed:
        """Embed word lists, or a batch that `collate` made of them."""
        batch = sentences if isinstance(sentences, Batch) else self.collate(sentences)
        with torch.set_grad_enabled(self.trainable and torch.is_grad_enabled()):
            layers, mask = self._encode(batch.to(self.encoder.device))
        outputs = [self._mix(mix, layers, mask) for mix in self.mixes]
        vectors = [self.dropout(mixed) for mixed, _ in outputs]
        return Mixed(vectors[0] if len(vectors) == 1 else vectors, outputs[0][1])

    def train(self, mode: bool = True) -> ElmoLayer:
        """A frozen encoder is never in training mode."""
        super().train(mode)
        self.encoder.train(mode and self.trainable)
        return self

    def _encode(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """All layers; with the boundary words where AllenNLP's layer norm, which includes them, is asked for."""
        if self.layer_norm == "allennlp" and isinstance(self.encoder, ElmoEncoder):
            return self.encoder.forward_with_boundaries(batch)  # pyright: ignore[reportArgumentType]
        return self.encoder(batch)

    def _mix(self, mix: nn.Module, layers: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        mixed = mix(layers, mask)
        if self.layer_norm != "allennlp" or self.encoder.settings.boundaries:
            return mixed, mask
        inner, mask = drop_boundaries(mixed.unsqueeze(1), mask)
        return inner.squeeze(1), mask
