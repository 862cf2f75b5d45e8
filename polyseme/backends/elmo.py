"""ELMo as an encoder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from polyseme.embedding.batching import WINDOW, compute_in_order, windows
from polyseme.embedding.encoder import Encoder
from polyseme.embedding.interfaces import EmbedSettings
from polyseme.embedding.sentences import check_sentences, size
from polyseme.errors import InputError
from polyseme.model.bilm import BiLM, BiLMState, WordBatch
from polyseme.model.config import to_dict
from polyseme.text.words import WordEncoder

OPENING, CLOSING = 0, 1  # rows of the boundary words among the distinct words


class StreamStep(NamedTuple):
    """One step of several streams that run side by side."""

    vectors: list[np.ndarray]  # (layers, words, dim) of each stream's sentence
    state: BiLMState  # where the streams stand now


class ElmoEncoder(Encoder):
    """A biLM together with the way it reads words. Stateless: a sentence's vectors depend on the sentence alone."""

    def __init__(
        self, bilm: BiLM, words: WordEncoder, settings: EmbedSettings | None = None, name: str = "elmo"
    ) -> None:
        super().__init__()
        self.bilm = bilm
        self.words = words
        self.settings = settings or EmbedSettings()
        self.name = name
        self.dim = bilm.config.dim
        self.num_layers = bilm.config.num_layers

    def collate(self, sentences: Sequence[Sequence[str]]) -> WordBatch:
        """Boundary words around each sentence, distinct words encoded as characters once."""
        return self._collate([[words] for words in check_sentences(sentences)])

    def forward(self, batch: WordBatch) -> tuple[Tensor, Tensor]:
        """All layers (B, L, T, D) and the mask (B, T), with or without the boundary words, as the settings say."""
        layers, mask = self.forward_with_boundaries(batch)
        return (layers, mask) if self.settings.boundaries else drop_boundaries(layers, mask)

    def forward_with_boundaries(self, batch: WordBatch) -> tuple[Tensor, Tensor]:
        """The same, the words that open and close a sentence always among them."""
        layers, _ = self.bilm(batch)
        return layers, batch.mask

    def embed_documents(self, documents: Iterable[Sequence[Sequence[str]]]) -> Iterator[list[np.ndarray]]:
        """Embed sentences in the context of their document: one list of arrays (layers, words, dim) a document.

        State runs on from sentence to sentence, forward from the document's beginning and backward from its end, as it
        did over running text in training; nothing is carried from one document to the next.
        """
        checked = (_check_document(document, number) for number, document in enumerate(documents))
        budget = self.settings.word_budget
        for window in windows(checked, _document_size, WINDOW * budget):
            yield from compute_in_order(window, _document_size, budget, self._embed_documents)

    def embed_streams(
        self, batches: Iterable[Sequence[Sequence[str]]], state: BiLMState | None = None
    ) -> Iterator[StreamStep]:
        """Embed as bilm-tf and AllenNLP do by default: sentence k of a batch starts where sentence k before it ended.

        Both directions take over the state in which they finished the sentence before. The caller holds the state; a
        batch with fewer sentences leaves the other streams as they were, one with more starts new streams.
        """
        for batch in batches:
            vectors, state = self._stream_step(list(check_sentences(batch)), state)
            yield StreamStep(vectors, state)

    @torch.inference_mode()
    def embed_words(self, words: Iterable[str]) -> np.ndarray:
        """Context-free vectors (words, dim): layer 0, without running the LSTM, for any list of words."""
        words, budget = list(words), self.settings.word_budget
        pieces = [self._embed_words(words[first : first + budget]) for first in range(0, len(words), budget)]
        return np.concatenate(pieces) if pieces else np.zeros((0, self.dim), dtype=self.settings.dtype)

    def fingerprint(self) -> str:
        """A SHA-256 of settings and weights: two encoders with the same one give the same vectors."""
        digest = hashlib.sha256(json.dumps(to_dict(self.bilm.config), sort_keys=True).encode())
        digest.update(repr((self.words.characters, self.words.longest)).encode())
        for word in self.words.vocabulary or ():
            digest.update(word.encode("utf-8", "backslashreplace") + b"\n")
        for name, tensor in self.bilm.state_dict().items():
            digest.update(name.encode())
            digest.update(tensor.cpu().contiguous().view(torch.uint8).numpy().data)
        return digest.hexdigest()

    def _collate(self, rows: Sequence[Sequence[Sequence[str]]]) -> WordBatch:
        """Rows of sentences, each sentence between its boundary words."""
        distinct: dict[str, int] = {}
        places = [
            [
                place
                for words in row
                for place in _enclose(distinct.setdefault(word, len(distinct) + 2) for word in words)
            ]
            for row in rows
        ]
        encoded = self.words.encode(list(distinct))
        lengths = torch.tensor([len(row) for row in places], dtype=torch.int64)
        padded = np.zeros((len(places), max(map(len, places), default=0)), dtype=np.int64)
        for number, row in enumerate(places):
            padded[number, : len(row)] = row
        tensors = [
            None if array is None else torch.from_numpy(array)
            for array in (encoded.characters, encoded.lengths, encoded.ids)
        ]
        return WordBatch(torch.from_numpy(padded), lengths, *tensors)

    def _embed_words(self, words: Sequence[str]) -> np.ndarray:
        batch = self.collate([words]).to(self.device)
        return self._array(self.bilm.encode_words(batch)[batch.places[0, 1:-1]])

    @torch.inference_mode()
    def _embed_documents(self, documents: list[list[list[str]]]) -> list[list[np.ndarray]]:
        layers, _ = self.bilm(self._collate(documents).to(self.device))
        array = self._array(layers)
        vectors = []
        for row, document in enumerate(documents):
            ends = np.cumsum([0, *map(size, document)])
            vectors.append([self._cut(array[row, :, begin:end]) for begin, end in pairwise(ends)])
        return vectors

    @torch.inference_mode()
    def _stream_step(self, sentences: list[list[str]], state: BiLMState | None) -> tuple[list[np.ndarray], BiLMState]:
        streams = len(sentences)
        if state is not None and _shapes(state) != _shapes(self.bilm.initial_state(0)):
            raise InputError("the state is of a model of another shape")
        before = self.bilm.initial_state(streams) if state is None else _first_streams(state, streams)
        layers, after = self.bilm(self._collate([[words] for words in sentences]).to(self.device), before)
        if state is not None and state.hidden.shape[2] > streams:
            after = BiLMState(
                *(torch.cat([new, old[:, :, streams:]], dim=2) for new, old in zip(after, state, strict=True))
            )
        array = self._array(layers)
        return [self._cut(array[row, :, : size(words)]) for row, words in enumerate(sentences)], after

    def _array(self, layers: Tensor) -> np.ndarray:
        return layers.to(getattr(torch, self.settings.dtype)).cpu().numpy()

    def _cut(self, vectors: np.ndarray) -> np.ndarray:
        return np.array(vectors if self.settings.boundaries else vectors[:, 1:-1])


def drop_boundaries(layers: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Take away the first and last word of each sentence, from layers (B, L, T, D) and mask (B, T)."""
    inner = mask[:, 2:]
    return layers[:, :, 1:-1] * inner[:, None, :, None], inner


def _enclose(places: Iterable[int]) -> list[int]:
    return [OPENING, *places, CLOSING]


def _shapes(state: BiLMState) -> list[tuple[int, ...]]:
    return [(layers, directions, width) for layers, directions, _, width in (part.shape for part in state)]


def _first_streams(state: BiLMState, streams: int) -> BiLMState:
    """The states of so many streams; streams that are new start from nothing."""
    missing = streams - state.hidden.shape[2]
    if missing <= 0:
        return BiLMState(*(part[:, :, :streams] for part in state))
    return BiLMState(
        *(torch.cat([part, part.new_zeros(*part.shape[:2], missing, part.shape[3])], dim=2) for part in state)
    )


def _check_document(document: Sequence[Sequence[str]], number: int) -> list[list[str]]:
    if isinstance(document, str):
        raise InputError(f"document {number} is a bare string where a list of sentences, each a list of words, belongs")
    return list(check_sentences(document))


def _document_size(document: list[list[str]]) -> int:
    return sum(map(size, document))
