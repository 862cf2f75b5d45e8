"""Word vectors as a NumPy matrix (``.npy``), with the words, one per line, in a file beside it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from polyseme.errors import FormatError
from polyseme.formats.vectors.file import NUMPY, WIDEST, Block, VectorFile, check_finite
from polyseme.text.corpus import open_text

ROWS, NUMBERS = 4096, 1 << 22  # read at a time, at most


def recognise(path: Path, vocabulary: str | Path | None) -> VectorFile:
    """Describe a ``.npy`` file; by default its words are in ``NAME.vocab``, ``NAME.vocab.txt`` or ``vocab.txt``."""
    rows = _open(path)
    if rows.ndim == 2 and rows.shape[1] > WIDEST:
        raise FormatError(f"{path}: its vectors have {rows.shape[1]:,} dimensions; expected at most {WIDEST:,}")
    if rows.ndim != 2 or rows.dtype.kind != "f" or not rows.size:
        raise FormatError(f"{path}: expected a matrix of floats (words, dim), got {rows.dtype} of shape {rows.shape}")
    names = [f"{path.stem}.vocab", f"{path.stem}.vocab.txt", "vocab.txt"]
    places = [Path(vocabulary).expanduser()] if vocabulary else [path.with_name(name) for name in names]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        looked = vocabulary or f"{', '.join(names[:-1])} or {names[-1]} beside it"
        raise FormatError(f"{path}: its words, one per line, should be in {looked}; there is no such file")
    return VectorFile(path, NUMPY, rows.shape[1], vocabulary=found)


def read(file: VectorFile) -> Iterator[Block]:
    """Read the words and vectors of a NumPy matrix in blocks."""
    rows = _open(file.path)
    assert file.vocabulary is not None
    done = 0
    with open_text(file.vocabulary) as lines:
        while words := list(islice(lines, max(1, min(ROWS, NUMBERS // file.dim)))):
            with np.errstate(over="ignore"):  # infinity is refused below
                some = np.asarray(rows[done : done + len(words)], dtype=np.float32)
            done += len(words)
            if len(some) == len(words):
                check_finite(file.path, words, some)
                yield Block(words, some)
    if done != len(rows):
        raise FormatError(f"{file.vocabulary} has {done:,} words, but {file.path} has {len(rows):,} rows")


def _open(path: Path) -> np.ndarray:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # numpy parses the header as Python, and passes on whatever goes wrong there
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise FormatError(f"{path} cannot be read as NumPy's .npy: {reason:.200}") from error
