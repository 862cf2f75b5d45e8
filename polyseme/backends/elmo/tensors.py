"""GPU strategy: ELMo as batched products of both directions, packed without padding, transfers overlapped.

It runs on any device of torch's, and is tested on a CPU too.

Shapes: W directions, U distinct words, N words in all, B sentences, L layers, D dim, P dim of one direction.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from polyseme.backends.elmo.cuda_graphs import MOST_WORDS, CudaGraphs
from polyseme.backends.elmo.packing import FlatText, add_boundaries, pack
from polyseme.backends.elmo.stacked_lstm import StackedLstm
from polyseme.backends.elmo.strategy import ElmoStrategy, Sentences
from polyseme.backends.elmo.word_table import WordTable
from polyseme.embedding.batching import (
    Item,
    NumberedWindow,
    Wait,
    check_sentences,
    compute_in_order,
    map_windows,
    numbered_windows,
    sentence_size,
)
from polyseme.embedding.encoder import WORD_BUDGET
from polyseme.embedding.interfaces import EmbedSettings, Precision
from polyseme.model.bilm import BiLM
from polyseme.text.word_encoder import BOUNDARIES, CLOSING, OPENING, WordEncoder

ENCODED_AT_ONCE = 8192  # distinct words
GPU_WORDS = 1 << 17  # at a time; more do not make it faster
GPU_BYTES = 256  # of memory for a word and dimension, on the safe side
GPU_WINDOW = 1 << 27  # numbers of a layer that are read ahead
TYPES = {"float32": torch.float32, "tf32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class _Order(NamedTuple):
    """Where packed words stand, on the device."""

    sizes: list[int]
    places: Tensor  # (W, N) which distinct word
    target: Tensor  # (W, N) row of the result that holds the word's first layer
    lengths: Tensor  # (N,) of the word's sentence: rows from one layer to the next


class TensorStrategy(ElmoStrategy):
    """GPU tensors: the weights of a biLM stacked for batched products, and the words encoded so far."""

    def __init__(self, bilm: BiLM, words: WordEncoder, *, precision: Precision, cache_words: int) -> None:
        self.words = words
        self.table = WordTable(cache_words)
        self._bilm = bilm
        self._config = bilm.config.lstm
        self._device = next(bilm.parameters()).device
        self._dtype = TYPES[precision]
        self._tf32 = precision == "tf32"
        self._first = torch.tensor([CLOSING if way == "backward" else OPENING for way in bilm.config.directions])
        self._lock = threading.Lock()
        self._most_words = sys.maxsize  # at a time; halved whenever the memory was too small
        self._copies = torch.cuda.Stream(self._device) if self._device.type == "cuda" else None
        with self._computing():
            self._vectors = self._encode([])
            boundaries = self._halves(self._vectors)[torch.arange(len(self._first)), self._first]
            self._lstm = StackedLstm(bilm, self._dtype, boundaries)
        self._graphs = None if self._copies is None else CudaGraphs(partial(self._lstm.read, after_boundary=True))

    def word_budget(self, settings: EmbedSettings) -> int:
        """Words computed at a time: the setting, or what the free memory of the device holds."""
        return min(settings.word_budget or self._default_budget(), self._most_words)

    def _default_budget(self) -> int:
        if self._device.type != "cuda":
            return WORD_BUDGET
        free, _ = torch.cuda.mem_get_info(self._device)
        return max(WORD_BUDGET, min(GPU_WORDS, free // (GPU_BYTES * self._bilm.config.dim)))

    def embed(self, sentences: Iterable[Sequence[str]], settings: EmbedSettings) -> Iterator[np.ndarray]:
        """Arrays (layers, words, dim), one a sentence, in order; each sentence starts from a fresh state."""
        check_sentences(sentences)
        stream = numbered_windows(sentences, max(self.word_budget(settings), GPU_WINDOW // self._bilm.config.dim))
        return map_windows(partial(self._embed_window, settings=settings), stream, settings.workers, self._device)

    def _embed_window(self, window: NumberedWindow, settings: EmbedSettings) -> list[np.ndarray]:
        """Look the words of a window up, once for all its sentences, and compute these in batches."""
        with self._computing():
            rows = self._look_up(window.words, sum(map(len, window)))
            table = self._vectors[: len(self.table)]  # stays as it is, whatever is looked up meanwhile
        start = partial(self._start_or_halve, partial(self._start_batch, rows, table, settings), settings)
        return compute_in_order(window, sentence_size, self.word_budget(settings), start)

    def _start_batch(
        self, rows: np.ndarray, table: Tensor, settings: EmbedSettings, sentences: Sequence[np.ndarray]
    ) -> Wait[np.ndarray]:
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        with self._computing():
            places, vectors = self._pick(rows[np.concatenate(sentences)], table)
            text = FlatText(places, lengths)
            text = add_boundaries(text) if settings.boundaries else text
            return self._run(text, vectors, True, settings.dtype)

    def start_documents(self, documents: list[Sentences], settings: EmbedSettings) -> Wait[np.ndarray]:
        """Arrays (layers, words, dim) of whole documents, boundary words included, state carried on."""
        return self._start_or_halve(partial(self._start_documents, settings), settings, documents)

    def _start_documents(self, settings: EmbedSettings, documents: Sequence[Sentences]) -> Wait[np.ndarray]:
        sentences = list(chain.from_iterable(documents))
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        with self._computing():
            places, vectors = self._pick(self._look_up(list(chain.from_iterable(sentences))), self._vectors)
            text = add_boundaries(FlatText(places, lengths))
            ends = np.cumsum([0, *text.lengths])[np.cumsum([0, *map(len, documents)])]
            return self._run(FlatText(text.places, np.diff(ends)), vectors, False, settings.dtype)

    def _start_or_halve(
        self, start: Callable[[Sequence[Item]], Wait[np.ndarray]], settings: EmbedSettings, items: Sequence[Item]
    ) -> Wait[np.ndarray]:
        """Start a batch, in halves if the memory of the device is too small for all of it."""
        try:
            return start(items)
        except torch.OutOfMemoryError:
            if len(items) < 2:
                raise
        # Outside the handler, so that nothing of what failed is held any more.
        torch.cuda.empty_cache()
        self._most_words = max(1, self.word_budget(settings) // 2)
        middle = len(items) // 2
        parts = [self._start_or_halve(start, settings, half)() for half in (items[:middle], items[middle:])]
        return partial(list, chain(*parts))

    def embed_words(self, words: Sequence[str]) -> np.ndarray:
        """Context-free vectors (words, dim) in float32: layer 0."""
        with self._computing():
            places, vectors = self._pick(self._look_up(list(words)), self._vectors)
            return self._halves(vectors[self._send(places)]).transpose(0, 1).flatten(1).cpu().numpy()

    def _look_up(self, words: list[str], occurrences: int | None = None) -> np.ndarray:
        """Each word's row in the table of vectors; those that are new are encoded first."""
        try:
            return self._find(words, occurrences)
        except BaseException:  # an interruption too: words without vectors must not stay
            self.table.clear()
            self._vectors = self._vectors[:BOUNDARIES].clone()
            raise

    def _find(self, words: list[str], occurrences: int | None) -> np.ndarray:
        held = len(self.table)
        rows = self.table.look_up(words, occurrences)
        if rows.kept is not None:
            held = len(rows.kept)
            self._vectors = self._vectors[self._send(rows.kept)]
        if len(self.table) > len(self._vectors):
            room = self._vectors.new_empty(max(len(self.table), 2 * held), self._vectors.shape[1])
            room[:held] = self._vectors[:held]
            self._vectors = room
        for first in range(0, len(rows.new), ENCODED_AT_ONCE):
            new = rows.new[first : first + ENCODED_AT_ONCE]
            self._vectors[held + first : held + first + len(new)] = self._encode(new)[BOUNDARIES:]
        return rows.words

    def _pick(self, rows: np.ndarray, table: Tensor) -> tuple[np.ndarray, Tensor]:
        """Each word's place among the distinct ones, and their vectors (U, inputs · P), the two boundaries first."""
        used = np.zeros(len(table), bool)
        used[:BOUNDARIES] = used[rows] = True
        return (np.cumsum(used) - 1)[rows], table[self._send(np.flatnonzero(used))]

    def _encode(self, words: list[str]) -> Tensor:
        """Context-free vectors of the boundaries and these words, in full precision."""
        encoded = self.words.encode(words)
        characters = None if encoded.characters is None else self._send(encoded.characters)
        ids = None if encoded.ids is None else self._send(encoded.ids)
        lengths = None if encoded.lengths is None else torch.from_numpy(encoded.lengths)  # they steer the work: no wait
        return torch.cat([encode(characters, lengths, ids) for encode in self._bilm.inputs], dim=1)

    def _halves(self, vectors: Tensor) -> Tensor:
        """Input vectors of each direction: (W, rows, P)."""
        halves = vectors.unflatten(1, (len(self._bilm.inputs), -1)).transpose(0, 1)
        return halves.expand(len(self._first), -1, -1)

    def _run(self, text: FlatText, vectors: Tensor, after_boundary: bool, dtype: str) -> Callable[[], list[np.ndarray]]:
        """Run all layers over a text; after_boundary: start from the state after the first boundary word."""
        depth, ways = 1 + len(self._lstm.layers), len(self._first)
        skipped = int(after_boundary and len(text.places) > 0 and text.places[0] == OPENING)
        order = self._order(text, skipped)
        result = vectors.new_empty(depth * len(text.places), ways, self._config.dim)
        self._place_known(result, text, vectors, skipped)
        hidden = self._halves(vectors).to(self._dtype)
        if self._graphs is not None and after_boundary and 0 < len(text.places) <= MOST_WORDS:
            outputs = self._graphs.read(hidden, order.places, order.sizes)
        else:
            outputs = self._lstm.read(hidden, order.places, order.sizes, after_boundary)
        for number, output in enumerate(outputs, 1):
            for way in range(ways):
                result[order.target[way] + number * order.lengths, way] = output[way].to(result.dtype)
        return self._fetch(result.flatten(1).to(getattr(torch, dtype)), text.lengths, depth)

    def _order(self, text: FlatText, skipped: int) -> _Order:
        """The packed words in each direction's reading order: the backward one starts at a sentence's end."""
        packing = pack(text.lengths - skipped)
        sentence = packing.order[packing.rows]
        lengths = text.lengths[sentence]
        starts = (np.cumsum(text.lengths) - text.lengths)[sentence]
        steps = packing.steps + skipped
        inside = np.stack([lengths - 1 - steps if first == CLOSING else steps for first in self._first.tolist()])
        depth = 1 + len(self._lstm.layers)
        sent = self._send(np.concatenate([text.places[starts + inside], depth * starts + inside, lengths[None]]))
        ways = len(inside)
        return _Order(packing.sizes.tolist(), sent[:ways].to(torch.int32), sent[ways : 2 * ways], sent[-1])

    def _place_known(self, result: Tensor, text: FlatText, vectors: Tensor, skipped: int) -> None:
        """Fill in layer 0, and each direction's outputs for its first boundary word, which are known."""
        depth = 1 + len(self._lstm.layers)
        starts = np.cumsum(text.lengths) - text.lengths
        rows = (depth - 1) * np.repeat(starts, text.lengths) + np.arange(len(text.places))
        sent = self._send(np.stack([text.places, rows]))
        result[sent[1]] = self._halves(vectors[sent[0]]).transpose(0, 1)
        for way, first in enumerate(self._first.tolist() if skipped else []):
            inside = text.lengths - 1 if first == CLOSING else 0
            for layer in range(1, depth):
                known = self._lstm.boundary_outputs[layer, way]
                result[self._send(depth * starts + layer * text.lengths + inside), way] = known

    def _send(self, array: np.ndarray) -> Tensor:
        """To the device without waiting for what goes on there."""
        tensor = torch.from_numpy(np.ascontiguousarray(array))
        return tensor if self._copies is None else tensor.pin_memory().to(self._device, non_blocking=True)

    def _fetch(self, result: Tensor, lengths: np.ndarray, depth: int) -> Callable[[], list[np.ndarray]]:
        """Begin to bring the result here, beside what is computed next."""
        host, done = result, None
        if self._copies is not None:
            host = torch.empty(result.shape, dtype=result.dtype, pin_memory=True)
            self._copies.wait_stream(torch.cuda.current_stream(self._device))
            with torch.cuda.stream(self._copies):
                host.copy_(result, non_blocking=True)
                done = torch.cuda.Event()
                done.record()
            result.record_stream(self._copies)

        def finish() -> list[np.ndarray]:
            if done is not None:
                done.synchronize()
            rows, dim, ends = host.numpy(), host.shape[1], np.cumsum(depth * lengths).tolist()
            return [
                rows[end - depth * length : end].reshape(depth, length, dim)
                for end, length in zip(ends, lengths.tolist(), strict=True)
            ]

        return finish

    @contextmanager
    def _computing(self) -> Iterator[None]:
        """Inference mode, one caller at a time, TF32 products or not; the caller's choice of TF32 comes back after."""
        with torch.inference_mode(), self._lock:
            before = torch.backends.cuda.matmul.allow_tf32
            torch.backends.cuda.matmul.allow_tf32 = self._tf32
            try:
                yield
            finally:
                torch.backends.cuda.matmul.allow_tf32 = before
