"""BERT and other transformers as encoders: every layer, a vector for each word."""

from __future__ import annotations

import copy
import hashlib
import json
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.backends.transformer.pieces import PieceRows, Pooling, like_sized, make_piece_tokenizer, pooled
from polyseme.embedding.batching import check_sentences
from polyseme.embedding.encoder import Encoder, hash_weights
from polyseme.embedding.interfaces import EmbedSettings
from polyseme.errors import ConfigError, FormatError, nearest

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_POOLED = {"first": "a word's first one", "last": "a word's last one", "mean": "the mean of a word's"}
_NOT_THE_MODEL = ("_name_or_path", "transformers_version", "dtype", "architectures")  # of its settings
USUAL_LENGTH = 512  # pieces at a time, for a model that sets no limit


@dataclass(frozen=True)
class PieceBatch:
    """A batch of sentences as rows of piece ids, and which pieces make which word."""

    rows: tuple[Tensor, ...]  # (rows, pieces) numbers of pieces; rows of similar length share a tensor
    masks: tuple[Tensor, ...]  # the same shapes: 1 where there is a piece
    pieces: Tensor  # (N,) places of the words' pieces in all rows laid end to end, word by word
    offsets: Tensor  # (B * T,) where each word's begin among them
    mask: Tensor  # (B, T): true where there is a word

    def to(self, device: torch.device | str) -> PieceBatch:
        """The same batch on another device."""
        rows, masks = (tuple(tensor.to(device) for tensor in group) for group in (self.rows, self.masks))
        return PieceBatch(rows, masks, self.pieces.to(device), self.offsets.to(device), self.mask.to(device))


class TransformerEncoder(Encoder):
    """A transformer together with its tokeniser. Layer 0 is what enters the first block, the last what leaves the last.

    A word to which the tokeniser gives no piece (a zero-width space, say) has zeros in all layers. A sentence longer
    than the model reads at a time is read in windows that overlap. The word budget counts pieces.

    Args:
        model: An encoder as transformers' ``AutoModel`` gives it.
        tokenizer: Its fast tokeniser, as ``AutoTokenizer`` gives it.
        settings: How to embed. Boundaries are the special pieces around a sentence, ``[CLS]`` and ``[SEP]`` for BERT.
        name: What people call the model.
        pooling: The vector of a word is that of its ``first`` or ``last`` piece, or the ``mean`` of all.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        settings: EmbedSettings | None = None,
        name: str = "transformer",
        pooling: Pooling = "mean",
    ) -> None:
        super().__init__()
        if pooling not in get_args(Pooling):
            near = nearest(str(pooling), get_args(Pooling))
            raise ConfigError(f"pooling must be 'first', 'last' or 'mean', not {pooling!r}.{near}")
        if not tokenizer.is_fast:
            raise FormatError(f"{name} has no fast tokeniser, so its pieces cannot be traced back to words")
        self.model = model
        self.settings = settings or EmbedSettings()
        self.name = name
        self.pooling: Pooling = pooling
        self.longest = _longest(model, tokenizer)
        self.pieces = make_piece_tokenizer(getattr(tokenizer, "backend_tokenizer"), self.longest, name)  # noqa: B009
        self.padding: int = getattr(tokenizer, "pad_token_id", None) or 0
        if self.settings.boundaries and not (self.pieces.before and self.pieces.after):
            raise ConfigError(f"{name} has no pieces that open and close a sentence; leave boundaries out")
        self.eval()
        self.num_layers, self.dim = self._measure()

    def collate(self, sentences: Sequence[Sequence[str]]) -> PieceBatch:
        """Cut words into pieces and sentences into rows; rows of similar length are padded together."""
        cut = [self.pieces.rows(words) for words in check_sentences(sentences)]
        ids = [row for rows in cut for row in rows.ids]
        starts = np.zeros(len(ids), dtype=np.int64)
        tensors, masks, total = [], [], 0
        for group in like_sized(list(map(len, ids)), self.word_budget):
            padded, mask = _pad([ids[number] for number in group], self.padding)
            starts[group] = total + np.arange(len(group)) * padded.shape[1]
            total += padded.size
            tensors.append(torch.from_numpy(padded))
            masks.append(torch.from_numpy(mask))
        places = _lay_out(self._places(cut), starts)
        return PieceBatch(tuple(tensors), tuple(masks), *map(torch.from_numpy, places))

    def forward(self, batch: PieceBatch) -> tuple[Tensor, Tensor]:
        """All layers (B, L, T, D) and the mask (B, T), with the special pieces at both ends if the settings say so."""
        runs = [self._run(ids, mask) for ids, mask in zip(batch.rows, batch.masks, strict=True)]
        if not runs:
            rows, words = batch.mask.shape
            return next(self.parameters()).new_zeros(rows, self.num_layers, words, self.dim), batch.mask
        layers = [self._join(states, batch) for states in zip(*runs, strict=True)]
        return torch.stack(layers, dim=1), batch.mask

    def misread(self, words: Sequence[str]) -> Counter[str]:
        """Words of a sentence without a vector of their own, or cut, by what happened to them."""
        sizes, room = list(map(len, self.pieces.cut(words))), self.pieces.room
        return Counter(
            {
                "without a piece in this model's tokeniser, and are zeros": sizes.count(0),
                f"longer than the {room:,} pieces this model reads, and cropped": sum(size > room for size in sizes),
            }
        )

    def describe(self) -> dict[str, str | int]:
        """Facts about the model for people, by name."""
        size = self.pieces.tokenizer.get_vocab_size()
        return {
            "format": "transformers",
            "architecture": type(self.model).__name__,
            **super().describe(),
            "words by": f"{size:,} pieces, {_POOLED[self.pooling]}",
            "reads": f"{self.longest:,} pieces at a time, more in windows that overlap",
        }

    def fingerprint(self) -> str:
        """A SHA-256 of settings and weights: two encoders with the same one give the same vectors."""
        config = {key: value for key, value in self.model.config.to_dict().items() if key not in _NOT_THE_MODEL}
        described = (config, self.pieces.tokenizer.to_str(), self.pieces.room, self.pooling)
        digest = hashlib.sha256(json.dumps(described, sort_keys=True, default=str).encode())
        hash_weights(digest, self.model.state_dict())
        return digest.hexdigest()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_modules": {"model": _without_hooks(self.model)}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        with torch.device("meta"):  # transformers gives layers only of architectures that were built in this process
            type(self.model)(self.model.config)

    def _run(self, ids: Tensor, mask: Tensor) -> Sequence[Tensor]:
        """The hidden states (rows, pieces, D) of all layers."""
        return self.model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states

    def _join(self, states: Sequence[Tensor], batch: PieceBatch) -> Tensor:
        """Words (B, T, D) out of one layer's pieces; a word without any is zero, as is what lies beyond the end."""
        flat = torch.cat([state.flatten(0, 1) for state in states])
        return F.embedding_bag(batch.pieces, flat, batch.offsets, mode="mean").unflatten(0, batch.mask.shape)

    def _places(self, cut: Sequence[PieceRows]) -> list[np.ndarray]:
        """The spans of the words of each sentence, with rows counted through."""
        sentences, before = [], 0
        for ids, words, boundaries in cut:
            kept = pooled(words, self.pooling)
            spans = np.concatenate([boundaries[:1], kept, boundaries[1:]]) if self.settings.boundaries else kept
            sentences.append(spans + (before, 0, 0))  # noqa: RUF005 - an array
            before += len(ids)
        return sentences

    @torch.no_grad()
    def _measure(self) -> tuple[int, int]:
        """Layers and dimensions, as the model gives them for one piece."""
        ids = torch.tensor([[*self.pieces.before, 0, *self.pieces.after]], device=self.device)
        try:
            states = self._run(ids, torch.ones_like(ids))
            shapes = [tuple(state.shape) for state in states]
        except (TypeError, ValueError, AttributeError, RuntimeError) as error:
            raise FormatError(
                f"{self.name} is a {type(self.model).__name__}, which gives no layers for text alone; "
                "expected an encoder of text, like BERT"
            ) from error
        if not all(state.isfinite().all() for state in states):
            raise FormatError(f"{self.name} gives vectors that are not finite (NaN or infinity); its files are damaged")
        if len(set(shapes)) != 1 or shapes[0][:2] != tuple(ids.shape):
            raise FormatError(f"{self.name} has layers of different shapes, {shapes}; expected one vector a piece")
        return len(shapes), shapes[0][2]


