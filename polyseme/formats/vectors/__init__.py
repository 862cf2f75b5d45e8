"""Files of static word vectors: one vector a word, as GloVe, word2vec, fastText and NumPy users keep them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from polyseme.errors import FormatError, InputError
from polyseme.formats.vectors import binary, matrix, text
from polyseme.formats.vectors.file import BINARY, KNOWN, NUMPY, Block, VectorFile, first_bytes

__all__ = ["Block", "VectorFile", "read_blocks", "recognise"]

_FASTTEXT = (793712314).to_bytes(4, "little")


def recognise(path: str | Path, vocabulary: str | Path | None = None) -> VectorFile:
    """Tell the format of a file from how it begins, or say why it is none.

    Args:
        path: The file.
        vocabulary: The words of a ``.npy`` file, one a line, when they are not beside it.
    """
    path = Path(path).expanduser()
    head = first_bytes(path)
    if not head.strip():
        raise FormatError(f"{path} is empty; {KNOWN}")
    if head.startswith(b"\x93NUMPY"):
        return matrix.recognise(path, vocabulary)
    if vocabulary is not None:
        raise FormatError(f"{path} holds its own words; a vocabulary goes with NumPy's .npy only")
    if head.startswith(_FASTTEXT):
        raise FormatError(f"{path} is a whole fastText model; give the .vec file that comes with it")
    return text.recognise_headed(path, head) or text.recognise_bare(path, head)


def read_blocks(file: VectorFile) -> Iterator[Block]:
    """All words of a file and their vectors, in order, some thousand at a time; memory is constant."""
    read = {NUMPY: matrix.read, BINARY: binary.read}.get(file.format, text.read)
    total = 0
    try:
        for block in read(file):
            total += len(block.words)
            yield block
    except InputError as error:  # of the reading of text and compressed files
        raise FormatError(str(error)) from error
    if not total:
        raise FormatError(f"{file.path} holds no vectors; {KNOWN}")
    if file.count is not None and total != file.count:
        fault = "the file is truncated" if total < file.count else "mend that line"
        raise FormatError(f"{file.path}: its first line promises {file.count:,} words, but {total:,} follow; {fault}")
