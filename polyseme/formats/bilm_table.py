"""bilm-tf's tensor names, shapes and layouts beside ours: one table that converts both ways, bit for bit.

The conventions are TensorFlow's: matrices are used as x·W; one kernel holds the rows for the input above those for the
recurrent output; gates stand in the order input, candidate, forget, output; filters are (1, width, dim, count).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from polyseme.model.config import BiLMConfig, CharCnnConfig


@dataclass(frozen=True)
class TensorEntry:
    """Table entry: one bilm-tf dataset, and the tensors of ours that it holds."""

    theirs: str
    shape: tuple[int, ...]
    ours: tuple[str, ...]
    split: Callable[[np.ndarray], tuple[np.ndarray, ...]]
    join: Callable[..., np.ndarray]


def entries(config: BiLMConfig) -> Iterator[TensorEntry]:
    """Conversion table of bilm-tf's tensor names, shapes and layouts."""
    if config.input.num_words:
        shape = (config.input.num_words, config.input.word_dim)
        yield TensorEntry("embedding", shape, ("inputs.0.words.weight",), _one, _same)
    if characters := config.input.characters:
        yield from _character_entries(characters)
    if config.input.projected:
        yield from _linear("CNN_proj/{}_proj", "inputs.0.projection", config.input.num_features, config.input.dim)
    lstm = config.lstm
    for direction in range(len(config.directions)):
        for layer in range(lstm.num_layers):
            cell, ours = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell", f"lstms.{direction}.{layer}"
            kernel = (2 * lstm.dim, 4 * lstm.cells)
            yield TensorEntry(
                f"{cell}/W_0", kernel, (f"{ours}.input", f"{ours}.recurrent"), _split_kernel, _join_kernel
            )
            yield TensorEntry(f"{cell}/B", (4 * lstm.cells,), (f"{ours}.bias",), _split_bias, _swap_gates)
            if lstm.projected:
                yield TensorEntry(f"{cell}/W_P_0", (lstm.cells, lstm.dim), (f"{ours}.projection",), _one, _same)


def _character_entries(config: CharCnnConfig) -> Iterator[TensorEntry]:
    ours = "inputs.0.characters"
    yield TensorEntry("char_embed", (config.num_characters, config.dim), (f"{ours}.embedding.weight",), _one, _same)
    for i, (width, count) in enumerate(config.filters):
        name = f"{ours}.convolutions.{i}"
        yield TensorEntry(
            f"CNN/W_cnn_{i}", (1, width, config.dim, count), (f"{name}.weight",), _split_filter, _join_filter
        )
        yield TensorEntry(f"CNN/b_cnn_{i}", (count,), (f"{name}.bias",), _one, _same)
    for i in range(config.num_highway):
        size = config.num_filters
        yield from _linear(f"CNN_high_{i}/{{}}_carry", f"{ours}.highways.{i}.gate", size, size)
        yield from _linear(f"CNN_high_{i}/{{}}_transform", f"{ours}.highways.{i}.transform", size, size)


def _linear(theirs: str, ours: str, inputs: int, outputs: int) -> Iterator[TensorEntry]:
    yield TensorEntry(theirs.format("W"), (inputs, outputs), (f"{ours}.weight",), _flip, np.transpose)
    yield TensorEntry(theirs.format("b"), (outputs,), (f"{ours}.bias",), _one, _same)


def _one(array: np.ndarray) -> tuple[np.ndarray, ...]:
    return (array,)


def _same(array: np.ndarray) -> np.ndarray:
    return array


def _flip(array: np.ndarray) -> tuple[np.ndarray, ...]:
    return (array.T,)


def _split_filter(array: np.ndarray) -> tuple[np.ndarray, ...]:
    return (array[0].transpose(2, 1, 0),)


def _join_filter(array: np.ndarray) -> np.ndarray:
    return array.transpose(2, 1, 0)[np.newaxis]


def _swap_gates(array: np.ndarray) -> np.ndarray:
    """Swap candidate and forget gate, the second and third quarter of the last axis; it is its own inverse."""
    quarters = array.reshape(*array.shape[:-1], 4, -1)
    return quarters[..., [0, 2, 1, 3], :].reshape(array.shape)


def _split_bias(array: np.ndarray) -> tuple[np.ndarray, ...]:
    return (_swap_gates(array),)


def _split_kernel(array: np.ndarray) -> tuple[np.ndarray, ...]:
    half = len(array) // 2
    return _swap_gates(array[:half]), _swap_gates(array[half:])


def _join_kernel(inputs: np.ndarray, recurrent: np.ndarray) -> np.ndarray:
    return _swap_gates(np.concatenate([inputs, recurrent]))
