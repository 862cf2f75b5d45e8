"""Files of static word vectors: GloVe, word2vec, fastText and NumPy formats, read through a cache.

A file is parsed once. The parsed table is kept in a cache (an `ArrayCache`, by default in ``vectors`` of the user's
cache folder), parsed again when the size or the time of the original has changed, and memory-mapped from then on.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from polyseme.array_cache import ArrayCache, user_cache_folder
from polyseme.errors import FormatError, InputError
from polyseme.formats.budget import Budget
from polyseme.formats.vectors import binary, matrix, text
from polyseme.formats.vectors.file import BINARY, KNOWN, NUMPY, Block, VectorFile, first_bytes
from polyseme.formats.vectors.table import VectorTable, build_in_memory, write_table

__all__ = ["Block", "VectorFile", "VectorTable", "open_vectors", "read_blocks", "recognise"]

_LAYOUT = "1"  # version of the cached files' layout
LEAST = 128 << 20  # bytes that any file may unpack to; text is slow to parse
_INDEXED = 16  # bytes for the hash and the length of a word
_FASTTEXT = (793712314).to_bytes(4, "little")


def open_vectors(
    path: str | Path, vocabulary: str | Path | None = None, cache: str | Path | bool = True
) -> VectorTable:
    """Open a file of word vectors: parsed the first time, memory-mapped from the cache afterwards.

    Args:
        path: GloVe or word2vec text (.gz, .bz2, .xz, .zst too), word2vec's binary, fastText's ``.vec``, or ``.npy``.
        vocabulary: The words of a ``.npy`` file, one per line, when they are not beside it.
        cache: The folder of the cache; True is the user's, False is none. Without a cache, and where nothing can be
            written (no room, no permission), vectors are held in memory.
    """
    file = recognise(path, vocabulary)
    about = {"format": file.format, "source": _stamp(file), "version": _LAYOUT}
    folder = user_cache_folder("vectors") if isinstance(cache, bool) else Path(cache)
    if cache is not False and folder is not None:
        with suppress(OSError):  # of the cache: what is wrong with the original is another error
            table = _open_cached(file, about, ArrayCache(folder, ".safetensors"))
            if table is not None:
                return table
    return build_in_memory(read_blocks(file), file.dim, about)


def recognise(path: str | Path, vocabulary: str | Path | None = None) -> VectorFile:
    """Detect the format of a file of word vectors from how it begins, or say why it is not one.

    Args:
        path: The file.
        vocabulary: The words of a ``.npy`` file, one per line, when they are not beside it.
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
    """Read the words of a file and their vectors in order, in blocks of some thousand; memory is constant."""
    read = {NUMPY: matrix.read, BINARY: binary.read}.get(file.format, text.read)
    total, budget = 0, Budget(file.path, LEAST)
    try:
        for block in read(file):
            total += len(block.words)
            budget.take(
                block.rows.nbytes + sum(map(len, block.words)) + _INDEXED * len(block.words), "what it unpacks to"
            )
            yield block
    except InputError as error:  # from reading text and compressed files
        raise FormatError(str(error)) from error
    if not total:
        raise FormatError(f"{file.path} holds no vectors; {KNOWN}")
    if file.count is not None and total != file.count:
        fault = "the file is truncated" if total < file.count else "correct that line"
        raise FormatError(f"{file.path}: its first line promises {file.count:,} words, but {total:,} follow; {fault}")


def _open_cached(file: VectorFile, about: dict[str, str], cache: ArrayCache) -> VectorTable | None:
    def read(path: Path) -> VectorTable | None:
        table = VectorTable.open(path)
        return table if about.items() <= table.about.items() else None

    def write(entry: BinaryIO) -> None:
        write_table(read_blocks(file), file.dim, entry, about)

    key = hashlib.sha256(os.fsencode(file.path.resolve())).hexdigest()[:16]
    return cache.fetch(f"{file.path.name[:100]}-{key}", read, write)


def _stamp(file: VectorFile) -> str:
    """Size and time of the original files: they change when a file does."""
    facts = [place.stat() for place in (file.path, file.vocabulary) if place]
    return " ".join(f"{fact.st_size}:{fact.st_mtime_ns}" for fact in facts)
