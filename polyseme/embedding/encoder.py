"""A network that gives word vectors, and one way of embedding for all: streaming, order kept, memory constant."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from polyseme.embedding.batching import compute_in_order, window_words, windows
from polyseme.embedding.interfaces import Batch, EmbedSettings, Piece
from polyseme.embedding.sentences import check_sentences, size
from polyseme.errors import ConfigError, InputError
from polyseme.parallel import map_processes, map_threads
from polyseme.text.tokenizer import TokenizedSentence, tokenize

if TYPE_CHECKING:
    from hashlib import _Hash

WORD_BUDGET = 1024  # where nobody says otherwise


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

    @property
    def word_budget(self) -> int:
        """Words computed at a time."""
        return self.settings.word_budget or WORD_BUDGET

    def check_precision(self) -> None:
        """Refuse a precision that this encoder cannot compute in where it is."""
        if self.settings.precision != "float32":
            raise ConfigError(
                f"{self.name} computes in float32; precision={self.settings.precision!r} is for ELMo models"
            )

    def prepare(self) -> None:
        """Do now what would else be done at the first batch."""
        return

    def begin_batch(self, sentences: Sequence[Sequence[str]]) -> Callable[[], Sequence[np.ndarray]]:
        """Begin to embed some sentences in one pass; what is returned waits for their vectors and gives them.

        `embed` calls it with as many sentences as the budget allows, and for the next ones before it waits.
        """
        return partial(list, self._embed_batch(sentences))

    @torch.inference_mode()
    def _embed_batch(self, sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
        training = self.training
        if training:
            self.eval()
        try:
            with torch.autocast(self.device.type, enabled=False):  # a caller's autocast would change the numbers
                layers, mask = self(self.collate(sentences).to(self.device))
        finally:
            if training:
                self.train()
        array = layers.to(getattr(torch, self.settings.dtype)).cpu().numpy()
        lengths = mask.sum(dim=1).tolist()
        return [np.array(array[row, :, :length]) for row, length in enumerate(lengths)]

    def embed(self, sentences: Iterable[Sequence[str]]) -> Iterator[np.ndarray]:
        """For each sentence, a list of words, an array (layers, words, dim), in order.

        Sentences are taken as they are needed, a few thousand words ahead, so a stream of any length takes constant
        memory. A sentence's vectors depend on nothing but the sentence.
        """
        ahead = self._windows(sentences)
        workers, on_cpu = self.settings.workers, self.device.type == "cpu"
        if workers > 1 and not on_cpu:
            raise ConfigError(f"workers={workers} is for the CPU; on {self.device} use one, and a larger word_budget")
        if workers > 1:
            self.prepare()  # once, to be shared
            start = partial(torch.set_num_threads, max(1, torch.get_num_threads() // workers))
            embedded = map_processes(partial(_embed_window, self), ahead, workers, workers + 1, start)
        elif on_cpu:
            embedded = map(partial(_embed_window, self), ahead)
        else:  # the device stays busy while the caller reads the next window
            embedded = map_threads(partial(_embed_window, self), ahead)
        return (vectors for window in embedded for vectors in window)

    def _windows(self, sentences: Iterable[Sequence[str]]) -> Iterator[list[Any]]:
        """Sentences, some thousand words at a time, as `_beginning` takes them."""
        return windows(check_sentences(sentences), size, window_words(self.word_budget))

    def _beginning(self, window: list[Any]) -> Callable[[list[Any]], Callable[[], Sequence[np.ndarray]]]:
        """How to begin batches of a window."""
        return self.begin_batch

    def embed_text(self, text: str) -> Iterator[Piece]:
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

        return (Piece(*read.popleft(), vectors) for vectors in self.embed(sentences()))

    def embed_documents(self, documents: Iterable[Sequence[Sequence[str]]]) -> Iterator[list[np.ndarray]]:
        """Embed sentences in the context of their document; only ELMo carries its state on and can."""
        raise ConfigError(f"{self.name} reads each sentence by itself; only an ELMo model embeds whole documents")

    def misread(self, words: Sequence[str]) -> Counter[str]:
        """Words of a sentence that the model cannot read as they are, by what happens to them: ``cropped`` and so on.

        A count may be zero. What is counted can be said as "3 words were ...".
        """
        return Counter()

    def remarks(self) -> list[str]:
        """What is worth saying after words were embedded."""
        return []

    def describe(self) -> dict[str, str | int]:
        """What a person wants to know of the model, by name."""
        parameters = sum(weight.numel() for weight in self.parameters())
        return {"parameters": parameters, "layers of vectors": self.num_layers, "dimensions": self.dim}

    def fingerprint(self) -> str:
        """A SHA-256 of settings and weights: two encoders with the same one give the same vectors."""
        digest = hashlib.sha256(type(self).__name__.encode())
        hash_weights(digest, self.state_dict())
        return digest.hexdigest()


def hash_weights(digest: _Hash, weights: Mapping[str, Tensor]) -> None:
    """Add names and bytes to a digest."""
    for name, tensor in weights.items():
        digest.update(name.encode())
        digest.update(tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)


def _embed_window(encoder: Encoder, window: list[Any]) -> list[np.ndarray]:
    """The vectors of some sentences, computed in batches of like length."""
    return compute_in_order(window, size, encoder.word_budget, encoder._beginning(window))
