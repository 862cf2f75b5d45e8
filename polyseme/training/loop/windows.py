"""Training batches: many rows of text side by side, cut into windows for truncated backpropagation through time.

The words of a shard form a ring: ``0 w w w 0 w w 0 ...`` with a 0 where a sentence ends and another begins. Rows start
at equal distances on it, and each advances by one window per step. The backward direction does the same on the reversed
ring, at positions of its own, so that its state, too, comes from what it has just read. In the forward direction a 0 is
read as ``<S>`` and predicted as ``</S>``; in the backward one it is the other way round.

Some rows are *fresh*: they start every window at the start of a sentence with a zero state, as when a sentence is
embedded. A sentence that the window cut off is read again from its start in the next window.

All random numbers depend on nothing but the seed and the number of the step or epoch, so a resumed run draws the same
numbers as an uninterrupted one.

With a teacher, the backward direction of some fresh rows reads the same sentences as the forward one, so that both
halves of a word's vector exist; these words get the teacher's vectors as further targets.

Shapes: B rows of this process, T words of a window, U distinct words, W words with a teacher's vectors, K layers of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from polyseme.text.vocabulary import RESERVED, Vocabulary
from polyseme.text.word_encoder import WordEncoder
from polyseme.training.loop.distributed import ProcessGroup
from polyseme.training.settings import LoopSettings
from polyseme.training.shards.store import Shards

BOUNDARY = 0
DIRECTIONS = 2


class Window(NamedTuple):
    """One training batch: the words that a step reads, and its targets."""

    places: Tensor  # (2, T, B) row of the distinct word
    characters: Tensor | None  # (U, C)
    character_lengths: Tensor | None  # (U,), on the CPU
    ids: Tensor | None  # (U,) for a model that reads word ids
    targets: Tensor  # (2, T * B) words of the vocabulary
    keep: Tensor  # (2, B) 1 where the LSTM state of a row is carried over, 0 where it is reset
    taught: Tensor | None = None  # (2, W) place in (T * B) at which each direction has read the word
    lessons: Tensor | None = None  # (K, W, D) the teacher's vectors of these words


class TeacherVectors(Protocol):
    """Gives a teacher's vectors of sentences, for training."""

    def vectors(self, sentences: list[list[str]]) -> Tensor:
        """Vectors (K, W, D) of all words, sentence after sentence."""
        ...


@dataclass(frozen=True)
class _Ring:
    """The words of a shard as a ring, in one direction."""

    tokens: Tensor  # (n,)
    starts: Tensor  # where sentences start, repeated for as many rounds as a window may span
    documents: Tensor  # where documents start
    targets: Tensor  # (words,) word of the shard to word of the vocabulary


