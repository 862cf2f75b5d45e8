"""Encoders: networks that give word vectors, and the one streaming `embed` for all of them."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from polyseme.embedding.batching import (
    check_sentences,
    compute_in_order,
    map_windows,
    sentence_size,
    window_words,
    windows,
)
from polyseme.embedding.interfaces import Batch, EmbeddedSentence, EmbedSettings, EmbedStrategy
from polyseme.embedding.layers import LayerChoice
from polyseme.embedding.texts import Texts, encode_texts, text_similarity
from polyseme.errors import ConfigError, InputError
from polyseme.progress import track
from polyseme.text.tokenizer import TokenizedSentence, tokenize

if TYPE_CHECKING:
    from hashlib import _Hash

WORD_BUDGET = 1024  # words at a time, by default


class Encoder(nn.Module, ABC):
    """Base class of encoders: a network that a task can train through, and an `Embedder`.

    Gradients flow through `forward`; `embed` and `encode` keep none. A subclass needs `collate` and `forward`.
    """

    name: str
    dim: int
    num_layers: int
    settings: EmbedSettings

    @abstractmethod
    def collate(self, sentences: Sequence[Sequence[str]]) -> Batch:
        """Make sentences ready for `forward`; cheap, and safe in a data loader's process."""

    @abstractmethod
    def forward(self, batch: Any) -> tuple[Tensor, Tensor]:  # noqa: ANN401 - its own collate's batch
        """All layers (B, L, T, D), zero where there is no word, and the mask (B, T)."""

    def embed(self, sentences: Iterable[Sequence[str]]) -> Iterator[np.ndarray]:
        """Word vectors: for each sentence, a list of words, an array (layers, words, dim), in order.

        Sentences are taken as they are needed, a few thousand words ahead, so a stream of any length takes constant
        memory. A sentence's vectors depend on nothing but the sentence.
        """
        total = len(sentences) if isinstance(sentences, Sized) else None
        return track(self.strategy().embed(sentences, self.settings), "embedding", total, words=count_words)

    def encode(
        self, texts: Texts, *, pool: str = "mean", layers: LayerChoice = "average", normalize: bool = False
    ) -> np.ndarray:
        """Text vectors: one vector a text, as an array (texts, dim); a single string gives (dim,).

        Args:
            texts: Raw strings, which are tokenised, or lists of words. A text may have several sentences.
            pool: ``mean`` or ``max`` over the words of a text; a text without words gives zeros.
            layers: ``average``, ``top``, a layer's number, a `Mix`, or another choice that `polyseme.choose` knows.
            normalize: Scale vectors to length 1, so that dot products are cosine similarities.
        """
        if self.settings.boundaries:
            raise ConfigError("encode pools over the words of a text; load the model without boundaries=True")
        return encode_texts(self, texts, pool=pool, layers=layers, normalize=normalize)

    def similarity(self, first: Texts | np.ndarray, second: Texts | np.ndarray) -> np.ndarray:
        """Cosine similarity (n, m) of two lists of texts, or of vectors that `encode` returned."""
        return text_similarity(self.encode, first, second)

    def embed_text(self, text: str) -> Iterator[EmbeddedSentence]:
        """Split raw text into sentences and words and embed them; each word's place in the text is kept."""
        if not isinstance(text, str):
            raise InputError(
                f"embed_text takes one string of raw text, not {type(text).__name__}; embed takes word lists"
            )
        read: deque[TokenizedSentence] = deque()

        def sentences() -> Iterator[list[str]]:
            for sentence in tokenize(text):
                read.append(sentence)
                yield sentence.words

        return (EmbeddedSentence(*read.popleft(), vectors) for vectors in self.embed(sentences()))

    def embed_documents(self, documents: Iterable[Sequence[Sequence[str]]]) -> Iterator[list[np.ndarray]]:
        """Embed sentences in the context of their document; only ELMo, which carries its state on, can."""
        raise ConfigError(f"{self.name} reads each sentence by itself; only an ELMo model embeds whole documents")

    def strategy(self) -> EmbedStrategy:
        """The embedding strategy for the current device, settings and weights."""
        return ForwardStrategy(self)

    def prepare(self) -> None:
        """Do now what would otherwise be done at the first batch: weights packed, or sent to the device."""
        self.strategy()

    def check_precision(self) -> None:
        """Refuse a precision that this encoder cannot compute in on its device."""
        if self.settings.precision != "float32":
            raise ConfigError(
                f"{self.name} computes in float32; precision={self.settings.precision!r} is for ELMo models"
            )

    def __sklearn_clone__(self) -> Encoder:
        """Let scikit-learn share an encoder between clones of an estimator, not copy its weights."""
        return self

    @property
    def device(self) -> torch.device:
        """The device that the weights are on."""
        return next(self.parameters()).device

    @property
    def word_budget(self) -> int:
        """Words computed at a time: the setting, or what suits the device."""
        return self.strategy().word_budget(self.settings)

    def misread(self, words: Sequence[str]) -> Counter[str]:
        """Words of a sentence that the model cannot read as they are, by what happens to them: ``cropped`` and so on.

        A count may be zero. What is counted can be said as "3 words were ...".
        """
        return Counter()

    def describe(self) -> dict[str, str | int]:
        """Facts about the model for people, by name: parameters, layers, dimensions."""
        parameters = sum(weight.numel() for weight in self.parameters())
        return {"parameters": parameters, "layers of vectors": self.num_layers, "dimensions": self.dim}

    def __repr__(self) -> str:
        """One line: name, layers, dimensions, parameters, precision and device, instead of torch's list of modules."""
        parameters = sum(weight.numel() for weight in self.parameters())
        shape = f"{self.num_layers} layer{'s' * (self.num_layers != 1)} of {self.dim} dimensions"
        size = f"{parameters / 1e6:,.1f} million parameters" if parameters >= 1e5 else f"{parameters:,} parameters"
        return f"<{type(self).__name__} {self.name}: {shape}, {size}, {self.settings.precision} on {self.device}>"

    def fingerprint(self) -> str:
        """A SHA-256 of settings and weights: two encoders with the same one give the same vectors."""
        digest = hashlib.sha256(type(self).__name__.encode())
        hash_weights(digest, self.state_dict())
        return digest.hexdigest()


