"""word2vec's binary format: a line ``count dim``, then for each word the word, a space and its numbers as float32.

The words of such files come from web text and cannot be corrected by hand, so bytes that are not UTF-8 are no error:
they become U+FFFD, and such words are counted.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np

from polyseme.errors import FormatError
from polyseme.formats.vectors.file import KNOWN, Block, VectorFile, check_finite
from polyseme.text.corpus import explain_read_errors, open_bytes

CHUNK = 1 << 22  # bytes read at a time
LONGEST_WORD = 1 << 16  # bytes; a file without a space for so long is something else


def read(file: VectorFile) -> Iterator[Block]:
    """Read the words and vectors of a word2vec binary file in blocks."""
    with explain_read_errors(file.path):
        stream = open_bytes(file.path)
    with stream:
        _read(stream, file, line=True)
        data, done, promised = b"", 0, file.count or 0
        while done < promised:
            more = _read(stream, file)
            words, rows, data = _split_entries(data + more, file, done)
            if not words and not more:
                place = f"word number {done + 1:,} of {promised:,}"
                raise FormatError(f"{file.path} ends in the middle of {place}; the file is truncated")
            done += len(words)
            yield _block(file, words, rows)
        if (data + _read(stream, file)).strip(b"\n"):
            raise FormatError(f"{file.path} continues after the {promised:,} words that its first line promises")


def _read(stream: io.BufferedReader, file: VectorFile, line: bool = False) -> bytes:
    with explain_read_errors(file.path):
        return stream.readline() if line else stream.read(CHUNK)


def _split_entries(data: bytes, file: VectorFile, done: int) -> tuple[list[bytes], bytes, bytes]:
    """Split off complete entries: their words, their vectors' bytes, and the rest of the data."""
    width = 4 * file.dim
    words: list[bytes] = []
    rows = bytearray()
    at = 0
    while done + len(words) < (file.count or 0):
        space = data.find(b" ", at)
        if (space if space >= 0 else len(data)) - at > LONGEST_WORD:
            raise FormatError(f"{file.path}: no word where number {done + len(words) + 1:,} should begin; {KNOWN}")
        if space < 0 or space + 1 + width > len(data):
            break
        words.append(data[at:space].lstrip(b"\n"))
        at = space + 1 + width
        rows += data[space + 1 : at]
    return words, bytes(rows), data[at:]


def _block(file: VectorFile, raw: list[bytes], data: bytes) -> Block:
    words = [word.decode(errors="replace") for word in raw]
    rows = np.frombuffer(data, dtype="<f4").reshape(-1, file.dim)
    check_finite(file.path, words, rows)
    replaced = sum(word.encode() != before for word, before in zip(words, raw, strict=True))
    return Block(words, rows, replaced)
