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

from polyseme.model.bilm import BiLM, WordBatch, read_direction
from polyseme.model.config import Direction
from polyseme.model.softmax import Head
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.word_encoder import CLOSING, OPENING, WordEncoder

# Sequences in a batch, words encoded at a time, and LSTM cell values held at a time.
CPU, GPU = (128, 1024, 1 << 23), (1024, 8192, 1 << 26)


class TokenSequence(NamedTuple):
    """Token sequence for one direction: word ids to read, and as many target ids to predict."""

    inputs: np.ndarray
    targets: np.ndarray


def make_sequence(sentences: Sequence[np.ndarray], direction: Direction) -> TokenSequence:
    """Token sequence of a document as one direction reads it; a single sentence is a document of one."""
    first, last = (OPENING, CLOSING) if direction == "forward" else (CLOSING, OPENING)
    ordered = sentences if direction == "forward" else [sentence[::-1] for sentence in reversed(sentences)]
    inputs, targets = [], []
    for sentence in ordered:
        inputs += [[first], sentence]
        targets += [sentence, [last]]
    return TokenSequence(
        *(np.concatenate(parts, dtype=np.int64) if parts else np.zeros(0, np.int64) for parts in (inputs, targets))
    )


class BiLMScorer:
    """Log-probabilities by a biLM and its softmax, over texts of some distinct words, each encoded once.

    Args:
        bilm: The network.
        softmax: Its softmax head.
        words: Its word encoder.
        vocabulary: The words of the head.
        distinct: The words of the text; the first has the id 2, after the boundaries.
    """

    def __init__(
        self, bilm: BiLM, softmax: Head, words: WordEncoder, vocabulary: Vocabulary, distinct: Sequence[str]
    ) -> None:
        self._bilm, self._softmax = bilm, softmax
        self.device = next(softmax.parameters()).device
        self._width, chunk, cells = GPU if self.device.type == "cuda" else CPU
        self._budget = max(1, cells // bilm.config.lstm.cells)
        self.targets = _targets(vocabulary, [word[: words.longest] for word in distinct])
        with evaluation_mode(bilm, softmax):
            self._vectors = self._encode(words, distinct, chunk)

    def log_probs(self, direction: Direction, sequences: Sequence[TokenSequence]) -> Tensor:
        """Log-probabilities of all targets, sequence after sequence (N,)."""
        words = np.concatenate([*(each.targets for each in sequences), np.zeros(0, np.int64)], dtype=np.int64)
        found = torch.zeros(len(words), device=self.device)
        with evaluation_mode(self._bilm, self._softmax):
            for hidden, places in self._top_layer(direction, [each.inputs for each in sequences]):
                targets = self._on_device(self.targets[words[places]])
                found[self._on_device(places)] = self._softmax.log_prob(hidden, targets)
        return found

    def next_word(self, direction: Direction, inputs: np.ndarray) -> Tensor:
        """Log-probabilities of every word of the vocabulary (V,) after some inputs."""
        with evaluation_mode(self._bilm, self._softmax):
            hidden, _ = deque(self._top_layer(direction, [inputs]), maxlen=1).pop()
            return self._softmax.log_probs(hidden[-1:])[0]

    def _top_layer(self, direction: Direction, sequences: Sequence[np.ndarray]) -> Iterator[tuple[Tensor, np.ndarray]]:
        """Top-layer outputs (N, P) of some steps, padding removed, and their places among all predictions."""
        number = self._bilm.config.directions.index(direction)
        inputs = self._vectors.chunk(len(self._bilm.config.directions), dim=1)[number]
        for batch in _batches(sequences, self._width, self._budget):
            state = None
            for step in batch:
                before = state and type(state)(*(part[:, : step.active] for part in state))
                hidden, state = read_direction(self._bilm, number, inputs[self._on_device(step.inputs)], before)
                yield hidden.flatten(0, 1)[self._on_device(step.present)], step.places

    def _encode(self, words: WordEncoder, distinct: Sequence[str], chunk: int) -> Tensor:
        encoded = [array if array is None else torch.from_numpy(array) for array in words.encode(distinct)]
        nowhere = torch.zeros(0, 0, dtype=torch.int64)
        vectors = []
        for first in range(0, len(distinct) + 2, chunk):
            parts = (part if part is None else part[first : first + chunk] for part in encoded)
            vectors.append(self._bilm.encode_words(WordBatch(nowhere, nowhere, *parts).to(self.device)))
        return torch.cat(vectors)

    def _on_device(self, numbers: np.ndarray) -> Tensor:
        return torch.from_numpy(numbers).to(self.device, non_blocking=True)


def _targets(vocabulary: Vocabulary, words: Sequence[str]) -> np.ndarray:
    """Ids in the head's vocabulary; a word of the text that looks like a boundary counts as unknown."""
    unknown = vocabulary.id(vocabulary.unk)
    boundaries = (vocabulary.bos, vocabulary.eos)
    targets = np.empty(len(words) + 2, np.int64)
    targets[[OPENING, CLOSING]] = vocabulary.encode(boundaries)
    targets[CLOSING + 1 :] = [unknown if word in boundaries else vocabulary.id(word) for word in words]
    return targets


@contextmanager
def evaluation_mode(*modules: nn.Module) -> Iterator[None]:
    """Evaluation mode for a block: no gradients, no dropout, no autocast; restored afterwards."""
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
    """Padded batch of some steps of several sequences.

    Attributes:
        active: How many sequences have not ended: the first so many of the batch before.
        inputs: Word ids to read (steps, active); anything where a sequence has ended.
        present: Which of these, flattened, are not padding.
        places: Their places among all predictions, sequence after sequence.
    """

    active: int
    inputs: np.ndarray
    present: np.ndarray
    places: np.ndarray


def _batches(sequences: Sequence[np.ndarray], width: int, budget: int) -> Iterator[list[PackedSteps]]:
    """Batch sequences of similar length, at most ``width`` of them, in chunks of about ``budget`` words.

    Yields the chunks of one batch after the other; in each, the longest sequence comes first, and the ones that have
    ended are dropped from the end.
    """
    lengths = np.array([len(each) for each in sequences], dtype=np.int64)
    offsets = np.cumsum(lengths) - lengths
    flat = np.concatenate([*sequences, np.zeros(0, np.int64)], dtype=np.int64)
    order = np.argsort(-lengths, kind="stable")
    for first in range(0, len(order), width):
        batch = order[first : first + width]
        yield list(_steps(flat, offsets[batch], lengths[batch], budget))


def _steps(flat: np.ndarray, offsets: np.ndarray, lengths: np.ndarray, budget: int) -> Iterator[PackedSteps]:
    begin = 0
    while active := int((lengths > begin).sum()):
        end = min(begin + max(1, budget // active), int(lengths[0]))
        at = np.arange(begin, end)[:, None]
        present = at < lengths[:active]
        places = np.where(present, at + offsets[:active], 0)
        yield PackedSteps(active, flat[places], np.flatnonzero(present), places[present])
        begin = end
