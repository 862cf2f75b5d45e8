"""The ELMo encoder: a biLM with its word encoder, and the choice of its embedding strategy."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from polyseme.backends.elmo.native import NativeStrategy
from polyseme.backends.elmo.strategy import ElmoStrategy, Sentences, cut_sentence
from polyseme.backends.elmo.tensors import TensorStrategy
from polyseme.backends.elmo.word_table import CacheReport, WordTable
from polyseme.embedding.batching import Wait, check_sentences, sentence_size
from polyseme.embedding.encoder import Encoder, ForwardStrategy, count_words, hash_weights
from polyseme.embedding.interfaces import EmbedSettings
from polyseme.errors import ConfigError, FormatError, InputError
from polyseme.formats import StoredModel, open_model, resolve_model_path
from polyseme.formats import native as native_format
from polyseme.formats.stored import Precision as StoredPrecision
from polyseme.formats.stored import release_mapped_pages
from polyseme.kernels import native
from polyseme.model.bilm import BiLM, BiLMState, WordBatch
from polyseme.model.config import to_dict
from polyseme.progress import track
from polyseme.text.word_encoder import BOUNDARIES, CLOSING, OPENING, WordEncoder

PROBE = "word"  # embedded when a model is opened, to see that its vectors are finite
CACHE_WORDS = {"cpu": 20_000, "cuda": 250_000}


class StreamStep(NamedTuple):
    """One step of stateful embedding: vectors of each stream's sentence, and the state after it."""

    vectors: list[np.ndarray]  # (layers, words, dim) of each stream's sentence
    state: BiLMState  # where the streams stand now


