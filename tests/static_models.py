"""Static vectors for tests, made on the spot."""

import numpy as np

from polyseme.backends.static import StaticEncoder
from polyseme.formats.vectors import Block
from polyseme.formats.vectors.table import VectorTable, build_in_memory

WORDS = ["the", "bank", "Bank", "of", "river", "he", "."]


def make_table(words=WORDS, dim: int = 5, seed: int = 0) -> VectorTable:
    rows = np.random.default_rng(seed).standard_normal((len(words), dim)).astype(np.float32)
    return build_in_memory([Block(list(words), rows)], dim, {"format": "made on the spot"})


def make_static(**settings) -> StaticEncoder:
    return StaticEncoder(make_table(), **settings)
