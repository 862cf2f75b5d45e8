"""What everything else is written against.

An `Embedder` gives vectors to anybody who has sentences. An `Encoder` (in `encoder.py`) is a network that a task can
train through, and an `Embedder` too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeVar, get_args

import numpy as np
import torch

from polyseme.errors import ConfigError, nearest

B = TypeVar("B", bound="Batch")
ArrayType = Literal["float32", "float16"]


@dataclass(frozen=True)
class EmbedSettings:
    """How an encoder embeds. Budget and workers change nothing but time and memory.

    Attributes:
        word_budget: Words computed at a time. More is faster up to a point, and takes more memory.
        boundaries: Keep the vectors of the words that open and close a sentence, as first and last of each.
        dtype: Of the arrays.
        workers: Processes that embed side by side on a CPU; each holds the model's weights in common.
    """

    word_budget: int = 1024
    boundaries: bool = False
    dtype: ArrayType = "float32"
    workers: int = 1

    def __post_init__(self) -> None:
        for name in ("word_budget", "workers"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ConfigError(f"{name} must be a whole number of 1 or more; got {value!r}")
        if not isinstance(self.boundaries, bool):
            raise ConfigError(f"boundaries must be True or False, not {self.boundaries!r}")
        if self.dtype not in get_args(ArrayType):
            near = nearest(str(self.dtype), get_args(ArrayType))
            raise ConfigError(f"dtype must be 'float32' or 'float16', not {self.dtype!r}.{near}")


class Batch(Protocol):
    """Sentences made ready for an encoder; what is inside is the encoder's affair."""

    def to(self: B, device: torch.device | str) -> B:
        """The same on another device."""
        ...


class Piece(NamedTuple):
    """One sentence of a text."""

    words: list[str]
    spans: list[tuple[int, int]]  # text[start:end] is the word
    vectors: np.ndarray  # (layers, words, dim)


class Embedder(Protocol):
    """What gives word vectors."""

    name: str
    dim: int
    num_layers: int

    def embed(self, sentences: Iterable[Sequence[str]]) -> Iterator[np.ndarray]:
        """For each sentence, a list of words, an array (layers, words, dim), in order."""
        ...
