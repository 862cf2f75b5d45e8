"""Log-probabilities of the words of a text, by the full softmax over one direction of a biLM at a time.

A sentence w₁…wₙ is read forward as ``<S>, w₁…wₙ`` to predict ``w₁…wₙ, </S>``, and backward as ``</S>, wₙ…w₁`` to
predict ``wₙ…w₁, <S>``: n + 1 predictions a direction. The forward direction never reads ``</S>``, nor the backward
``<S>``.

Shapes: U distinct words, T steps, B sequences, N predictions, P dim of one direction, V words of the vocabulary.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from polyseme.model.bilm import BiLM, WordBatch
from polyseme.model.config import Direction
from polyseme.model.reading import read
from polyseme.model.softmax import Head
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.word_encoder import CLOSING, OPENING, WordEncoder

# Rows side by side, words that are encoded at a time, and numbers of LSTM cells that are held at a time.
CPU, GPU = (128, 1024, 1 << 23), (1024, 8192, 1 << 26)


class TokenSequence(NamedTuple):
    """One run of a direction from nothing: as many words to read as to predict."""

    read: np.ndarray
    wanted: np.ndarray


def make_sequence(sentences: Sequence[np.ndarray], direction: Direction) -> TokenSequence:
    """A document as one direction goes through it; a sentence by itself is a document of one."""
    first, last = (OPENING, CLOSING) if direction == "forward" else (CLOSING, OPENING)
    ordered = sentences if direction == "forward" else [sentence[::-1] for sentence in reversed(sentences)]
    read, wanted = [], []
    for sentence in ordered:
        read += [[first], sentence]
        wanted += [sentence, [last]]
    return TokenSequence(
        *(np.concatenate(parts, dtype=np.int64) if parts else np.zeros(0, np.int64) for parts in (read, wanted))
    )


class BiLMScorer:
    """Some distinct words, each encoded once, and everything that can be read in them.

    Args:
        bilm: The network.
        softmax: Its head.
        words: How it reads words.
        vocabulary: How the head numbers them.
        distinct: The words; the first has the number 2, after the boundaries.
    """

    def __init__(
        self, bilm: BiLM, softmax: Head, words: WordEncoder, vocabulary: Vocabulary, distinct: Sequence[str]
    ) -> None:
        self._bilm, self._softmax = bilm, softmax
        self.device = next(softmax.parameters()).device
        self._width, piece, cells = GPU if self.device.type == "cuda" else CPU
        self._budget = max(1, cells // bilm.config.lstm.cells)
        self.targets = _targets(vocabulary, [word[: words.longest] for word in distinct])
        with at_rest(bilm, softmax):
            self._vectors = self._encode(words, distinct, piece)

    def log_probs(self, direction: Direction, rows: Sequence[TokenSequence]) -> Tensor:
        """The log-probability of each word that is wanted, all rows laid end to end (N,)."""
        wanted = np.concatenate([*(row.wanted for row in rows), np.zeros(0, np.int64)], dtype=np.int64)
        found = torch.zeros(len(wanted), device=self.device)
        with at_rest(self._bilm, self._softmax):
            for hidden, places in self._read(direction, [row.read for row in rows]):
                targets = self._on_device(self.targets[wanted[places]])
                found[self._on_device(places)] = self._softmax.log_prob(hidden, targets)
        return found

    def next_word(self, direction: Direction, row: np.ndarray) -> Tensor:
        """The log-probability of every word (V,) after a row has been read."""
        with at_rest(self._bilm, self._softmax):
            hidden, _ = deque(self._read(direction, [row]), maxlen=1).pop()
            return self._softmax.log_probs(hidden[-1:])[0]

    def _read(self, direction: Direction, rows: Sequence[np.ndarray]) -> Iterator[tuple[Tensor, np.ndarray]]:
        """The top layer (N, P) of what is there of some steps, and where each of these belongs."""
        number = self._bilm.config.directions.index(direction)
        inputs = self._vectors.chunk(len(self._bilm.config.directions), dim=1)[number]
        for side_by_side in steps(rows, self._width, self._budget):
            state = None
            for step in side_by_side:
                before = state and type(state)(*(part[:, : step.rows] for part in state))
                hidden, state = read(self._bilm, number, inputs[self._on_device(step.read)], before)
                yield hidden.flatten(0, 1)[self._on_device(step.present)], step.places

    def _encode(self, words: WordEncoder, distinct: Sequence[str], piece: int) -> Tensor:
        encoded = [array if array is None else torch.from_numpy(array) for array in words.encode(distinct)]
        nowhere = torch.zeros(0, 0, dtype=torch.int64)
        vectors = []
        for first in range(0, len(distinct) + 2, piece):
            parts = (part if part is None else part[first : first + piece] for part in encoded)
            vectors.append(self._bilm.encode_words(WordBatch(nowhere, nowhere, *parts).to(self.device)))
        return torch.cat(vectors)

    def _on_device(self, numbers: np.ndarray) -> Tensor:
        return torch.from_numpy(numbers).to(self.device, non_blocking=True)


def _targets(vocabulary: Vocabulary, words: Sequence[str]) -> np.ndarray:
    """Numbers in the head's vocabulary; a word of the text that looks like a boundary is unknown, and none."""
    unknown = vocabulary.id(vocabulary.unk)
    boundaries = (vocabulary.bos, vocabulary.eos)
    targets = np.empty(len(words) + 2, np.int64)
    targets[[OPENING, CLOSING]] = vocabulary.encode(boundaries)
    targets[CLOSING + 1 :] = [unknown if word in boundaries else vocabulary.id(word) for word in words]
    return targets


