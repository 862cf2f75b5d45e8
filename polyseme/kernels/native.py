"""Native CPU kernels, compiled from native.c where the install found a compiler; same numbers as `reference`.

Arrays are NumPy's, 32-bit floats. What is computed runs on the calling thread and lets other threads run meanwhile;
who calls shares the work out, but for what says that it does so itself. With ``int8=True`` weights are rounded to
8 bits, with a scale for each column, and so are the rows that they are multiplied with, with a scale for each row: no
row depends on the others.

Shapes: N words in all, U distinct words, B sentences, P dim, H cells, C characters.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.resources
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from polyseme.kernels import threads
from polyseme.kernels.reference import LstmpWeights, add_forget_bias

VARIANTS = ("avx512vnni", "avx512", "avx2", "dotprod", "neon")  # best first; the installer makes those of its processor
CHUNK_WORDS = 128  # whose input products are held at a time
GROUP = 16  # terms of an 8-bit sum are padded to a multiple of this
# Rows are set apart by so many floats more: at distances of a power of two they would all compete for the same few
# places in the processor's cache. It is also the longest vector there is.
APART = 16

_POINTER, _LONG, _INT = ctypes.c_void_p, ctypes.c_long, ctypes.c_int


@functools.cache
def library() -> ctypes.CDLL | None:
    """The compiled kernels for this processor, or None where there are none."""
    folder = importlib.resources.files("polyseme.kernels")
    for variant in VARIANTS:
        file = folder / f"_native_{variant}.so"
        if file.is_file():
            try:
                found = ctypes.CDLL(str(file))
            except OSError:  # made for another kind of machine
                continue
            if found.supported():
                return _declare(found)
    return None


class _WeightsStruct(ctypes.Structure):
    _fields_ = [
        ("panels", _POINTER),
        ("scales", _POINTER),
        ("offsets", _POINTER),
        ("terms", _LONG),
        ("columns", _LONG),
    ]


class _LstmStruct(ctypes.Structure):
    _fields_ = [
        ("recurrent", _WeightsStruct),
        ("projection", _WeightsStruct),
        ("bias", _POINTER),
        ("cell_clip", ctypes.c_float),
        ("output_clip", ctypes.c_float),
    ]


def _declare(found: ctypes.CDLL) -> ctypes.CDLL:
    p, n, i = _POINTER, _LONG, _INT
    signatures = {
        "columns_packed": (n, [i, n]),
        "bytes_packed": (n, [i, n, n, i]),
        "vector_length": (n, []),
        "pack": (None, [p, n, n, n, i, n, p]),
        "pack8": (None, [p, n, n, n, i, n, p, p, p]),
        "linear": (None, [p, p, p, n, n, p, p, p, n]),
        "highway": (None, [p, n, p, p, n, n]),
        "convolve": (None, [p, p, n, n, p, n, n, p, n, p, n, n]),
        "activate": (None, [p, n, i]),
        "lstm": (None, [p, p, n, p, p, n, i, n, p, p, p, p, p, p, p]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    return found


def _loops() -> ctypes.CDLL:
    found = library()
    if found is None:
        raise RuntimeError("the compiled loops are not there; ask `library` first")
    return found


class PackedMatrix:
    """Weights (terms, groups of columns side by side), packed as the loops read them. Tensors: processes share them."""

    def __init__(self, weight: Tensor, groups: int = 1, int8: bool = False) -> None:
        weight = weight.detach()
        self.terms, total = weight.shape
        self.width = total // groups
        self.columns = _loops().columns_packed(groups, self.width)
        self.panels = torch.empty(_loops().bytes_packed(groups, self.width, self.terms, int8), dtype=torch.uint8)
        self.scales = torch.empty(self.columns) if int8 else None
        self.offsets = torch.empty(self.columns, dtype=torch.int32) if int8 else None
        shape = (weight.data_ptr(), *weight.stride(), self.terms, groups, self.width, self.panels.data_ptr())
        if self.scales is not None and self.offsets is not None:
            _loops().pack8(*shape, self.scales.data_ptr(), self.offsets.data_ptr())
        else:
            _loops().pack(*shape)

    @property
    def struct(self) -> _WeightsStruct:
        """The matrix as the C struct of the kernels."""
        return self.columns_struct(slice(0, self.columns))

    def columns_struct(self, columns: slice) -> _WeightsStruct:
        """Some of the columns: whole panels."""
        size = self.panels.numel() // self.columns
        addresses = (
            part if part is None else part.data_ptr() + columns.start * width
            for part, width in ((self.panels, size), (self.scales, 4), (self.offsets, 4))
        )
        return _WeightsStruct(*addresses, self.terms, columns.stop - columns.start)

    def scratch(self, rows: int) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Room for rows in 8 bits and their scales, where they are needed."""
        if self.scales is None:
            return None, None
        padded = -(-self.terms // GROUP) * GROUP
        return np.empty((rows, padded), dtype=np.int8), np.empty(rows, dtype=np.float32)


class PackedLinear:
    """``bias + rows @ weight``, columns in packed order; with one group of columns that is the order they came in."""

    def __init__(self, weight: Tensor, bias: Tensor, groups: int = 1, int8: bool = False) -> None:
        self.matrix = PackedMatrix(weight, groups, int8)
        self.bias = _pack_bias(bias, groups)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Rows (N, terms) to (N, packed columns and a few without meaning)."""
        out = np.empty((len(rows), self.matrix.columns + APART), dtype=np.float32)
        self._fill(rows, out, slice(0, self.matrix.columns))
        return out

    def shared(self, rows: np.ndarray) -> np.ndarray:
        """The same on all threads, each with columns of its own: every weight is read by one thread only."""
        out = np.empty((len(rows), self.matrix.columns + APART), dtype=np.float32)
        panel = 4 * _loops().vector_length()
        panels = threads.parts(self.matrix.columns // panel)
        threads.share(partial(self._fill, rows, out), [slice(p.start * panel, p.stop * panel) for p in panels])
        return out

    def _fill(self, rows: np.ndarray, out: np.ndarray, columns: slice) -> None:
        int8, scales = self.matrix.scratch(len(rows))
        _loops().linear(
            ctypes.byref(self.matrix.columns_struct(columns)),
            self.bias.data_ptr() + 4 * columns.start,
            rows.ctypes.data,
            rows.strides[0] // 4,
            len(rows),
            _address(int8),
            _address(scales),
            out.ctypes.data + 4 * columns.start,
            out.shape[1],
        )


class PackedHighway:
    """A highway layer: g·relu(transform(x)) + (1 - g)·x with g = σ(gate(x))."""

    def __init__(self, gate: torch.nn.Linear, transform: torch.nn.Linear, int8: bool = False) -> None:
        weight = torch.cat([gate.weight, transform.weight]).t()
        self.sums = PackedLinear(weight, torch.cat([gate.bias, transform.bias]), groups=2, int8=int8)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """(U, dim) to (U, dim), on all threads."""
        out = np.empty_like(rows)
        sums = self.sums.shared(rows)
        _loops().highway(sums.ctypes.data, sums.shape[1], rows.ctypes.data, out.ctypes.data, *rows.shape)
        return out


class PackedCharCnn:
    """Characters (U, C) of given lengths to each filter's largest answer, as `reference.prepare_char_cnn`."""

    def __init__(
        self, embedding: Tensor, filters: Sequence[tuple[Tensor, Tensor]], is_tanh: bool, max_characters: int
    ) -> None:
        self.embedding = embedding.detach().contiguous()
        self.is_tanh = is_tanh
        self.max_characters = max_characters
        # A window of characters is read from memory as it lies there: place by place.
        self.filters = [
            (PackedLinear(weight.detach().transpose(1, 2).flatten(1).t(), bias), weight.shape[2])
            for weight, bias in filters
        ]

    def __call__(self, characters: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Max-pooled filter outputs (U, filters) of distinct words."""
        words, dim = len(characters), self.embedding.shape[1]
        spellings = np.ascontiguousarray(self.embedding.numpy()[characters])
        widths = [filters.matrix.width for filters, _ in self.filters]
        out = np.empty((words, sum(widths)), dtype=np.float32)
        first = 0
        for (filters, places), width in zip(self.filters, widths, strict=True):
            # One window of nothing but padding stands for all further ones.
            windows = np.minimum(lengths + 1, self.max_characters - places + 1).astype(np.int32)
            _loops().convolve(
                filters.matrix.panels.data_ptr(),
                filters.bias.data_ptr(),
                filters.matrix.terms,
                filters.matrix.columns,
                spellings.ctypes.data,
                spellings.shape[1] * dim,
                dim,
                windows.ctypes.data,
                words,
                out[:, first:].ctypes.data,
                out.shape[1],
                width,
            )
            first += width
        _loops().activate(out.ctypes.data, out.size, self.is_tanh)
        return out


class PackedState(NamedTuple):
    """Hidden and cell state of one packed LSTM layer, one row per sentence."""

    hidden: np.ndarray  # (B, P)
    cell: np.ndarray  # (B, H and some)

    def repeat(self, sentences: int) -> PackedState:
        """The state of one sentence, copied for so many."""
        return PackedState(*(part.repeat(sentences, axis=0) for part in self))


class PackedLstmp:
    """An LSTM layer with projection, in one direction, as `reference.prepare_lstmp`."""

    def __init__(
        self,
        weights: LstmpWeights,
        *,
        cell_clip: float | None,
        output_clip: float | None,
        forget_bias: float,
        backward: bool,
        int8: bool = False,
    ) -> None:
        self.dim = len(weights.recurrent)
        self.cells = len(weights.bias) // 4
        self.padded = -(-self.cells // APART) * APART + APART
        self.backward = backward
        self.clips = (cell_clip or 0.0, output_clip or 0.0)
        bias = add_forget_bias(weights.bias.detach(), forget_bias)
        self.input = PackedLinear(weights.input, torch.zeros_like(bias), groups=4, int8=int8)
        self.bias = _pack_bias(bias, groups=4)
        self.recurrent = PackedMatrix(weights.recurrent, groups=4, int8=int8)
        self.projection = None
        if weights.projection is not None:
            self.projection = PackedMatrix(weights.projection, int8=int8)

    def initial_state(self, rows: int) -> PackedState:
        """The zero state for a number of sentences."""
        return PackedState(np.zeros((rows, self.dim), np.float32), np.zeros((rows, self.padded), np.float32))

    def __call__(
        self,
        inputs: np.ndarray,
        sizes: Sequence[int] | np.ndarray,
        state: PackedState,
        places: np.ndarray | None = None,
    ) -> np.ndarray:
        """Packed inputs (N, P) to packed outputs (N, P). The state is changed to the one after the words.

        With places (N,), inputs are distinct words (U, P) and the places say which word stands where.
        """
        steps = np.ascontiguousarray(sizes, dtype=np.int32)
        out = np.empty((int(steps.sum()), self.dim), dtype=np.float32)
        if places is not None and len(inputs) <= 2048:
            self._run(self.input(inputs), places, steps, state, out)
            return out
        for begin, end, first, last in _chunks(steps, self.backward):
            words = inputs[begin:end] if places is None else inputs[places[begin:end]]
            self._run(self.input(np.ascontiguousarray(words)), None, steps[first:last], state, out[begin:end])
        return out

    def _run(
        self, gates: np.ndarray, places: np.ndarray | None, sizes: np.ndarray, state: PackedState, out: np.ndarray
    ) -> None:
        rows = len(state.hidden)
        projection = _WeightsStruct() if self.projection is None else self.projection.struct
        net = _LstmStruct(self.recurrent.struct, projection, self.bias.data_ptr(), *self.clips)
        active = np.zeros((rows, self.padded), dtype=np.float32)
        projected = np.empty((rows, 1 if self.projection is None else self.projection.columns), dtype=np.float32)
        widest = max(filter(None, (self.recurrent, self.projection)), key=lambda matrix: matrix.terms)
        int8, scales = widest.scratch(rows)
        _loops().lstm(
            ctypes.byref(net),
            gates.ctypes.data,
            gates.shape[1],
            _address(places),
            sizes.ctypes.data,
            len(sizes),
            self.backward,
            self.padded,
            state.hidden.ctypes.data,
            state.cell.ctypes.data,
            active.ctypes.data,
            projected.ctypes.data,
            _address(int8),
            _address(scales),
            out.ctypes.data,
        )


def _chunks(sizes: np.ndarray, backward: bool) -> Iterator[tuple[int, int, int, int]]:
    """Runs of steps with about CHUNK_WORDS words: first and last word, first and last step."""
    firsts = np.concatenate([[0], np.cumsum(sizes)])
    cuts = [0]
    for step in range(1, len(sizes)):
        if firsts[step + 1] - firsts[cuts[-1]] > CHUNK_WORDS:
            cuts.append(step)
    spans = list(zip(cuts, [*cuts[1:], len(sizes)], strict=True)) if len(sizes) else []
    for first, last in reversed(spans) if backward else spans:
        yield int(firsts[first]), int(firsts[last]), first, last


def _pack_bias(bias: Tensor, groups: int) -> Tensor:
    return PackedMatrix(bias.detach().unsqueeze(0), groups).panels.view(torch.float32)


def _address(array: np.ndarray | None) -> int | None:
    return None if array is None else array.ctypes.data
