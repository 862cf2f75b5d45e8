"""A network that gives word vectors, and one way of embedding for all: streaming, order kept, memory constant."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from polyseme.embedding.batching import WINDOW, compute_in_order, windows
from polyseme.embedding.interfaces import Batch, EmbedSettings, Piece
from polyseme.embedding.processes import Pool
from polyseme.embedding.sentences import check_sentences, size
from polyseme.errors import ConfigError, InputError
from polyseme.text.tokenizer import Sentence, tokenize


class Encoder(nn.Module, ABC):
    """What a task trains through, and an `Embedder`. Gradients flow through `forward`; `embed` keeps none."""

    name: str
    dim: int
    num_layers: int
    settings: EmbedSettings

    @abstractmethod
    def collate(self, sentences: Sequence[Sequence[str]]) -> Batch:
        """Make sentences ready; cheap, and safe to do in a data loader's process."""

    @abstractmethod
    def forward(self, batch: Any) -> tuple[Tensor, Tensor]:  # noqa: ANN401 - its own collate's batch
        """All layers (B, L, T, D), zero where there is no word, and the mask (B, T)."""

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def embed(self, sentences: Iterable[Sequence[str]]) -> Iterator[np.ndarray]:
        """For each sentence, a list of words, an array (layers, words, dim), in order.

        Sentences are taken as they are needed, a few thousand words ahead, so a stream of any length takes constant
        memory. A sentence's vectors depend on nothing but the sentence.
        """
        ahead = windows(check_sentences(sentences), size, WINDOW * self.settings.word_budget)
        workers = self.settings.workers
        if workers == 1:
            return (vectors for window in ahead for vectors in _embed_window(self, window))
        if self.device.type != "cpu":
            raise ConfigError(f"workers={workers} is for the CPU; on {self.device} use one, and a larger word_budget")
        return Pool(self, _embed_window, workers).map(ahead)

    def embed_text(self, text: str) -> Iterator[Piece]:
        """Split raw text into sentences and words and embed them; each word's place in the text is kept."""
        if not isinstance(text, str):
            raise InputError(
                f"embed_text takes one string of raw text, not {type(text).__name__}; embed takes word lists"
            )
        read: deque[Sentence] = deque()

        def sentences() -> Iterator[list[str]]:
            for sentence in tokenize(text):
                read.append(sentence)
                yield sentence.words

        return (Piece(*read.popleft(), vectors) for vectors in self.embed(sentences()))


def _embed_window(encoder: Encoder, window: list[list[str]]) -> list[np.ndarray]:
    """The vectors of some sentences, computed in batches of like length."""
    return compute_in_order(window, size, encoder.settings.word_budget, lambda batch: _embed_batch(encoder, batch))


@torch.inference_mode()
def _embed_batch(encoder: Encoder, sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
    """The vectors of some sentences in one pass."""
    training = encoder.training
    if training:
        encoder.eval()
    try:
        with torch.autocast(encoder.device.type, enabled=False):  # a caller's autocast would change the numbers
            layers, mask = encoder(encoder.collate(sentences).to(encoder.device))
    finally:
        if training:
            encoder.train()
    array = layers.to(getattr(torch, encoder.settings.dtype)).cpu().numpy()
    lengths = mask.sum(dim=1).tolist()
    return [np.array(array[row, :, :length]) for row, length in enumerate(lengths)]
