"""ELMo on a GPU: both directions in one product, words packed without padding, transfers beside the computation.

It runs on any device of torch's, and is tested on a CPU too.

Shapes: W ways (directions), U distinct words, N words in all, B sentences, L layers, D dim, P dim of one direction.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from polyseme.backends.elmo.cuda_graphs import MOST_WORDS, Recordings
from polyseme.backends.elmo.packing import FlatText, add_boundaries, pack
from polyseme.backends.elmo.word_table import WordTable
from polyseme.embedding.interfaces import Precision
from polyseme.embedding.sentences import Numbered
from polyseme.kernels.cells import Gates, step_cells
from polyseme.kernels.reference import opened_bias
from polyseme.model.bilm import BiLM
from polyseme.text.word_encoder import BOUNDARIES, CLOSING, OPENING, WordEncoder

ENCODED_AT_ONCE = 8192  # distinct words
CHUNK_BYTES = 1 << 30  # of products of the inputs, held at a time
TYPES = {"float32": torch.float32, "tf32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class _Layer(NamedTuple):
    """One LSTM layer, all ways."""

    input: Tensor  # (W, P, 4H)
    recurrent: Tensor  # (W, P, 4H)
    bias: Tensor  # (W, 4H), 32-bit
    projection: Tensor | None  # (W, H, P)


class _State(NamedTuple):
    hidden: Tensor  # (W, B, P)
    cell: Tensor  # (W, B, H), 32-bit


class _Order(NamedTuple):
    """Where packed words stand, on the device."""

    sizes: list[int]
    places: Tensor  # (W, N) which distinct word
    target: Tensor  # (W, N) row of the result that holds the word's first layer
    lengths: Tensor  # (N,) of the word's sentence: rows from one layer to the next


class TensorBiLM:
    """A biLM's weights made ready for embedding, and the words that it has encoded so far."""

    def __init__(self, bilm: BiLM, words: WordEncoder, *, precision: Precision, cache_words: int) -> None:
        self.words = words
        self.table = WordTable(cache_words)
        self._bilm = bilm
        self._config = bilm.config.lstm
        self._device = next(bilm.parameters()).device
        self._dtype = TYPES[precision]
        self._tf32 = precision == "tf32"
        self._layers = [_stack(layers, self._dtype) for layers in zip(*bilm.lstms, strict=True)]  # pyright: ignore[reportArgumentType]
        self._first = torch.tensor([CLOSING if way == "backward" else OPENING for way in bilm.config.directions])
        self._lock = threading.Lock()
        self._copies = torch.cuda.Stream(self._device) if self._device.type == "cuda" else None
        with torch.inference_mode(), self._multiplying():
            self._vectors = self._encode([])
            self._begun, self._opened = self._begin()
        self._recordings = None if self._copies is None else Recordings(partial(self._read_all, begun=True))

    def begin(self, sentences: Sequence[Sequence[str]], boundaries: bool, dtype: str) -> Callable[[], list[np.ndarray]]:
        """Begin to embed sentences, each fresh; what is returned waits for the arrays (L, words, D) and gives them."""
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        with torch.inference_mode(), self._lock, self._multiplying():
            places, vectors = self._pick(self._look_up(list(chain.from_iterable(sentences))), self._vectors)
            text = FlatText(places, lengths)
            return self._run(add_boundaries(text) if boundaries else text, vectors, True, dtype)

    def beginning(self, window: Numbered, boundaries: bool) -> Callable[..., Callable[[], list[np.ndarray]]]:
        """Look the words of a window up, once for all its sentences; what it gives is as `begin` for some of them."""
        with torch.inference_mode(), self._lock, self._multiplying():
            rows = self._look_up(window.words, sum(map(len, window)))
            table = self._vectors[: len(self.table)]  # it stays as it is, whatever is looked up meanwhile

        def begin(sentences: Sequence[np.ndarray], dtype: str) -> Callable[[], list[np.ndarray]]:
            lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
            with torch.inference_mode(), self._lock, self._multiplying():
                places, vectors = self._pick(rows[np.concatenate(sentences)], table)
                text = FlatText(places, lengths)
                return self._run(add_boundaries(text) if boundaries else text, vectors, True, dtype)

        return begin

    def begin_running(self, documents: Sequence[Sequence[Sequence[str]]], dtype: str) -> Callable[[], list[np.ndarray]]:
        """The same for whole documents, boundary words among the words, state running on."""
        sentences = list(chain.from_iterable(documents))
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        with torch.inference_mode(), self._lock, self._multiplying():
            places, vectors = self._pick(self._look_up(list(chain.from_iterable(sentences))), self._vectors)
            text = add_boundaries(FlatText(places, lengths))
            ends = np.cumsum([0, *text.lengths])[np.cumsum([0, *map(len, documents)])]
            return self._run(FlatText(text.places, np.diff(ends)), vectors, False, dtype)

    def embed_words(self, words: Sequence[str]) -> np.ndarray:
        """Context-free vectors (words, D)."""
        with torch.inference_mode(), self._lock, self._multiplying():
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
        """What each way reads: (W, rows, P)."""
        halves = vectors.unflatten(1, (len(self._bilm.inputs), -1)).transpose(0, 1)
        return halves.expand(len(self._first), -1, -1)

    def _begin(self) -> tuple[list[_State], Tensor]:
        """Each way's state after its first boundary word, and what every layer puts out for it (L, W, P)."""
        ways, width = len(self._first), self._config.dim
        inputs = self._halves(self._vectors)[torch.arange(ways), self._first].unsqueeze(1)
        places = torch.zeros(ways, 1, dtype=torch.int32, device=self._device)
        states, outputs = [], [inputs.float()]
        hidden = inputs.to(self._dtype)
        for number, layer in enumerate(self._layers):
            state = _State(hidden.new_zeros(ways, 1, width), self._cells(1))
            output, state = self._read(layer, hidden, places, [1], state)
            hidden = output + hidden if self._config.residual and number else output
            states.append(state)
            outputs.append(hidden.float())
        return states, torch.stack(outputs).squeeze(2)

    def _cells(self, rows: int) -> Tensor:
        return torch.zeros(len(self._first), rows, self._config.cells, device=self._device)

    def _run(self, text: FlatText, vectors: Tensor, begun: bool, dtype: str) -> Callable[[], list[np.ndarray]]:
        """Begun: each way has read its first boundary word already, if the text has it or not."""
        depth, ways = 1 + len(self._layers), len(self._first)
        skipped = int(begun and len(text.places) > 0 and text.places[0] == OPENING)
        order = self._order(text, skipped)
        result = vectors.new_empty(depth * len(text.places), ways, self._config.dim)
        self._place_known(result, text, vectors, skipped)
        hidden = self._halves(vectors).to(self._dtype)
        if self._recordings is not None and begun and 0 < len(text.places) <= MOST_WORDS:
            outputs = self._recordings.read(hidden, order.places, order.sizes)
        else:
            outputs = self._read_all(hidden, order.places, order.sizes, begun)
        for number, output in enumerate(outputs, 1):
            for way in range(ways):
                result[order.target[way] + number * order.lengths, way] = output[way].to(result.dtype)
        return self._fetch(result.flatten(1).to(getattr(torch, dtype)), text.lengths, depth)

    def _read_all(self, hidden: Tensor, places: Tensor, sizes: Sequence[int], begun: bool) -> Iterator[Tensor]:
        """Packed outputs (W, N, P) of every layer, for distinct words (W, U, P) at their places (W, N)."""
        ways, sentences = len(hidden), max(sizes, default=0)
        for number, layer in enumerate(self._layers):
            if begun:
                state = _State(
                    *(part.repeat(1, sentences, 1) for part in self._begun[number])
                )  # copies: cells are renewed in place
            else:
                state = _State(hidden.new_zeros(ways, sentences, self._config.dim), self._cells(sentences))
            output, _ = self._read(layer, hidden, None if number else places, sizes, state)
            hidden = output + hidden if self._config.residual and number else output
            yield hidden

    def _order(self, text: FlatText, skipped: int) -> _Order:
        """The words in the order in which each way reads them: packed, the backward one from a sentence's end."""
        packing = pack(text.lengths - skipped)
        sentence = packing.order[packing.rows]
        lengths = text.lengths[sentence]
        starts = (np.cumsum(text.lengths) - text.lengths)[sentence]
        steps = packing.steps + skipped
        inside = np.stack([lengths - 1 - steps if first == CLOSING else steps for first in self._first.tolist()])
        depth = 1 + len(self._layers)
        sent = self._send(np.concatenate([text.places[starts + inside], depth * starts + inside, lengths[None]]))
        ways = len(inside)
        return _Order(packing.sizes.tolist(), sent[:ways].to(torch.int32), sent[ways : 2 * ways], sent[-1])

    def _place_known(self, result: Tensor, text: FlatText, vectors: Tensor, skipped: int) -> None:
        """The context-free layer, and what a way puts out for the boundary word that it read before all others."""
        depth = 1 + len(self._layers)
        starts = np.cumsum(text.lengths) - text.lengths
        rows = (depth - 1) * np.repeat(starts, text.lengths) + np.arange(len(text.places))
        sent = self._send(np.stack([text.places, rows]))
        result[sent[1]] = self._halves(vectors[sent[0]]).transpose(0, 1)
        for way, first in enumerate(self._first.tolist() if skipped else []):
            inside = text.lengths - 1 if first == CLOSING else 0
            for layer in range(1, depth):
                result[self._send(depth * starts + layer * text.lengths + inside), way] = self._opened[layer, way]

    def _read(
        self, layer: _Layer, inputs: Tensor, places: Tensor | None, sizes: Sequence[int], state: _State
    ) -> tuple[Tensor, _State]:
        """Packed outputs (W, N, P) of a layer, and the state after the words.

        With places (W, N), inputs are distinct words and the places say which word stands where.
        """
        ways, cells = len(inputs), self._config.cells
        widest = max(sizes, default=0)
        sums, active = (inputs.new_empty(ways, widest, size) for size in (4 * cells, cells))
        out = inputs.new_empty(ways, sum(sizes), self._config.dim)
        products = inputs if places is None else torch.bmm(inputs, layer.input)
        clip = self._config.cell_clip or 0.0
        hidden, first, begin, end = state.hidden, 0, 0, 0
        for number, (size, here) in enumerate(zip(sizes, out.split(list(sizes), dim=1), strict=True)):
            if places is None and first == end:
                begin, end = first, first + self._chunk(sizes[number:])
                products = torch.bmm(inputs[:, begin:end], layer.input)
            if size != sums.shape[1]:
                hidden, sums, active = hidden[:, :size], sums[:, :size], active[:, :size]
            torch.bmm(hidden, layer.recurrent, out=sums)
            step_cells(Gates(products, places, first - begin, sums, layer.bias), state.cell, active, clip)
            self._project(layer, active, here)
            hidden, first = here, first + size
        return out, _State(hidden, state.cell)

    def _project(self, layer: _Layer, active: Tensor, out: Tensor) -> None:
        limit = self._config.output_clip
        if layer.projection is None:
            out.copy_(active)
        elif limit:
            torch.clamp(torch.bmm(active, layer.projection), -limit, limit, out=out)
        else:
            torch.bmm(active, layer.projection, out=out)

    def _chunk(self, sizes: Sequence[int]) -> int:
        """Words of as many steps as may be held at a time; at least one step."""
        most = CHUNK_BYTES // (len(self._first) * 4 * self._config.cells * self._dtype.itemsize)
        total = 0
        for size in sizes:
            if total and total + size > most:
                break
            total += size
        return total

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

    def _multiplying(self) -> Any:  # noqa: ANN401 - a context
        return _Tf32(self._tf32)


class _Tf32:
    """Products of 32-bit floats rounded to 19 bits, or not, while it lasts; the caller's choice comes back after."""

    def __init__(self, wanted: bool) -> None:
        self.wanted = wanted

    def __enter__(self) -> None:
        self.before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = self.wanted

    def __exit__(self, *_: object) -> None:
        torch.backends.cuda.matmul.allow_tf32 = self.before


def _stack(layers: Sequence[Any], dtype: torch.dtype) -> _Layer:
    """The ways of one layer, as one."""
    biases = [opened_bias(layer.bias.detach().float(), layer.config.forget_bias) for layer in layers]

    def stack(name: str) -> Tensor:
        return torch.stack([getattr(layer, name).detach() for layer in layers]).to(dtype)

    projection = None if layers[0].projection is None else stack("projection")
    return _Layer(stack("input"), stack("recurrent"), torch.stack(biases), projection)
