"""ELMo as an encoder."""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from polyseme.backends.elmo import strategy as fast
from polyseme.backends.elmo.strategy import FastBiLM
from polyseme.backends.elmo.tensors import TensorBiLM
from polyseme.backends.elmo.word_table import CacheReport
from polyseme.embedding.batching import compute_in_order, window_words, windows
from polyseme.embedding.encoder import Encoder, hash_weights
from polyseme.embedding.interfaces import EmbedSettings
from polyseme.embedding.sentences import Numbered, check_sentences, numbered_windows, size
from polyseme.errors import InputError
from polyseme.model.bilm import BiLM, BiLMState, WordBatch
from polyseme.model.config import to_dict
from polyseme.text.word_encoder import CLOSING, OPENING, WordEncoder

GPU_WINDOW = 1 << 27  # numbers of a layer that are read ahead
Item = TypeVar("Item")
Wait = Callable[[], list[np.ndarray]]


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
        self._prepared: FastBiLM | None = None
        self._prepared_from: object = None
        self._most_words = sys.maxsize
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

    @property
    def word_budget(self) -> int:
        """Words computed at a time; halved for good whenever they were too many for the memory of a GPU."""
        return min(self.settings.word_budget or fast.word_budget(self.bilm), self._most_words)

    def check_precision(self) -> None:
        """Refuse a precision that is not for this device."""
        fast.check_precision(self.settings.precision, self.device.type)

    def prepare(self) -> None:
        """Make the weights ready for embedding: packed for this processor, or sent to the GPU in their precision."""
        self._fast()

    def begin_batch(self, sentences: Sequence[Sequence[str]]) -> Callable[[], Sequence[np.ndarray]]:
        """Begin to embed some sentences, by the quickest means there is."""
        prepared = self._fast()
        if prepared is None:
            return super().begin_batch(sentences)
        return self._begin(partial(prepared.begin, boundaries=self.settings.boundaries), sentences)

    def _windows(self, sentences: Iterable[Sequence[str]]) -> Iterator[list[Any]]:
        if self.device.type != "cuda" or self._fast() is None:
            return super()._windows(sentences)
        check_sentences(sentences)
        return numbered_windows(sentences, max(self.word_budget, GPU_WINDOW // self.dim))

    def _beginning(self, window: list[Any]) -> Callable[[list[Any]], Callable[[], Sequence[np.ndarray]]]:
        prepared = self._fast()
        if not isinstance(window, Numbered) or not isinstance(prepared, TensorBiLM):
            return self.begin_batch
        begin = prepared.beginning(window, boundaries=self.settings.boundaries)
        return partial(self._begin, begin)

    def remarks(self) -> list[str]:
        """What is worth saying after words were embedded."""
        report = self.cache_report
        return [f"{report.hit_rate:.1%} of the words had been encoded before"] if report.words else []

    @property
    def cache_report(self) -> CacheReport:
        """How many words were embedded so far, and how many of them had to be encoded from their spelling."""
        return self._prepared.table.report if self._prepared else CacheReport(0, 0)

    def embed_documents(self, documents: Iterable[Sequence[Sequence[str]]]) -> Iterator[list[np.ndarray]]:
        """Embed sentences in the context of their document: one list of arrays (layers, words, dim) a document.

        State runs on from sentence to sentence, forward from the document's beginning and backward from its end, as it
        did over running text in training; nothing is carried from one document to the next.
        """
        checked = (_check_document(document, number) for number, document in enumerate(documents))
        budget = self.word_budget
        for window in windows(checked, _document_size, window_words(budget)):
            yield from compute_in_order(window, _document_size, budget, self._begin_documents)

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
        words, budget = list(words), self.word_budget
        pieces = [self._embed_words(words[first : first + budget]) for first in range(0, len(words), budget)]
        return np.concatenate(pieces) if pieces else np.zeros((0, self.dim), dtype=self.settings.dtype)

    def misread(self, words: Sequence[str]) -> Counter[str]:
        """Words whose spelling is longer than the model reads."""
        characters = self.words.characters
        if characters is None:
            return Counter()
        limit = f"{characters.max_characters - 2} {'bytes' if characters.size == 261 else 'characters'}"
        return Counter({f"longer than the {limit} this model reads, and cropped": sum(map(self.words.crops, words))})

    def fingerprint(self) -> str:
        """A SHA-256 of settings and weights: two encoders with the same one give the same vectors."""
        digest = hashlib.sha256(json.dumps(to_dict(self.bilm.config), sort_keys=True).encode())
        digest.update(repr((self.words.characters, self.words.longest)).encode())
        for word in self.words.vocabulary or ():
            digest.update(word.encode("utf-8", "backslashreplace") + b"\n")
        hash_weights(digest, self.bilm.state_dict())
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

    def _fast(self) -> FastBiLM | None:
        """The weights made ready for embedding, anew when they have changed; None where the plain way must do."""
        source = self._source()
        if self._prepared_from != source:
            self._prepared = fast.prepare(self.bilm, self.words, self.settings)
            self._prepared_from = source
        return self._prepared

    def _source(self) -> object:
        """What the prepared weights are made from; it changes when weights are changed, by torch's operations."""
        weights = [(w.data_ptr(), 0 if w.is_inference() else w._version) for w in self.bilm.parameters()]
        return self.settings.precision, self.settings.cache_words, weights

    def __getstate__(self) -> dict[str, Any]:
        state = dict(vars(self))
        if not fast.can_travel(self._prepared):
            state.update(_prepared=None, _prepared_from=None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self._prepared is not None:  # the same weights, in another place
            self._prepared_from = self._source()

    def _begin(
        self, begin: Callable[..., Callable[[], list[np.ndarray]]], items: Sequence[Item]
    ) -> Callable[[], list[np.ndarray]]:
        """Begin to embed, in halves if a GPU's memory is too small for all."""
        try:
            return begin(items, dtype=self.settings.dtype)
        except torch.OutOfMemoryError:
            if len(items) < 2:
                raise
        # Out of the handler, so that nothing of what failed is held any more.
        torch.cuda.empty_cache()
        self._most_words = max(1, self.word_budget // 2)
        middle = len(items) // 2
        parts = [self._begin(begin, half)() for half in (items[:middle], items[middle:])]
        return partial(list, chain(*parts))

    def _embed_words(self, words: Sequence[str]) -> np.ndarray:
        prepared = self._fast()
        if prepared is not None:
            return prepared.embed_words(words).astype(self.settings.dtype, copy=False)
        batch = self.collate([words]).to(self.device)
        return self._array(self.bilm.encode_words(batch)[batch.places[0, 1:-1]])

    def _begin_documents(self, documents: list[list[list[str]]]) -> Callable[[], list[list[np.ndarray]]]:
        prepared = self._fast()
        if prepared is None:
            with torch.inference_mode():
                arrays = self._array(self.bilm(self._collate(documents).to(self.device))[0])
            wait = partial(list, arrays)
        else:
            wait = self._begin(prepared.begin_running, documents)

        def finish() -> list[list[np.ndarray]]:
            vectors = []
            for array, document in zip(wait(), documents, strict=True):
                ends = np.cumsum([0, *map(size, document)])
                vectors.append([self._cut(array[:, begin:end]) for begin, end in pairwise(ends)])
            return vectors

        return finish

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
