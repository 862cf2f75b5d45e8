"""Word vectors as text (GloVe, word2vec, fastText): lines of a word and its numbers, compressed or not.

Columns are separated by spaces or tabs. word2vec and fastText begin with a line ``count dim``, GloVe does not. A word
may hold spaces (GloVe 840B has such), so numbers are counted from the right. Text that is not UTF-8 is refused, with
the line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from polyseme.errors import FormatError, OutputError
from polyseme.files import atomic_write
from polyseme.formats.vectors.file import BINARY, GLOVE, HEAD, KNOWN, WIDEST, WORD2VEC, Block, VectorFile, not_finite
from polyseme.text.corpus import open_text

LINES, NUMBERS = 4096, 1 << 22  # parsed at a time, at most
_SAMPLE = 100  # lines that vote on the number of columns
_HEADER = re.compile(rb"(?:\xef\xbb\xbf)?\s*(\d{1,12})[ \t]+(\d{1,6})[ \t]*\r?\n")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")  # rare in text, frequent in binary numbers
_UNWRITABLE = re.compile(r"[ \t\r\n\ud800-\udfff]")


def recognise_headed(path: Path, head: bytes) -> VectorFile | None:
    """Describe a file with a header of counts: word2vec's, text or binary, or fastText's; None without a header."""
    header = _HEADER.match(head)
    if header is None:
        return None
    count, dim = map(int, header.groups())
    if not (count and 0 < dim <= WIDEST):
        raise FormatError(f"{path}: its first line promises {count:,} words of {dim:,} dimensions; {KNOWN}")
    rest = head[header.end() :]
    likely = not _CONTROL.search(rest) and ".bin" not in path.suffixes
    is_text = likely or _ends_in_numbers(_first_line(rest), dim)
    return VectorFile(path, WORD2VEC if is_text else BINARY, dim, count, _separator(rest))


def recognise_bare(path: Path, head: bytes) -> VectorFile:
    """Describe a file without a header, such as GloVe's, by a vote of its first lines on the number of columns."""
    lines = head.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    whole = [line for line in (lines[:-1] if len(head) == HEAD else lines) if line.strip()] or lines
    votes = Counter(len(line.split()) - 1 for line in whole[:_SAMPLE])
    dim = max(votes, key=lambda columns: (votes[columns], -columns))
    if _CONTROL.search(whole[0]) or not (0 < dim <= WIDEST and _ends_in_numbers(whole[0], dim)):
        shown = whole[0][:40].decode(errors="replace")
        raise FormatError(f"{path}: line 1 is not a word vector: {shown!r}; {KNOWN}")
    return VectorFile(path, GLOVE, dim, None, _separator(whole[0]))


def read(file: VectorFile) -> Iterator[Block]:
    """Read the words and vectors of a text file in blocks."""
    number = 1
    with open_text(file.path) as lines:
        if file.count is not None:
            next(lines)
            number += 1
        while some := list(islice(lines, max(1, min(LINES, NUMBERS // file.dim)))):
            yield _parse(file, some, number)
            number += len(some)


def write(path: Path, words: Sequence[str], rows: Iterable[np.ndarray], dim: int) -> None:
    """Write word vectors as word2vec text, atomically; gensim and polyseme read them back bit for bit."""
    for word in words:
        if not word or _UNWRITABLE.search(word):
            raise OutputError(
                f"{path}: {word!r:.60} cannot be written in a text file of vectors; expected letters and no spaces"
            )
    pattern = " %.9g" * dim + "\n"  # nine digits are a float32 exactly
    with atomic_write(path) as file:
        file.write(f"{len(words)} {dim}\n".encode())
        lines = (word + pattern % tuple(row.tolist()) for word, row in zip(words, rows, strict=True))
        while some := "".join(islice(lines, 256)):
            file.write(some.encode())
            file.check()


def _first_line(data: bytes) -> bytes:
    return data.split(b"\n", 1)[0]


def _separator(data: bytes) -> str:
    return "\t" if b"\t" in _first_line(data) else " "


def _ends_in_numbers(line: bytes, dim: int) -> bool:
    columns = line.split()
    return len(columns) > dim and all(map(_is_number, columns[-dim:]))


def _is_number(text: bytes | str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parse(file: VectorFile, lines: list[str], number: int) -> Block:
    """Parse many lines at once or, where they are irregular, one at a time."""
    parts = [line.partition(file.separator) for line in lines]
    rows = _numbers([tail for _, _, tail in parts])
    if rows is not None and rows.shape == (len(lines), file.dim) and np.isfinite(rows).all():
        return Block([word for word, _, _ in parts], rows)
    single = [_parse_line(file, line, number + place) for place, line in enumerate(lines) if line.strip(" \t")]
    vectors = np.array([row for _, row in single], dtype=np.float32).reshape(-1, file.dim)
    return Block([word for word, _ in single], vectors)


def _numbers(lines: list[str]) -> np.ndarray | None:
    if not all(map(str.strip, lines)):  # numpy would pass over blank lines
        return None
    try:
        return np.loadtxt(lines, dtype=np.float32, comments=None, ndmin=2)
    except ValueError:
        return None


def _parse_line(file: VectorFile, line: str, number: int) -> tuple[str, np.ndarray]:
    columns = re.split(r"[ \t]+", line.rstrip(" \t"))
    word, numbers = columns[: -file.dim], columns[-file.dim :]
    where = f"{file.path}: line {number}"
    if not word or (len(word) > 1 and _is_number(word[-1])):
        raise FormatError(f"{where} has {len(columns) - 1:,} numbers after its word, not {file.dim:,}")
    for text in numbers:
        if not _is_number(text):
            raise FormatError(f"{where}: {text!r:.60} is not a number; expected a word and {file.dim:,} numbers")
    with np.errstate(over="ignore"):
        row = np.array(list(map(float, numbers))).astype(np.float32)
    if not np.isfinite(row).all():
        raise FormatError(f"{where}: {not_finite(' '.join(word))}")
    return " ".join(word), row
