"""An embedder for tests whose vectors are known: the words around a word say what it means."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

TOPICS = {"river": 0, "water": 0, "boat": 0, "money": 1, "loan": 1, "account": 1}


class Sensible:
    """Layer 0 is the word alone; layer 1 adds the topics of its sentence, layer 2 nothing but them."""

    name = "sensible"
    dim = 16
    num_layers = 3

    def embed(self, sentences: Iterable[Sequence[str]]) -> Iterator[np.ndarray]:
        for words in sentences:
            alone = np.array([_spelling(word) for word in words]).reshape(-1, self.dim)
            topics = np.zeros(self.dim)
            for word in words:
                if word.lower() in TOPICS:
                    topics[TOPICS[word.lower()]] += 1
            around = np.broadcast_to(topics + 0.01 * len(words), alone.shape)
            yield np.stack([alone, alone + 3 * around, around]).astype(np.float32)

    def fingerprint(self) -> str:
        return "sensible"

    def misread(self, words: Sequence[str]) -> dict[str, int]:
        return {}


def _spelling(word: str) -> np.ndarray:
    seed = sum(ord(letter) * 31**place for place, letter in enumerate(word.lower()[:6]))
    return np.random.default_rng(seed).standard_normal(Sensible.dim)


RIVER = ["The bank of the river", "Water by the bank", "A boat at the bank", "The river bank near the boat"]
MONEY = ["The bank lent money", "An account at a bank", "Bank loan and money", "A loan from the bank"]
SENTENCES = [line.split() for line in [*RIVER, *MONEY, "Nothing to see here"]]
