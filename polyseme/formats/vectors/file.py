"""Parts shared by all formats of word-vector files: header facts, blocks of vectors, checks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from polyseme.errors import FormatError, InputError
from polyseme.text.corpus import explain_read_errors, open_bytes

GLOVE, WORD2VEC, BINARY, NUMPY = "GloVe text", "word2vec text", "word2vec binary", "NumPy"
HEAD = 1 << 20  # bytes by which a format is detected
WIDEST = 1 << 17  # dimensions; a file with more is something else
KNOWN = "expected lines of a word and its numbers (GloVe, word2vec, fastText .vec), word2vec's binary, or NumPy's .npy"


@dataclass(frozen=True)
class VectorFile:
    """Description of a word-vector file: format, dimensions, number of words."""

    path: Path
    format: str
    dim: int
    count: int | None = None  # number of words, where the file says so
    separator: str = " "
    vocabulary: Path | None = None  # of a NumPy file: one word per line


class Block(NamedTuple):
    """Block of words and their vectors."""

    words: list[str]
    rows: np.ndarray  # (words, dim)
    replaced: int = 0  # words with bytes that are not UTF-8


def first_bytes(path: Path) -> bytes:
    """First bytes of a file, decompressed, for format detection."""
    try:
        with explain_read_errors(path), open_bytes(path) as stream:
            return stream.read(HEAD)
    except InputError as error:
        raise FormatError(str(error)) from error


def check_finite(path: Path, words: list[str], rows: np.ndarray) -> None:
    """Refuse NaN and infinity, which would spoil every mean and similarity."""
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if bad.size:
        raise FormatError(f"{path}: {not_finite(words[bad[0]])}")


def not_finite(word: str) -> str:
    """Error message for a vector with NaN or infinity."""
    return f"the vector of {word!r:.60} holds values that are not finite (NaN or infinity); the file is damaged"
