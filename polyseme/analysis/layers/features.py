"""Vectors of labelled words, kept in a temporary file: there may be more of them than memory holds."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from polyseme.analysis.layers.views import view_dim
from polyseme.corpus.uses import check_vectors
from polyseme.embedding.interfaces import Embedder
from polyseme.embedding.layers import LayerChoice, choose
from polyseme.errors import OutputError
from polyseme.text.conll import Labelled

SMALL = 1 << 26  # bytes that are held in memory


@dataclass(frozen=True, eq=False)
class LabelledVectors:
    """Words that have a label, with their vectors.

    Attributes:
        words: As they are written.
        labels: One for each.
        layers: For each choice of layers an array (words, dim), mapped from a file that vanishes with it.
    """

    words: tuple[str, ...]
    labels: tuple[str, ...]
    layers: tuple[np.ndarray, ...]


def embed_labelled(
    embedder: Embedder, sentences: Sequence[Labelled], choices: Sequence[LayerChoice]
) -> LabelledVectors:
    """Embed sentences, and keep the vectors of the words that have a label."""
    pairs = [pair for sentence in sentences for pair in zip(*sentence, strict=True) if pair[1] is not None]
    arrays = [on_disk(len(pairs), view_dim(choice, embedder.num_layers, embedder.dim)) for choice in choices]
    done = 0
    for kept in _labelled_vectors(embedder, [each for each in sentences if set(each.labels) - {None}]):
        for array, choice in zip(arrays, choices, strict=True):
            array[done : done + kept.shape[1]] = choose(kept, choice)
        done += kept.shape[1]
    words, labels = zip(*pairs, strict=True) if pairs else ((), ())
    return LabelledVectors(words, labels, tuple(arrays))


def _labelled_vectors(embedder: Embedder, sentences: Sequence[Labelled]) -> Iterator[np.ndarray]:
    for sentence, vectors in zip(sentences, embedder.embed(each.words for each in sentences), strict=True):
        places = [place for place, label in enumerate(sentence.labels) if label is not None]
        yield check_vectors(vectors, sentence.words)[:, places]


def on_disk(rows: int, dim: int) -> np.ndarray:
    """An array to fill, in a file that the system takes away when nobody holds it any more; a small one in memory."""
    size = 4 * rows * dim
    if size <= SMALL:
        return np.zeros((rows, dim), dtype=np.float32)
    try:
        with tempfile.TemporaryFile() as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)  # a disk that is full says so here, and not by a crash
            return np.memmap(file, dtype=np.float32, shape=(rows, dim), mode="w+")
    except OSError as error:
        place = tempfile.gettempdir()
        raise OutputError(
            f"no room for {size / 1e9:.1f} GB of vectors in {place}: {error.strerror}; TMPDIR says where to put them"
        ) from error
