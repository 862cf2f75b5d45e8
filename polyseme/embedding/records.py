"""Records of output files: a sentence with its vectors, and the shape that all records share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from polyseme.errors import InputError

_PRECISIONS = {np.dtype(name): name for name in ("float32", "float16")}


class Record(NamedTuple):
    """A sentence with its vectors: ``(layers, words, dim)``, ``(words, dim)`` for one layer, ``(dim,)`` when pooled."""

    words: list[str]
    vectors: np.ndarray

    @property
    def text(self) -> str:
        """The words of the sentence, joined by one space."""
        return " ".join(self.words)


class Kind(NamedTuple):
    """The dtype and shape that all records of one output share; None stands for the number of words."""

    dtype: str
    shape: tuple[int | None, ...]

    @classmethod
    def of(cls, record: Record) -> Kind:
        """The dtype and shape of one record, which must have a vector for each word, or one for all."""
        words, vectors = record
        dtype, shape = _PRECISIONS.get(vectors.dtype), vectors.shape
        if dtype is None or not 1 <= len(shape) <= 3:
            raise InputError(
                f"expected float32 or float16 vectors of shape (layers, words, dim), (words, dim) or (dim,); "
                f"got {vectors.dtype} of shape {shape}"
            )
        if len(shape) == 1:
            return cls(dtype, shape)
        if shape[-2] != len(words):
            raise InputError(f"a sentence of {len(words)} words came with vectors for {shape[-2]}: shape {shape}")
        return cls(dtype, (*shape[:-2], None, shape[-1]))

    def shape_for(self, words: int) -> tuple[int, ...]:
        """The shape of the vectors of a sentence of so many words."""
        return tuple(words if size is None else size for size in self.shape)

    def check(self, other: Kind) -> None:
        """Refuse a record of another dtype or shape."""
        if other != self:
            raise InputError(
                f"all sentences of one output must have the same shape: expected {self.dtype} {_letters(self.shape)}, "
                f"got {other.dtype} {_letters(other.shape)}"
            )


def _letters(shape: tuple[int | None, ...]) -> str:
    return "(" + ", ".join("words" if size is None else str(size) for size in shape) + ")"
