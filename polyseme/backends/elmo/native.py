"""Native CPU strategy: ELMo through the compiled kernels, each word encoded once, both directions side by side.

Shapes: U distinct words, N words in all, B sentences, L layers, D dim, P dim of one direction.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import nn

from polyseme.backends.elmo.packing import FlatText, add_boundaries, pack
from polyseme.backends.elmo.strategy import ElmoStrategy, Sentences
from polyseme.backends.elmo.word_table import WordTable
from polyseme.embedding.batching import (
    Wait,
    check_sentences,
    compute_in_order,
    map_windows,
    sentence_size,
    window_words,
    windows,
)
from polyseme.embedding.encoder import WORD_BUDGET
from polyseme.embedding.interfaces import EmbedSettings
from polyseme.formats.stored import release_mapped_pages
from polyseme.kernels import native, threads
from polyseme.kernels.reference import LstmpWeights
from polyseme.model.bilm import BiLM
from polyseme.model.input import CharEncoder, Highway, WordInput
from polyseme.model.lstmp import Lstmp
from polyseme.text.word_encoder import BOUNDARIES, CLOSING, OPENING, EncodedWords, WordEncoder

WORTH_A_THREAD = 8  # words to encode


class NativeStrategy(ElmoStrategy):
    """Native CPU kernels: the weights of a biLM packed for this processor, and the words encoded so far."""

    def __init__(self, bilm: BiLM, words: WordEncoder, *, int8: bool, cache_words: int) -> None:
        self.words = words
        self.table = WordTable(cache_words)
        self._inputs = [_Input(module, int8) for module in bilm.inputs]  # pyright: ignore[reportArgumentType]
        self._directions = [_Direction(layers, bilm.config.lstm.residual, int8) for layers in bilm.lstms]  # pyright: ignore[reportArgumentType]
        self._vectors = self._encode(words.encode([]))
        self._lock = threading.Lock()
        for direction, half in zip(self._directions, self._halves(self._vectors), strict=True):
            direction.read_boundary(half)

    def word_budget(self, settings: EmbedSettings) -> int:
        """Words computed at a time: the setting, or the default."""
        return settings.word_budget or WORD_BUDGET

    def embed(self, sentences: Iterable[Sequence[str]], settings: EmbedSettings) -> Iterator[np.ndarray]:
        """Arrays (layers, words, dim), one a sentence, in order; each sentence starts from a fresh state."""
        stream = windows(check_sentences(sentences), sentence_size, window_words(self.word_budget(settings)))
        embed_window = partial(self._embed_window, settings=settings)
        return map_windows(embed_window, stream, settings.workers, torch.device("cpu"))

    def _embed_window(self, window: list[list[str]], settings: EmbedSettings) -> list[np.ndarray]:
        start = partial(self._start_batch, settings=settings)
        return compute_in_order(window, sentence_size, self.word_budget(settings), start)

    def _start_batch(self, sentences: list[list[str]], settings: EmbedSettings) -> Wait[np.ndarray]:
        places, vectors = self._look_up(list(chain.from_iterable(sentences)))
        text = FlatText(places, np.fromiter(map(len, sentences), np.int64, len(sentences)))
        text = add_boundaries(text) if settings.boundaries else text
        return partial(list, self._run(text, vectors, True, settings.dtype))

    def start_documents(self, documents: list[Sentences], settings: EmbedSettings) -> Wait[np.ndarray]:
        """Arrays (layers, words, dim) of whole documents, boundary words included, state carried on."""
        sentences = list(chain.from_iterable(documents))
        places, vectors = self._look_up(list(chain.from_iterable(sentences)))
        text = add_boundaries(FlatText(places, np.fromiter(map(len, sentences), np.int64, len(sentences))))
        ends = np.cumsum([0, *text.lengths])[np.cumsum([0, *map(len, documents)])]
        return partial(list, self._run(FlatText(text.places, np.diff(ends)), vectors, False, settings.dtype))

    def embed_words(self, words: Sequence[str]) -> np.ndarray:
        """Context-free vectors (words, dim) in float32: layer 0."""
        places, vectors = self._look_up(list(words))
        return np.concatenate(self._halves(vectors), axis=1)[places]

    def _look_up(self, words: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Each word's index among the distinct ones, and their vectors (U, ·), the two boundaries first."""
        with self._lock:
            try:
                rows = self._find(words)
            except BaseException:  # an interruption too: words without vectors must not stay
                self.table.clear()
                raise
            distinct, places = np.unique(np.append([OPENING, CLOSING], rows), return_inverse=True)
            return places[BOUNDARIES:].astype(np.int32), self._vectors[distinct]

    def _find(self, words: list[str]) -> np.ndarray:
        """Each word's row in the cache; those that are new are encoded first."""
        held = len(self.table)
        rows = self.table.look_up(words)
        if rows.kept is not None:
            held = len(rows.kept)
            self._vectors = self._vectors[rows.kept]
        if rows.new:
            if len(self.table) > len(self._vectors):
                room = np.empty((max(len(self.table), 2 * held), self._vectors.shape[1]), np.float32)
                room[:held] = self._vectors[:held]
                self._vectors = room
            self._vectors[held : len(self.table)] = self._encode(self.words.encode(rows.new))[BOUNDARIES:]
        return rows.words

    def _encode(self, words: EncodedWords) -> np.ndarray:
        return np.concatenate([module(words) for module in self._inputs], axis=1)

    def _halves(self, vectors: np.ndarray) -> list[np.ndarray]:
        """The input vectors of each direction."""
        halves = np.split(vectors, len(self._inputs), axis=1)
        return halves * (len(self._directions) // len(halves))

    def _run(self, text: FlatText, vectors: np.ndarray, after_boundary: bool, dtype: str) -> list[np.ndarray]:
        """Arrays (L, words, D), one a sentence; after_boundary: start from the state after the first boundary word."""
        halves = [np.ascontiguousarray(half) for half in self._halves(vectors)]
        depth = 1 + len(self._directions[0].lstms)
        dim = halves[0].shape[1]
        layers = np.empty((depth, len(text.places), len(halves) * dim), np.float32)
        groups = max(1, min(threads.count() // len(halves), len(text.lengths)))

        def run(job: tuple[int, int]) -> None:
            number, group = job
            half = layers[:, :, number * dim : (number + 1) * dim]
            self._directions[number].read(text, halves[number], half, slice(group, None, groups), after_boundary)

        threads.share(run, [(number, group) for group in range(groups) for number in range(len(halves))])
        ends = np.cumsum(text.lengths)
        return [np.array(layers[:, end - length : end], dtype) for end, length in zip(ends, text.lengths, strict=True)]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())


class _Input:
    """Character CNN, highway layers and projection of distinct words, as `model.input.WordInput`."""

    def __init__(self, module: WordInput, int8: bool) -> None:
        self.words = None if module.words is None else module.words.weight.detach().numpy()
        self.convolve, self.highways = None, []
        if module.characters is not None:
            self.convolve = _char_cnn(module.characters)
            self.highways = [_highway(layer, int8) for layer in module.characters.highways]  # pyright: ignore[reportArgumentType]
        self.projection, self.dim = None, None
        if module.projection is not None:
            self.projection = native.PackedLinear(module.projection.weight.t(), module.projection.bias, int8=int8)
            self.dim = module.projection.out_features

    def __call__(self, words: EncodedWords) -> np.ndarray:
        features = []
        if self.words is not None and words.ids is not None:
            features.append(self.words[words.ids])
        if self.convolve is not None and words.characters is not None and words.lengths is not None:
            answers = self._convolve(self.convolve, words.characters, words.lengths)
            for highway in self.highways:
                answers = highway(answers)
            features.append(answers)
        joined = np.concatenate(features, axis=1)
        return joined if self.projection is None else self.projection.shared(joined)[:, : self.dim]

    def _convolve(self, convolve: native.PackedCharCnn, characters: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Convolve in threads; words are dealt out by length, so that no thread gets all the long ones."""
        order = np.argsort(lengths, kind="stable")
        count = len(threads.parts(len(order), WORTH_A_THREAD))
        shares = [order[number::count] for number in range(count)]
        answers = threads.share(lambda mine: convolve(characters[mine], lengths[mine]), shares)
        return np.concatenate(answers)[np.argsort(np.concatenate(shares))]


class _Direction:
    """One direction of the biLM, through all LSTM layers."""

    def __init__(self, layers: nn.ModuleList, residual: bool, int8: bool) -> None:
        self.lstms = [_lstmp(layer, int8) for layer in layers]  # pyright: ignore[reportArgumentType]
        self.residual = residual
        self.first = CLOSING if self.lstms and self.lstms[0].backward else OPENING
        self.states: list[native.PackedState] = []
        self.outputs = np.zeros((0, 0))

    def read_boundary(self, vectors: np.ndarray) -> None:
        """Read the first boundary word: the state after it is a constant of the model."""
        fresh = [lstm.initial_state(1) for lstm in self.lstms]
        inputs = np.ascontiguousarray(vectors[self.first : self.first + 1])
        self.outputs = np.stack([inputs, *self._layers(inputs, None, [1], fresh)])
        self.states = fresh

    def read(self, text: FlatText, vectors: np.ndarray, out: np.ndarray, group: slice, after_boundary: bool) -> None:
        """Run the LSTM layers over some of the sentences, into ``out`` (L, N, P)."""
        lengths = text.lengths
        here = np.arange(len(text.places))
        if after_boundary:  # the outputs for the first boundary word, where it is asked for, are known
            known = text.places == self.first
            out[:, known] = self.outputs
            here = here[~known]
            sentence = np.repeat(np.arange(len(lengths)), lengths)
            lengths = lengths - np.bincount(sentence[known], minlength=len(lengths))
        starts = (np.cumsum(lengths) - lengths)[group]
        packing = pack(lengths[group])
        here = here[starts[packing.order][packing.rows] + packing.steps]
        places = text.places[here]
        out[0, here] = vectors[places]
        rows = len(packing.order)
        states = [
            native.PackedState(*(part.repeat(rows, axis=0) for part in state))
            if after_boundary
            else lstm.initial_state(rows)
            for lstm, state in zip(self.lstms, self.states, strict=True)
        ]
        for number, layer in enumerate(self._layers(vectors, places, packing.sizes, states), 1):
            out[number, here] = layer

    def _layers(
        self,
        vectors: np.ndarray,
        places: np.ndarray | None,
        sizes: Sequence[int] | np.ndarray,
        states: Sequence[native.PackedState],
    ) -> Iterable[np.ndarray]:
        """Packed outputs (N, P) of each LSTM layer; states become those after the words."""
        inputs = vectors
        for number, (lstm, state) in enumerate(zip(self.lstms, states, strict=True)):
            output = lstm(inputs, sizes, state, places if number == 0 else None)
            inputs = output + inputs if self.residual and number else output
            yield inputs


def _char_cnn(module: CharEncoder) -> native.PackedCharCnn:
    filters = [(layer.weight, layer.bias) for layer in module.convolutions]
    config = module.config
    return native.PackedCharCnn(module.embedding.weight, filters, config.activation == "tanh", config.max_characters)  # pyright: ignore[reportArgumentType]


def _highway(module: Highway, int8: bool) -> native.PackedHighway:
    packed = native.PackedHighway(module.gate, module.transform, int8)
    release_mapped_pages(*module.parameters())
    return packed


def _lstmp(module: Lstmp, int8: bool) -> native.PackedLstmp:
    packed = native.PackedLstmp(
        LstmpWeights(module.input, module.recurrent, module.bias, module.projection),
        cell_clip=module.config.cell_clip,
        output_clip=module.config.output_clip,
        forget_bias=module.config.forget_bias,
        backward=module.backward,
        int8=int8,
    )
    release_mapped_pages(*module.parameters())
    return packed