def _longest(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """Maximum length: pieces that the model reads at a time, special ones included."""
    positions = getattr(model.config, "max_position_embeddings", None) or 0
    for name, table in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(table, nn.Embedding):
            unused = 0 if table.padding_idx is None else table.padding_idx + 1  # the first rows, with RoBERTa
            positions = table.num_embeddings - unused
    limits = [limit for limit in (positions, tokenizer.model_max_length) if 0 < limit < 1e9]
    return int(min(limits, default=USUAL_LENGTH))


def _pad(rows: Sequence[Sequence[int]], padding: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of pieces as an array, and a mask that is 1 where there is one; the first row is the longest."""
    ids = np.full((len(rows), len(rows[0])), padding, dtype=np.int64)
    mask = np.zeros_like(ids)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
        mask[number, : len(row)] = 1
    return ids, mask


def _lay_out(sentences: Sequence[np.ndarray], starts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The pieces of all words, where each word's begin among them, and the mask; ``starts`` is where each row lies."""
    lengths = np.array([len(places) for places in sentences], dtype=np.int64)
    mask = np.arange(lengths.max(initial=0)) < lengths[:, None]
    begins, sizes = np.zeros((2, mask.size), dtype=np.int64)
    flat = np.concatenate([np.zeros((0, 3), np.int64), *sentences])
    begins[mask.ravel()] = starts[flat[:, 0]] + flat[:, 1]
    sizes[mask.ravel()] = flat[:, 2] - flat[:, 1]
    offsets = np.cumsum(sizes) - sizes
    return np.repeat(begins - offsets, sizes) + np.arange(sizes.sum()), offsets, mask


def _without_hooks(module: nn.Module) -> nn.Module:
    """A copy that shares the weights, without the hooks by which transformers collects layers: they do not pickle."""
    twin = copy.copy(module)
    twin._forward_hooks = OrderedDict()
    twin._modules = {name: child and _without_hooks(child) for name, child in module._modules.items()}
    twin.__dict__.pop("_output_capturing_hooks_installed", None)
    return twin