class ForwardStrategy(EmbedStrategy):
    """Plain torch: pads a batch and runs `Encoder.forward`, for any encoder on any device."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    def word_budget(self, settings: EmbedSettings) -> int:
        """Words computed at a time: the setting, or the default."""
        return settings.word_budget or WORD_BUDGET

    def embed(self, sentences: Iterable[Sequence[str]], settings: EmbedSettings) -> Iterator[np.ndarray]:
        """Arrays (layers, words, dim), one a sentence, in order, while sentences come."""
        stream = windows(check_sentences(sentences), sentence_size, window_words(self.word_budget(settings)))
        return map_windows(
            partial(self._embed_window, settings=settings), stream, settings.workers, self.encoder.device
        )

    def _embed_window(self, window: list[list[str]], settings: EmbedSettings) -> list[np.ndarray]:
        start = partial(self._start_batch, dtype=getattr(torch, settings.dtype))
        return compute_in_order(window, sentence_size, self.word_budget(settings), start)

    @torch.inference_mode()
    def _start_batch(self, sentences: list[list[str]], dtype: torch.dtype) -> Callable[[], list[np.ndarray]]:
        encoder, training = self.encoder, self.encoder.training
        if training:
            encoder.eval()
        try:
            with torch.autocast(encoder.device.type, enabled=False):  # a caller's autocast would change the numbers
                layers, mask = encoder(encoder.collate(sentences).to(encoder.device))
        finally:
            if training:
                encoder.train()
        array = layers.to(dtype).cpu().numpy()
        lengths = mask.sum(dim=1).tolist()
        return partial(list, [np.array(array[row, :, :length]) for row, length in enumerate(lengths)])


def count_words(vectors: np.ndarray) -> int:
    """Number of words of an embedded sentence (layers, words, dim)."""
    return vectors.shape[1]


def hash_weights(digest: _Hash, weights: Mapping[str, Tensor]) -> None:
    """Add names and bytes of weights to a digest."""
    for name, tensor in weights.items():
        digest.update(name.encode())
        digest.update(tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
