"""An embedder whose every number is known beforehand, to see whether instruments find what was put there."""

import hashlib

import numpy as np


def noise(*key: object, dim: int) -> np.ndarray:
    """A random vector that is always the same for the same key."""
    digest = hashlib.sha256(repr(key).encode()).digest()
    return np.random.default_rng(list(digest)).normal(size=dim).astype(np.float32)


class Planted:
    """Layer 0 knows the word alone, layer 1 what a function makes of word and sentence, layer 2 nothing."""

    name = "planted"
    num_layers = 3

    def __init__(self, plant=lambda words, place: noise(*words, place, dim=8), dim: int = 8) -> None:
        self.plant, self.dim = plant, dim

    def embed(self, sentences):
        for words in sentences:
            layers = np.zeros((3, len(words), self.dim), dtype=np.float32)
            for place, word in enumerate(words):
                layers[0, place] = noise(word, dim=self.dim)
                layers[1, place] = self.plant(words, place)
                layers[2, place] = noise(*words, place, "nothing", dim=self.dim)
            yield layers


class OneLayer(Planted):
    """The same, layer 0 alone, as static vectors have it."""

    name = "one layer"
    num_layers = 1

    def embed(self, sentences):
        return (layers[:1] for layers in super().embed(sentences))
