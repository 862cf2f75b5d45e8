"""Input features of sentences: vectors of frozen encoders, batches for fine-tuned ones, word vectors, spellings.

Shapes: B sentences, T words of the longest, U distinct words, C characters, L layers, D dim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain, tee
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from polyseme.embedding.batching import check_sentences, compute_in_order, window_words, windows
from polyseme.embedding.encoder import Encoder
from polyseme.embedding.interfaces import Batch
from polyseme.errors import ConfigError, InputError
from polyseme.tasks.features.feature_cache import FeatureCache, SentenceFeatures, embedded
from polyseme.text.tokenizer import tokenize_words
from polyseme.text.word_encoder import ByteCharacters

LONGEST_SPELLING = 50
WORD_BUDGET = 2048  # words that are read at a time
Input = TypeVar("Input")
Result = TypeVar("Result")


class SentenceVectors(NamedTuple):
    """A sentence and its vectors from each frozen encoder, arrays (words, layers, dim)."""

    words: Sequence[str]
    vectors: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class FeatureBatch:
    """The input features of a batch of sentences, each with one word at least."""

    lengths: Tensor  # (B,) on the CPU
    mask: Tensor  # (B, T): true where there is a word
    layers: tuple[Tensor, ...]  # (B, L, T, D) of each frozen encoder, rounded as the cache rounds until they are moved
    encoded: tuple[Batch, ...]  # the input of each fine-tuned encoder
    words: Tensor | None  # (B, T, D) static vectors
    places: Tensor  # (B, T) which distinct word stands there
    spellings: Tensor  # (U, C) of the distinct words
    spelling_lengths: Tensor  # (U,)

    def to(self, device: torch.device | str) -> FeatureBatch:
        """The batch on another device, vectors as float32; lengths steer loops and stay on the CPU."""
        moved = {field.name: _moved(getattr(self, field.name), device) for field in fields(self)}
        layers = tuple(part.float() for part in moved["layers"])
        words = None if moved["words"] is None else moved["words"].float()
        return replace(self, **{**moved, "lengths": self.lengths, "layers": layers, "words": words})


class FeatureReader:
    """Reads sentences through the encoders of a task: sentences in, `FeatureBatch` out.

    Args:
        encoders: The contextual encoders; there may be none.
        words: Static word vectors beside them, never trained.
        learns: Whether the encoders are fine-tuned; if not, their vectors come from the cache.
        cache: Where the vectors of frozen encoders are kept.
    """

    def __init__(
        self, encoders: Sequence[Encoder], words: Encoder | None, learns: bool, cache: FeatureCache | None = None
    ) -> None:
        for encoder in (*encoders, *([words] if words else ())):
            if encoder.settings.boundaries:
                raise ConfigError(f"{encoder.name} gives vectors of boundary words too; load it without boundaries")
        if words is not None and words.num_layers != 1:
            raise ConfigError(f"word vectors have one layer; {words.name} has {words.num_layers}: give it as encoder")
        self.encoders, self.words, self.learns = tuple(encoders), words, learns
        self.cache = cache or FeatureCache()
        self.frozen = (*(() if learns else self.encoders), *([words] if words else ()))
        self._characters = ByteCharacters(LONGEST_SPELLING)

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """Number of layers and dim of each contextual encoder."""
        return [(encoder.num_layers, encoder.dim) for encoder in self.encoders]

    def dataset(self, sentences: Sequence[Sequence[str]]) -> Dataset:
        """A dataset for training: sentences that are read many times, their vectors computed now."""
        return Dataset(self, sentences, [self.cache.features(encoder, sentences) for encoder in self.frozen])

    def stream(self, sentences: Iterable[Sequence[str]]) -> Iterator[SentenceVectors]:
        """Embed a stream of sentences that are read once, in order and in constant memory."""
        first, *copies = tee(sentences, 1 + len(self.frozen))
        vectors = [embedded(*pair, self.cache.dtype) for pair in zip(self.frozen, copies, strict=True)]
        return (SentenceVectors(words, tuple(arrays)) for words, *arrays in zip(first, *vectors, strict=True))

    def collate(self, items: Sequence[SentenceVectors]) -> FeatureBatch:
        """Collate sentences to one padded batch."""
        lengths = torch.tensor([len(item.words) for item in items])
        mask = torch.arange(int(lengths.max())) < lengths.unsqueeze(1)
        padded = [_pad([item.vectors[number] for item in items], mask.shape[1]) for number in range(len(self.frozen))]
        words = padded.pop()[:, 0] if self.words else None
        sentences = [item.words for item in items]
        encoded = tuple(encoder.collate(sentences) for encoder in self.encoders) if self.learns else ()
        return FeatureBatch(lengths, mask, tuple(padded), encoded, words, *self._spell(sentences, mask))

    def _spell(self, sentences: Sequence[Sequence[str]], mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        distinct: dict[str, int] = {}
        numbers = [distinct.setdefault(word, len(distinct)) for words in sentences for word in words]
        places = torch.zeros(mask.shape, dtype=torch.int64)
        places[mask] = torch.tensor(numbers)
        spellings = self._characters.encode_all(list(distinct))
        return places, torch.from_numpy(spellings.ids), torch.from_numpy(spellings.lengths)


class Dataset:
    """A dataset of sentences and their precomputed vectors, by number."""

    def __init__(
        self, reader: FeatureReader, sentences: Sequence[Sequence[str]], features: Sequence[SentenceFeatures]
    ) -> None:
        self.reader, self.sentences, self.features = reader, sentences, features
        self.lengths = np.array([len(words) for words in sentences])

    def __len__(self) -> int:
        return len(self.sentences)

    def batch(self, numbers: Sequence[int] | np.ndarray) -> FeatureBatch:
        """The sentences of these numbers as one padded batch."""
        chosen = [int(number) for number in numbers]
        vectors = zip(*(features.take(chosen) for features in self.features), strict=True)
        arrays = list(vectors) if self.features else [()] * len(chosen)
        return self.reader.collate(
            [SentenceVectors(self.sentences[n], row) for n, row in zip(chosen, arrays, strict=True)]
        )


def check_listed(texts: Iterable[str | Sequence[str]]) -> Iterable[str | Sequence[str]]:
    """Refuse a single bare string, and anything that is no list of texts."""
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise InputError(f"expected a list of texts or of word lists, not {texts!r:.60}; put a single one in a list")
    return texts


def as_word_lists(texts: Iterable[str | Sequence[str]]) -> Iterator[list[str]]:
    """Tokenise raw strings, each to one list of words, and check word lists; both may come in one stream."""
    return check_sentences(
        list(chain.from_iterable(tokenize_words(text))) if isinstance(text, str) else text
        for text in check_listed(texts)
    )


def answer_in_order(
    examples: Iterable[Input],
    size: Callable[[Input], int],
    answer: Callable[[list[Input]], Sequence[Result]],
    nothing: Result,
) -> Iterator[Result]:
    """Predict for a stream in order, batching examples of similar size; ``nothing`` is the answer for size 0."""

    def begin(batch: list[Input]) -> Callable[[], list[Result]]:
        filled = [example for example in batch if size(example)]
        answers = iter(answer(filled) if filled else ())
        return lambda: [next(answers) if size(example) else nothing for example in batch]

    def count(example: Input) -> int:
        return size(example) + 1

    for window in windows(examples, count, window_words(WORD_BUDGET)):
        yield from compute_in_order(window, count, WORD_BUDGET, begin)


def _pad(arrays: Sequence[np.ndarray], steps: int) -> Tensor:
    """Arrays (words, layers, dim) as one tensor (B, L, T, D)."""
    padded = np.zeros((len(arrays), steps, *arrays[0].shape[1:]), dtype=arrays[0].dtype)
    for row, array in enumerate(arrays):
        padded[row, : len(array)] = array
    return torch.from_numpy(padded).transpose(1, 2)


def _moved(value: Any, device: torch.device | str) -> Any:  # noqa: ANN401 - tensors, batches, and tuples of them
    if isinstance(value, tuple):
        return tuple(part.to(device) for part in value)
    return None if value is None else value.to(device)