class Windows:
    """An endless stream of training windows that can be checkpointed and resumed at any position."""

    def __init__(
        self,
        shards: Shards,
        words: WordEncoder,
        vocabulary: Vocabulary,
        settings: LoopSettings,
        processes: ProcessGroup,
        device: torch.device,
        teacher: TeacherVectors | None = None,
        taught_rows: int = 0,
    ) -> None:
        self._shards, self._words, self._vocabulary = shards, words, vocabulary
        self._settings, self._device = settings, device
        self._own_rows = processes.own_rows(settings.rows)
        rows = torch.arange(settings.rows)
        fraction = settings.fresh_rows
        fresh = ((rows + 1) * fraction + 1e-9).floor() > (rows * fraction + 1e-9).floor()
        self._fresh = fresh[self._own_rows].to(device)
        self._teacher = teacher
        self._taught_rows = _spread(self._fresh, taught_rows // processes.count if teacher else 0)
        self.windows_per_epoch = sum(self._windows(number) for number in range(len(shards)))
        self._epoch = self._turn = self._window = 0
        self._start_shard()

    def next_window(self, step: int) -> Window:
        """The next window; ``step`` is the number of the training step that reads it."""
        if self._window == self._windows(self._order[self._turn]):
            self._window, self._turn = 0, self._turn + 1
            if self._turn == len(self._order):
                self._turn, self._epoch = 0, self._epoch + 1
            self._start_shard()
        generator = torch.Generator().manual_seed(mix_seeds(self._settings.seed, step, 2))
        reset = torch.rand(DIRECTIONS, self._settings.rows, generator=generator) < self._settings.forget
        keep = ~reset[:, self._own_rows].to(self._device) & ~self._fresh & ~self._ended
        if self._window == 0:
            keep = torch.zeros_like(keep)
        window = self._read(keep.to(torch.get_default_dtype()))
        if self._teacher and len(self._taught_rows):
            taught, sentences = self._taught_words()
            window = window._replace(taught=taught, lessons=self._teacher.vectors(sentences))
        self._advance()
        return window

    def position(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """The position in the text: plain counters, and tensors with a column for each row of this process."""
        facts = {"epoch": self._epoch, "turn": self._turn, "window": self._window}
        return facts, {"pointers": self._pointers, "ended": self._ended}

    def restore(self, facts: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """Resume from a position; the tensors have the columns of all processes."""
        self._epoch, self._turn, self._window = (int(facts[name]) for name in ("epoch", "turn", "window"))
        self._start_shard()
        self._pointers = tensors["pointers"][:, self._own_rows].to(self._device)
        self._ended = tensors["ended"][:, self._own_rows].to(self._device)

    @property
    def epochs(self) -> float:
        """Passes over the text so far, as a fraction."""
        done = sum(self._windows(number) for number in self._order[: self._turn]) + self._window
        return self._epoch + done / self.windows_per_epoch

    def _windows(self, number: int) -> int:
        tokens = self._shards.training.shards[number].tokens
        return max(1, tokens // (self._settings.rows * self._settings.window))

    def _start_shard(self) -> None:
        """Load the next shard, and place the rows on it."""
        generator = torch.Generator().manual_seed(mix_seeds(self._settings.seed, self._epoch, 1))
        self._order = torch.randperm(len(self._shards), generator=generator).tolist()
        rotation = torch.rand(DIRECTIONS, len(self._shards), generator=generator)[:, self._turn]
        shard = self._shards[self._order[self._turn]]
        self._spellings = shard.words
        self._table = self._encode(shard.words[1:])
        tokens = torch.from_numpy(np.array(shard.tokens)).to(self._device)
        word_ids = torch.tensor(_vocabulary_ids(self._vocabulary, shard.words), device=self._device)
        size = len(tokens)
        rounds = 3 + self._settings.window // size
        documents = torch.from_numpy(np.array(shard.documents)).to(self._device)
        self._rings = (
            _ring(tokens, documents, _targets_of(word_ids, 1), rounds),
            _ring(tokens.flip(0), (size - documents).flip(0), _targets_of(word_ids, 0), rounds),
        )
        even = torch.arange(self._settings.rows, dtype=torch.float64) / self._settings.rows
        rows = ((rotation.unsqueeze(1) + even) * size).long()[:, self._own_rows].to(self._device) % size
        self._pointers = torch.stack(
            [ring.starts[torch.searchsorted(ring.starts, row)] for ring, row in zip(self._rings, rows, strict=True)]
        )
        self._pointers %= size
        self._pair_directions()
        self._ended = torch.zeros_like(self._pointers, dtype=torch.bool)

    def _encode(self, words: list[str]) -> list[Tensor | None]:
        """Character ids of ``<S>``, ``</S>`` and the shard's words, in types small enough to keep on the device."""
        encoded = self._words.encode(words)
        kinds = (torch.int16 if self._words.characters and self._words.characters.size < 1 << 15 else torch.int32,)
        kinds = (*kinds, torch.int64, torch.int64)
        return [
            None if array is None else torch.from_numpy(array).to(kind).to(self._device)
            for array, kind in zip(encoded, kinds, strict=True)
        ]

    def _read(self, keep: Tensor) -> Window:
        steps = torch.arange(self._settings.window + 1, device=self._device).unsqueeze(1)
        read, targets = [], []
        for direction, (ring, pointers) in enumerate(zip(self._rings, self._pointers, strict=True)):
            tokens = ring.tokens[(pointers + steps) % len(ring.tokens)].long()  # (T + 1, B)
            targets.append(ring.targets[tokens[1:]].flatten())
            read.append(torch.where(tokens[:-1] == BOUNDARY, direction, tokens[:-1] + 1))
        distinct, places = torch.unique(torch.stack(read), return_inverse=True)
        characters, lengths, ids = (None if part is None else part[distinct] for part in self._table)
        characters = None if characters is None else characters.long()
        lengths = None if lengths is None else lengths.cpu()
        return Window(places, characters, lengths, ids, torch.stack(targets), keep)

    def _advance(self) -> None:
        window = self._settings.window
        self._window += 1
        pointers, ended = [], []
        for ring, old in zip(self._rings, self._pointers, strict=True):
            new = torch.where(self._fresh, self._next_sentence(ring, old), old + window)
            if self._settings.forget_documents:
                ended.append(torch.searchsorted(ring.documents, new) > torch.searchsorted(ring.documents, old))
            pointers.append(new % len(ring.tokens))
        self._pointers = torch.stack(pointers)
        self._pair_directions()
        self._ended = torch.stack(ended) if ended else torch.zeros_like(self._pointers, dtype=torch.bool)

    def _next_sentence(self, ring: _Ring, pointers: Tensor) -> Tensor:
        """Where a fresh row goes on: at the start of the sentence that the window cuts off, or of the next one."""
        last = torch.searchsorted(ring.starts, pointers + self._settings.window, right=True) - 1
        return torch.where(ring.starts[last] > pointers, ring.starts[last], ring.starts[last + 1])

    def _pair_directions(self) -> None:
        """Let the backward direction of the teacher's rows start at the end of what the forward one reads."""
        ring, rows = self._rings[0], self._taught_rows
        if len(rows):
            ends = self._next_sentence(ring, self._pointers[0, rows])
            self._pointers[1, rows] = (-1 - ends) % len(ring.tokens)  # the reversed ring counts from the end

    def _taught_words(self) -> tuple[Tensor, list[list[str]]]:
        """Words that both directions read in the teacher's rows: places (2, W), and the sentences they make."""
        ring, rows = self._rings[0], self._taught_rows
        pointers = self._pointers[0, rows]
        lengths = (self._next_sentence(ring, pointers) - pointers).tolist()
        steps = torch.arange(self._settings.window + 1, device=self._device)
        tokens = ring.tokens[(pointers.unsqueeze(1) + steps) % len(ring.tokens)].tolist()
        sentences, places = [], []
        for row, length, read in zip(rows.tolist(), lengths, tokens, strict=True):
            if length > self._settings.window:
                continue  # the window cuts its only sentence
            ends = [step for step in range(length + 1) if read[step] == BOUNDARY]
            for start, end in pairwise(ends):
                sentences.append([self._spellings[word] for word in read[start + 1 : end]])
                places += [(step, length - step, row) for step in range(start + 1, end)]
        forward, backward, row = torch.tensor(places, dtype=torch.int64).reshape(-1, 3).T
        width = len(self._fresh)
        return torch.stack([forward * width + row, backward * width + row]).to(self._device), sentences


def mix_seeds(*numbers: int) -> int:
    """Mix several numbers into one random seed, such that consecutive numbers give unrelated seeds."""
    return int(np.random.SeedSequence(list(numbers)).generate_state(2, np.uint32).view(np.uint64)[0] >> 1)


def _spread(rows: Tensor, count: int) -> Tensor:
    """Indices of some of the true rows, evenly spread; all of them if there are not more."""
    (found,) = rows.nonzero(as_tuple=True)
    return found[
        torch.arange(min(count, len(found)), device=rows.device) * len(found) // max(1, min(count, len(found)))
    ]


def _vocabulary_ids(vocabulary: Vocabulary, words: list[str]) -> list[int]:
    """Vocabulary ids of words; a word of the text that is spelled ``<S>`` is unknown, not a boundary."""
    unknown = vocabulary.id(vocabulary.unk)
    numbers = zip(words, vocabulary.encode(words), strict=True)
    return [unknown if word in RESERVED else number for word, number in numbers]


def _ring(tokens: Tensor, documents: Tensor, targets: Tensor, rounds: int) -> _Ring:
    # A sentence starts with the 0 before its first word; on the reversed ring that is the 0 after its last.
    starts = (tokens == BOUNDARY).nonzero().squeeze(1)
    turns = [len(tokens) * turn for turn in range(rounds)]
    starts, documents = (torch.cat([places + turn for turn in turns]) for places in (starts, documents))
    return _Ring(tokens, starts, documents, targets)


def _targets_of(word_ids: Tensor, boundary: int) -> Tensor:
    """Vocabulary id of each word of a shard as a prediction target; ``boundary`` is that of a sentence end."""
    targets = word_ids.clone()
    targets[BOUNDARY] = boundary
    return targets
