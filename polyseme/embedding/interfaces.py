"""Interfaces of embedding: `Embedder`, `EmbedStrategy`, and the settings and results they share.

An `Embedder` gives vectors to anybody who has sentences. An `Encoder` (in `encoder.py`) is a network that a task can
train through, and an `Embedder` too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeVar, get_args, runtime_checkable

import numpy as np
import torch

from polyseme.errors import ConfigError, nearest

B = TypeVar("B", bound="Batch")
ArrayType = Literal["float32", "float16"]
Precision = Literal["float32", "tf32", "bfloat16", "float16", "int8"]


@dataclass(frozen=True)
class EmbedSettings:
    """Settings of embedding. Budget, cache and workers change nothing but time and memory.

    Attributes:
        word_budget: Words computed at a time. More is faster up to a point, and takes more memory. None: what suits the
            device.
        boundaries: Keep the vectors of the words that open and close a sentence, as first and last of each.
        dtype: Of the arrays.
        precision: Of the computation. ``int8`` is for the CPU, the shorter floats are for a GPU; all but ``float32``
            trade exactness for speed.
        cache_words: Words whose context-free vectors are kept from one call to the next. None: what suits the device.
        workers: Processes that embed side by side on a CPU; each holds the model's weights in common.
    """

    word_budget: int | None = None
    boundaries: bool = False
    dtype: ArrayType = "float32"
    precision: Precision = "float32"
    cache_words: int | None = None
    workers: int = 1

    def __post_init__(self) -> None:
        for name, least in (("word_budget", 1), ("workers", 1), ("cache_words", 0)):
            value = getattr(self, name)
            if value is None and name != "workers":
                continue
            if not isinstance(value, int) or value < least:
                raise ConfigError(f"{name} must be a whole number of {least} or more; got {value!r}")
        if not isinstance(self.boundaries, bool):
            raise ConfigError(f"boundaries must be True or False, not {self.boundaries!r}")
        for name, known in (("dtype", get_args(ArrayType)), ("precision", get_args(Precision))):
            value = getattr(self, name)
            if value not in known:
                choices = ", ".join(map(repr, known[:-1])) + f" or {known[-1]!r}"
                raise ConfigError(f"{name} must be {choices}, not {value!r}.{nearest(str(value), known)}")


@runtime_checkable
class Batch(Protocol):
    """Sentences made ready for an encoder's `forward`; its fields are private to the encoder."""

    def to(self: B, device: torch.device | str) -> B:
        """The same batch on another device."""
        ...


class EmbeddedSentence(NamedTuple):
    """A sentence of a raw text: its words, their places in the text, their vectors."""

    words: list[str]
    spans: list[tuple[int, int]]  # text[start:end] is the word
    vectors: np.ndarray  # (layers, words, dim)


class Embedder(Protocol):
    """Anything that gives word vectors: an `Encoder`, or a server through `polyseme.Client`."""

    name: str
    dim: int
    num_layers: int

    def embed(self, sentences: Iterable[Sequence[str]]) -> Iterator[np.ndarray]:
        """For each sentence, a list of words, an array (layers, words, dim), in order."""
        ...


class EmbedStrategy(ABC):
    """How an encoder embeds on one kind of hardware: plain torch, native CPU kernels, or tensors on a GPU."""

    @abstractmethod
    def embed(self, sentences: Iterable[Sequence[str]], settings: EmbedSettings) -> Iterator[np.ndarray]:
        """Arrays (layers, words, dim), one a sentence, in order, while sentences come."""

    @abstractmethod
    def word_budget(self, settings: EmbedSettings) -> int:
        """Words computed at a time: the setting, or what suits the hardware."""
