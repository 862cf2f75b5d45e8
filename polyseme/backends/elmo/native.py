"""ELMo on a CPU through the compiled loops: each word encoded once, weights packed once, both directions side by side.

Shapes: U distinct words, N words in all, B sentences, L layers, D dim, P dim of one direction.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from torch import nn

from polyseme.backends.elmo.packing import FlatText, add_boundaries, pack
from polyseme.backends.elmo.word_table import WordTable
from polyseme.formats.stored import release_mapped_pages
from polyseme.kernels import native, threads
from polyseme.kernels.reference import LstmpWeights
from polyseme.model.bilm import BiLM
from polyseme.model.input import CharEncoder, Highway, WordInput
from polyseme.model.lstmp import Lstmp
from polyseme.text.word_encoder import BOUNDARIES, CLOSING, OPENING, EncodedWords, WordEncoder

WORTH_A_THREAD = 8  # words to encode


class CompiledBiLM:
    """A biLM's weights made ready for embedding, and the words that it has encoded so far."""

    def __init__(self, bilm: BiLM, words: WordEncoder, *, eight: bool, cache_words: int) -> None:
        self.words = words
        self.table = WordTable(cache_words)
        self._inputs = [_Input(module, eight) for module in bilm.inputs]  # pyright: ignore[reportArgumentType]
        self._directions = [_Direction(layers, bilm.config.lstm.residual, eight) for layers in bilm.lstms]  # pyright: ignore[reportArgumentType]
        self._vectors = self._encode(words.encode([]))
        self._lock = threading.Lock()
        for direction, half in zip(self._directions, self._halves(self._vectors), strict=True):
            direction.begin(half)

    def begin(self, sentences: Sequence[Sequence[str]], boundaries: bool, dtype: str) -> Callable[[], list[np.ndarray]]:
        """Arrays (L, words, D), with or without the words that open and close a sentence. Each sentence is fresh."""
        places, vectors = self._look_up(list(chain.from_iterable(sentences)))
        text = FlatText(places, np.fromiter(map(len, sentences), np.int64, len(sentences)))
        return partial(list, self._run(add_boundaries(text) if boundaries else text, vectors, True, dtype))

    def begin_running(self, documents: Sequence[Sequence[Sequence[str]]], dtype: str) -> Callable[[], list[np.ndarray]]:
        """Arrays (L, words, D) of whole documents, boundary words among the words, state running on."""
        sentences = list(chain.from_iterable(documents))
        places, vectors = self._look_up(list(chain.from_iterable(sentences)))
        text = add_boundaries(FlatText(places, np.fromiter(map(len, sentences), np.int64, len(sentences))))
        ends = np.cumsum([0, *text.lengths])[np.cumsum([0, *map(len, documents)])]
        return partial(list, self._run(FlatText(text.places, np.diff(ends)), vectors, False, dtype))

    def embed_words(self, words: Sequence[str]) -> np.ndarray:
        """Context-free vectors (words, D)."""
        places, vectors = self._look_up(list(words))
        return np.concatenate(self._halves(vectors), axis=1)[places]

    def _look_up(self, words: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Each word's place among the distinct ones, and their vectors (U, ·), the two boundaries first."""
        with self._lock:
            try:
                rows = self._find(words)
            except BaseException:  # an interruption too: words without vectors must not stay
                self.table.clear()
                raise
            distinct, places = np.unique(np.append([OPENING, CLOSING], rows), return_inverse=True)
            return places[BOUNDARIES:].astype(np.int32), self._vectors[distinct]

    def _find(self, words: list[str]) -> np.ndarray:
        """Each word's row in the table; those that are new are encoded."""
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
        """What each direction reads."""
        halves = np.split(vectors, len(self._inputs), axis=1)
        return halves * (len(self._directions) // len(halves))

    def _run(self, text: FlatText, vectors: np.ndarray, begun: bool, dtype: str) -> list[np.ndarray]:
        """Arrays (L, words, D) a sentence; begun: each direction has read its first boundary word already."""
        halves = [np.ascontiguousarray(half) for half in self._halves(vectors)]
        depth = 1 + len(self._directions[0].lstms)
        dim = halves[0].shape[1]
        layers = np.empty((depth, len(text.places), len(halves) * dim), np.float32)
        groups = max(1, min(threads.count() // len(halves), len(text.lengths)))

        def run(job: tuple[int, int]) -> None:
            number, group = job
            half = layers[:, :, number * dim : (number + 1) * dim]
            self._directions[number].read(text, halves[number], half, slice(group, None, groups), begun)

        threads.share(run, [(number, group) for group in range(groups) for number in range(len(halves))])
        ends = np.cumsum(text.lengths)
        return [np.array(layers[:, end - length : end], dtype) for end, length in zip(ends, text.lengths, strict=True)]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())


class _Input:
    """Distinct words to the vectors that an LSTM reads, as `model.input.WordInput`."""

    def __init__(self, module: WordInput, eight: bool) -> None:
        self.words = None if module.words is None else module.words.weight.detach().numpy()
        self.convolve, self.highways = None, []
        if module.characters is not None:
            self.convolve = _char_cnn(module.characters)
            self.highways = [_highway(layer, eight) for layer in module.characters.highways]  # pyright: ignore[reportArgumentType]
        self.projection, self.dim = None, None
        if module.projection is not None:
            self.projection = native.Linear(module.projection.weight.t(), module.projection.bias, eight=eight)
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

    def _convolve(self, convolve: native.CharCnn, characters: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Words are shared out by length, so that no thread gets the long ones."""
        order = np.argsort(lengths, kind="stable")
        count = len(threads.parts(len(order), WORTH_A_THREAD))
        shares = [order[number::count] for number in range(count)]
        answers = threads.share(lambda mine: convolve(characters[mine], lengths[mine]), shares)
        return np.concatenate(answers)[np.argsort(np.concatenate(shares))]


class _Direction:
    """One direction through all layers."""

    def __init__(self, layers: nn.ModuleList, residual: bool, eight: bool) -> None:
        self.lstms = [_lstmp(layer, eight) for layer in layers]  # pyright: ignore[reportArgumentType]
        self.residual = residual
        self.first = CLOSING if self.lstms and self.lstms[0].backward else OPENING
        self.states: list[native.State] = []
        self.outputs = np.zeros((0, 0))

    def begin(self, vectors: np.ndarray) -> None:
        """Read the boundary word: what is known after it is a constant of the model."""
        fresh = [lstm.initial_state(1) for lstm in self.lstms]
        inputs = np.ascontiguousarray(vectors[self.first : self.first + 1])
        self.outputs = np.stack([inputs, *self._layers(inputs, None, [1], fresh)])
        self.states = fresh

    def read(self, text: FlatText, vectors: np.ndarray, out: np.ndarray, group: slice, begun: bool) -> None:
        """Fill the layers (L, N, P) of some of the sentences."""
        lengths = text.lengths
        here = np.arange(len(text.places))
        if begun:  # where boundary words are wanted, the first one is known
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
            native.State(*(part.repeat(rows, axis=0) for part in state)) if begun else lstm.initial_state(rows)
            for lstm, state in zip(self.lstms, self.states, strict=True)
        ]
        for number, layer in enumerate(self._layers(vectors, places, packing.sizes, states), 1):
            out[number, here] = layer

    def _layers(
        self,
        vectors: np.ndarray,
        places: np.ndarray | None,
        sizes: Sequence[int] | np.ndarray,
        states: Sequence[native.State],
    ) -> Iterable[np.ndarray]:
        """Packed outputs (N, P) of each LSTM layer; states become those after the words."""
        inputs = vectors
        for number, (lstm, state) in enumerate(zip(self.lstms, states, strict=True)):
            output = lstm(inputs, sizes, state, places if number == 0 else None)
            inputs = output + inputs if self.residual and number else output
            yield inputs


def _char_cnn(module: CharEncoder) -> native.CharCnn:
    filters = [(layer.weight, layer.bias) for layer in module.convolutions]
    config = module.config
    return native.CharCnn(module.embedding.weight, filters, config.activation == "tanh", config.max_characters)  # pyright: ignore[reportArgumentType]


def _highway(module: Highway, eight: bool) -> native.Highway:
    packed = native.Highway(module.gate, module.transform, eight)
    release_mapped_pages(*module.parameters())
    return packed


def _lstmp(module: Lstmp, eight: bool) -> native.Lstmp:
    packed = native.Lstmp(
        LstmpWeights(module.input, module.recurrent, module.bias, module.projection),
        cell_clip=module.config.cell_clip,
        output_clip=module.config.output_clip,
        forget_bias=module.config.forget_bias,
        backward=module.backward,
        eight=eight,
    )
    release_mapped_pages(*module.parameters())
    return packed
