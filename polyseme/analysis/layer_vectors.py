"""Word vectors layer by layer: of labelled words in their sentences, and of isolated words without context.

There may be more vectors than memory holds: large arrays lie in a temporary file.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from polyseme.backends.elmo.encoder import ElmoEncoder
from polyseme.backends.static import StaticEncoder
from polyseme.embedding.interfaces import Embedder
from polyseme.embedding.layers import LayerChoice, Mix, check_vectors, choose
from polyseme.errors import OutputError
from polyseme.text.conll import LabelledSentence

SMALL = 1 << 26  # bytes up to which an array is held in memory


def layer_choices(choice: LayerChoice, num_layers: int) -> tuple[LayerChoice, ...]:
    """Each layer separately for ``all``, else the one choice; refused when the model does not have it."""
    if choice == "all":
        return tuple(range(num_layers))
    layer_dim(choice, num_layers, 1)
    return (choice,)


def layer_name(choice: LayerChoice) -> int | str:
    """The layer in a table of results: its number, or the weights of a mixture of layers."""
    return str(choice) if isinstance(choice, Mix) else choice


def layer_dim(choice: LayerChoice, num_layers: int, dim: int) -> int:
    """The dimension of vectors of that choice; some choices concatenate several layers."""
    return choose(np.zeros((num_layers, 1, dim), dtype=np.float32), choice).shape[-1]


@dataclass(frozen=True, eq=False)
class LabelledVectors:
    """Labelled words with their vectors in each chosen layer.

    Attributes:
        words: As they are written.
        labels: One for each word.
        layers: For each choice of layers an array (words, dim), in memory or in a temporary file.
    """

    words: tuple[str, ...]
    labels: tuple[str, ...]
    layers: tuple[np.ndarray, ...]


def embed_labelled(
    embedder: Embedder, sentences: Sequence[LabelledSentence], choices: Sequence[LayerChoice]
) -> LabelledVectors:
    """Embed labelled sentences, and keep the vectors of the words that have a label."""
    pairs = [pair for sentence in sentences for pair in zip(*sentence, strict=True) if pair[1] is not None]
    labelled = [sentence for sentence in sentences if set(sentence.labels) - {None}]
    arrays = _fill_layers(embedder, len(pairs), choices, _labelled_vectors(embedder, labelled))
    words, labels = zip(*pairs, strict=True) if pairs else ((), ())
    return LabelledVectors(words, labels, tuple(arrays))


def embed_isolated(embedder: Embedder, words: Sequence[str], choices: Sequence[LayerChoice]) -> list[np.ndarray]:
    """Embed words without context, each as a sentence of its own: for each choice of layers an array (words, dim).

    Static vectors are just looked up. ELMo's layer 0 does not depend on context, so for it alone no LSTM is run.
    """
    if isinstance(embedder, StaticEncoder) or (isinstance(embedder, ElmoEncoder) and set(choices) <= {0, "embeddings"}):
        layer = embedder.embed_words(words)[None]
        return [choose(layer, choice) for choice in choices]
    vectors = embedder.embed([word] for word in words)
    checked = (check_vectors(array, [word]) for word, array in zip(words, vectors, strict=True))
    return _fill_layers(embedder, len(words), choices, checked)


def known_mask(embedder: Embedder, words: Sequence[str], arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Which words the model knows: those with a static vector, or those whose vectors are not zeros in every layer."""
    if isinstance(embedder, StaticEncoder):
        return embedder.rows(words) < embedder.num_words
    return np.any([array.any(axis=1) for array in arrays], axis=0)


def temporary_array(rows: int, dim: int) -> np.ndarray:
    """An array of zeros, in memory if small, else mapped to a temporary file that is deleted with the array."""
    size = 4 * rows * dim
    if size <= SMALL:
        return np.zeros((rows, dim), dtype=np.float32)
    try:
        with tempfile.TemporaryFile() as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)  # so that a full disk is an error here, not a crash later
            return np.memmap(file, dtype=np.float32, shape=(rows, dim), mode="w+")
    except OSError as error:
        raise OutputError(
            f"cannot store {size / 1e9:.1f} GB of vectors in {tempfile.gettempdir()}: {error.strerror}; "
            "free some space, or set TMPDIR to a folder on another disk"
        ) from error


def _labelled_vectors(embedder: Embedder, sentences: Sequence[LabelledSentence]) -> Iterator[np.ndarray]:
    for sentence, vectors in zip(sentences, embedder.embed(each.words for each in sentences), strict=True):
        places = [place for place, label in enumerate(sentence.labels) if label is not None]
        yield check_vectors(vectors, sentence.words)[:, places]


def _fill_layers(
    embedder: Embedder, rows: int, choices: Sequence[LayerChoice], vectors: Iterator[np.ndarray]
) -> list[np.ndarray]:
    """Store vectors (layers, words, dim), as they come, in one array (rows, dim) for each choice of layers."""
    arrays = [temporary_array(rows, layer_dim(choice, embedder.num_layers, embedder.dim)) for choice in choices]
    done = 0
    for some in vectors:
        for array, choice in zip(arrays, choices, strict=True):
            array[done : done + some.shape[1]] = choose(some, choice)
        done += some.shape[1]
    return arrays
