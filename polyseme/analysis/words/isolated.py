"""Words without context: each embedded as a sentence of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyseme.analysis.layers.features import on_disk
from polyseme.analysis.layers.views import view_dim
from polyseme.backends.elmo.encoder import ElmoEncoder
from polyseme.backends.static import StaticEncoder
from polyseme.corpus.uses import check_vectors
from polyseme.embedding.interfaces import Embedder
from polyseme.embedding.layers import LayerChoice, choose


def embed_alone(embedder: Embedder, words: Sequence[str], choices: Sequence[LayerChoice]) -> list[np.ndarray]:
    """For each choice of layers an array (words, dim).

    Static vectors are just looked up; and of ELMo, layer 0 knows no context, so for it alone no LSTM is run.
    """
    if isinstance(embedder, StaticEncoder) or (isinstance(embedder, ElmoEncoder) and set(choices) <= {0, "embeddings"}):
        layer = embedder.embed_words(words)[None]
        return [choose(layer, choice) for choice in choices]
    arrays = [on_disk(len(words), view_dim(choice, embedder.num_layers, embedder.dim)) for choice in choices]
    for row, vectors in enumerate(embedder.embed([word] for word in words)):
        check_vectors(vectors, words[row : row + 1])
        for array, choice in zip(arrays, choices, strict=True):
            array[row] = choose(vectors, choice)[0]
    return arrays


def known(embedder: Embedder, words: Sequence[str], arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Which words the model knows: static vectors those that they have, any other model those that it can read."""
    if isinstance(embedder, StaticEncoder):
        return embedder.rows(words) < embedder.num_words
    return np.any([array.any(axis=1) for array in arrays], axis=0)