@contextmanager
def at_rest(*modules: nn.Module) -> Iterator[None]:
    """No gradients, no dropout, no autocast of the caller's: as if nobody were training them."""
    modes = {part: part.training for module in modules for part in module.modules()}
    device = next(modules[0].parameters()).device.type
    try:
        for module in modules:
            module.eval()
        with torch.no_grad(), torch.autocast(device, enabled=False):
            yield
    finally:
        for part, training in modes.items():
            part.training = training


class PackedSteps(NamedTuple):
    """Some steps of some rows side by side, those that end in between padded.

    Attributes:
        rows: How many rows have not ended: the first so many of the step before.
        read: Words to read (steps, rows); anything where a row has ended.
        present: Which of these, flattened, are there.
        places: Where what is predicted there belongs, in all rows laid end to end.
    """

    rows: int
    read: np.ndarray
    present: np.ndarray
    places: np.ndarray


def steps(rows: Sequence[np.ndarray], width: int, budget: int) -> Iterator[list[PackedSteps]]:
    """Go through rows of like length side by side, at most ``width`` of them, about ``budget`` words at a time.

    Gives the steps of one set of rows after the other; in each, the longest row comes first, and the ones that have
    ended drop out at the end.
    """
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    offsets = np.cumsum(lengths) - lengths
    flat = np.concatenate([*rows, np.zeros(0, np.int64)], dtype=np.int64)
    order = np.argsort(-lengths, kind="stable")
    for first in range(0, len(order), width):
        side_by_side = order[first : first + width]
        yield list(_steps(flat, offsets[side_by_side], lengths[side_by_side], budget))


def _steps(flat: np.ndarray, offsets: np.ndarray, lengths: np.ndarray, budget: int) -> Iterator[PackedSteps]:
    begin = 0
    while rows := int((lengths > begin).sum()):
        end = min(begin + max(1, budget // rows), int(lengths[0]))
        at = np.arange(begin, end)[:, None]
        present = at < lengths[:rows]
        places = np.where(present, at + offsets[:rows], 0)
        yield PackedSteps(rows, flat[places], np.flatnonzero(present), places[present])
        begin = end