class ElmoEncoder(Encoder):
    """The ELMo encoder: a biLM and its word encoder. Stateless: a sentence's vectors depend on the sentence alone."""

    def __init__(
        self, bilm: BiLM, words: WordEncoder, settings: EmbedSettings | None = None, name: str = "elmo"
    ) -> None:
        super().__init__()
        self.bilm = bilm
        self.words = words
        self.settings = settings or EmbedSettings()
        self.name = name
        self._prepared: ElmoStrategy | None = None
        self._prepared_from: object = None
        self.dim = bilm.config.dim
        self.num_layers = bilm.config.num_layers

    @classmethod
    def load(
        cls,
        path: str | Path | None = None,
        settings: EmbedSettings | None = None,
        vocabulary: str | Path | None = None,
    ) -> ElmoEncoder:
        """Load an ELMo model of any format, without its softmax head; `polyseme.load` also sets device and precision.

        Args:
            path: A file, folder, zip or tar of a model. None, or ``english``: the model that ships.
            settings: How to embed.
            vocabulary: The words of a bilm-tf model that reads word ids, when they are not beside it.
        """
        path = Path(resolve_model_path(path))
        stored = open_model(path, vocabulary)
        encoder = cls(stored.build(), stored.words, settings, name=_name(path))
        encoder.check_vectors(path)
        return encoder

    @torch.inference_mode()
    def check_vectors(self, path: Path) -> None:
        """Refuse a model whose vectors overflow: its weights are finite, but far too large."""
        layers, _ = self.bilm(collate_rows(self.words, [[[PROBE]]]))
        release_mapped_pages(*self.bilm.parameters())
        if not layers.isfinite().all():
            raise FormatError(f"{path} gives vectors that are not finite (NaN or infinity); its weights are damaged")

    def save(self, path: str | Path, precision: StoredPrecision = "fp32", overwrite: bool = False) -> None:
        """Save the encoder as a folder that `polyseme.load` opens; weights in fp32, fp16 or int8, no softmax head."""
        stored = StoredModel(self.bilm.config, self.bilm.state_dict(), self.words, format="polyseme folder")
        native_format.save(stored, Path(path), precision, overwrite)

    from_pretrained = load
    save_pretrained = save

    def collate(self, sentences: Sequence[Sequence[str]]) -> WordBatch:
        """A padded batch: boundary words around each sentence, distinct words encoded once."""
        return collate_rows(self.words, [[words] for words in check_sentences(sentences)])

    def forward(self, batch: WordBatch) -> tuple[Tensor, Tensor]:
        """All layers (B, L, T, D) and the mask (B, T), with or without the boundary words, as the settings say."""
        layers, mask = self.forward_with_boundaries(batch)
        return (layers, mask) if self.settings.boundaries else drop_boundaries(layers, mask)

    def forward_with_boundaries(self, batch: WordBatch) -> tuple[Tensor, Tensor]:
        """All layers and the mask, boundary words always included."""
        layers, _ = self.bilm(batch)
        return layers, batch.mask

    def strategy(self) -> ElmoStrategy:
        """The embedding strategy for the current device, precision and weights, rebuilt when these change."""
        source = self._source()
        if self._prepared_from != source:
            self._prepared = _choose_strategy(self.bilm, self.words, self.settings)
            self._prepared_from = source
        return self._prepared or TorchStrategy(self)

    def check_precision(self) -> None:
        """Refuse a precision that this device cannot compute in."""
        check_precision(self.settings.precision, self.device.type)

    @property
    def cache_report(self) -> CacheReport:
        """Word cache statistics: words embedded so far, and how many had to be encoded from their spelling."""
        return self._prepared.table.report if self._prepared else CacheReport(0, 0)

    def embed_documents(self, documents: Iterable[Sequence[Sequence[str]]]) -> Iterator[list[np.ndarray]]:
        """Embed sentences in the context of their document: one list of arrays (layers, words, dim) a document.

        State is carried from sentence to sentence, forward from the document's beginning and backward from its end, as
        it was over running text in training; nothing is carried from one document to the next.
        """
        embedded = self.strategy().embed_documents(documents, self.settings)
        return track(embedded, "embedding", unit="documents", words=lambda each: sum(map(count_words, each)))

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

    def embed_words(self, words: Iterable[str]) -> np.ndarray:
        """Context-free vectors (words, dim): layer 0, without running the LSTM, for any list of words."""
        words, budget, strategy = list(words), self.word_budget, self.strategy()
        parts = [strategy.embed_words(words[first : first + budget]) for first in range(0, len(words), budget)]
        dtype = self.settings.dtype
        return np.concatenate(parts).astype(dtype, copy=False) if parts else np.zeros((0, self.dim), dtype)

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

    def _source(self) -> object:
        """What the strategy is made from: it changes when settings or weights change, by torch's operations."""
        weights = [(w.data_ptr(), 0 if w.is_inference() else w._version) for w in self.bilm.parameters()]
        return self.settings.precision, self.settings.cache_words, weights

    def __getstate__(self) -> dict[str, Any]:
        state = dict(vars(self))
        if not isinstance(self._prepared, NativeStrategy):  # tensors on a GPU stay where they are
            state.update(_prepared=None, _prepared_from=None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self._prepared is not None:  # the same weights, in another place
            self._prepared_from = self._source()

    @torch.inference_mode()
    def _stream_step(self, sentences: list[list[str]], state: BiLMState | None) -> tuple[list[np.ndarray], BiLMState]:
        streams = len(sentences)
        if state is not None and _shapes(state) != _shapes(self.bilm.initial_state(0)):
            raise InputError("the state is of a model of another shape")
        before = self.bilm.initial_state(streams) if state is None else _first_streams(state, streams)
        layers, after = self.bilm(collate_rows(self.words, [[words] for words in sentences]).to(self.device), before)
        if state is not None and state.hidden.shape[2] > streams:
            after = BiLMState(
                *(torch.cat([new, old[:, :, streams:]], dim=2) for new, old in zip(after, state, strict=True))
            )
        array = layers.to(getattr(torch, self.settings.dtype)).cpu().numpy()
        ends = map(sentence_size, sentences)
        return [cut_sentence(array[row, :, :end], self.settings) for row, end in enumerate(ends)], after


class TorchStrategy(ElmoStrategy):
    """Plain torch, through `BiLM.forward`: for weights and devices that have no faster way."""

    def __init__(self, encoder: ElmoEncoder) -> None:
        self.encoder = encoder
        self.table = WordTable(0)
        self._forward = ForwardStrategy(encoder)

    def word_budget(self, settings: EmbedSettings) -> int:
        """Words computed at a time: the setting, or the default."""
        return self._forward.word_budget(settings)

    def embed(self, sentences: Iterable[Sequence[str]], settings: EmbedSettings) -> Iterator[np.ndarray]:
        """Arrays (layers, words, dim), one a sentence, in order; each sentence starts from a fresh state."""
        return self._forward.embed(sentences, settings)

    @torch.inference_mode()
    def start_documents(self, documents: list[Sentences], settings: EmbedSettings) -> Wait[np.ndarray]:
        """Arrays (layers, words, dim) of whole documents, boundary words included, state carried on."""
        layers, _ = self.encoder.bilm(collate_rows(self.encoder.words, documents).to(self.encoder.device))
        return partial(list, layers.to(getattr(torch, settings.dtype)).cpu().numpy())

    @torch.inference_mode()
    def embed_words(self, words: Sequence[str]) -> np.ndarray:
        """Context-free vectors (words, dim) in float32: layer 0."""
        batch = self.encoder.collate([words]).to(self.encoder.device)
        return self.encoder.bilm.encode_words(batch)[batch.places[0, 1:-1]].float().cpu().numpy()


def check_precision(precision: str, device: str) -> None:
    """Refuse a precision that a device (``cpu``, ``cuda``) cannot compute in."""
    if precision == "int8" and device != "cpu":
        raise ConfigError(f"precision='int8' is for the CPU; on {device} use 'float16' or 'bfloat16'")
    if precision == "int8" and native.library() is None:
        raise ConfigError(
            "precision='int8' needs the compiled kernels, and this install has none for this processor; "
            "install polyseme again where there is a C compiler, or use 'float32'"
        )
    if precision not in ("float32", "int8") and device != "cuda":
        raise ConfigError(f"precision={precision!r} is for a GPU; on {device} use 'float32', or 'int8' on a CPU")


def _choose_strategy(bilm: BiLM, words: WordEncoder, settings: EmbedSettings) -> ElmoStrategy | None:
    """Native kernels on a CPU, tensors on a GPU; None where only plain torch will do."""
    weight = next(bilm.parameters())
    device = weight.device.type
    check_precision(settings.precision, device)
    if weight.dtype != torch.float32 or device not in CACHE_WORDS:
        return None
    cache_words = CACHE_WORDS[device] if settings.cache_words is None else settings.cache_words
    if device == "cuda":
        return TensorStrategy(bilm, words, precision=settings.precision, cache_words=cache_words)
    if native.library() is None:
        return None
    return NativeStrategy(bilm, words, int8=settings.precision == "int8", cache_words=cache_words)


def collate_rows(encoder: WordEncoder, rows: Sequence[Sequence[Sequence[str]]]) -> WordBatch:
    """A padded batch: rows of sentences, each between its boundary words, distinct words encoded once."""
    distinct: dict[str, int] = {}
    places = [
        [
            place
            for words in row
            for place in (OPENING, *(distinct.setdefault(word, len(distinct) + BOUNDARIES) for word in words), CLOSING)
        ]
        for row in rows
    ]
    encoded = encoder.encode(list(distinct))
    lengths = torch.tensor([len(row) for row in places], dtype=torch.int64)
    padded = np.zeros((len(places), max(map(len, places), default=0)), dtype=np.int64)
    for number, row in enumerate(places):
        padded[number, : len(row)] = row
    tensors = [
        None if array is None else torch.from_numpy(array)
        for array in (encoded.characters, encoded.lengths, encoded.ids)
    ]
    return WordBatch(torch.from_numpy(padded), lengths, *tensors)


def _name(path: Path) -> str:
    """What people would call the model: its folder, or its file where that says more than ``weights.hdf5``."""
    usual = path.is_file() and path.stem in ("options", "weights", "config", "model")
    return path.absolute().parent.name if usual else path.name


def drop_boundaries(layers: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Drop the boundary words of each sentence from layers (B, L, T, D) and mask (B, T)."""
    inner = mask[:, 2:]
    return layers[:, :, 1:-1] * inner[:, None, :, None], inner


def _shapes(state: BiLMState) -> list[tuple[int, ...]]:
    return [(layers, directions, width) for layers, directions, _, width in (part.shape for part in state)]


def _first_streams(state: BiLMState, streams: int) -> BiLMState:
    """The states of so many streams; new streams start from zeros."""
    missing = streams - state.hidden.shape[2]
    if missing <= 0:
        return BiLMState(*(part[:, :, :streams] for part in state))
    return BiLMState(
        *(torch.cat([part, part.new_zeros(*part.shape[:2], missing, part.shape[3])], dim=2) for part in state)
    )
