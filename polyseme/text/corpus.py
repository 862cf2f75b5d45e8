r"""Text corpora from files, plain or compressed (.gz, .bz2, .xz, .zst), folders, patterns, or ``-`` (standard input).

Text is UTF-8, a byte order mark is dropped, and a line ends at ``\n`` or ``\r\n`` and nowhere else (not at U+2028, a
form feed or U+0085, as with ``str.splitlines``). Everything streams: memory is bounded by one line, of 16 MiB at most,
or one block.

Sentences come in two ways:

- *pre-tokenised*: one sentence per line, its words separated by white space as ``str.split`` sees it (so by U+00A0 and
  U+3000 too, as in the older toolkits). An empty line is an empty sentence, because outputs are keyed by line number.
- *raw*: any text; blank lines separate paragraphs. A line may hold a paragraph, or a paragraph may be wrapped over
  several: a line is taken as wrapped when it is full, that is, when the first word of the next would not have fitted
  into the width of the block. So prose is joined, while verse, lists and one sentence per line are not.
"""

from __future__ import annotations

import io
import lzma
import sys
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Literal, cast

from polyseme.errors import InputError
from polyseme.progress import count_read
from polyseme.text.compressed import COMPRESSED
from polyseme.text.tokenizer import tokenize_words

LONGEST_LINE = 1 << 24  # bytes; a longer line would be one sentence of millions of words, and fill the memory
LARGEST_BLOCK = 1 << 16  # characters of raw text that are unwrapped together
WIDEST_WRAP = 200  # nobody wraps text wider: such lines are paragraphs
LONGEST_WORD = 20  # a whole line of Chinese is not the word that did not fit

Source = Path | Literal["-"]
Paths = str | PathLike[str] | Iterable[str | PathLike[str]]


def read_sentences(paths: Paths, raw: bool) -> Iterator[list[str]]:
    """Read the sentences of all files in turn: one per line or, from raw text, as the tokenizer finds them."""
    for source in expand(paths):
        with open_text(source) as lines:
            yield from split_lines(lines, raw)


def split_lines(lines: Iterable[str], raw: bool) -> Iterator[list[str]]:
    """Split the lines of one text into sentences of words."""
    if not raw:
        return (line.split() for line in lines)
    return (words for block in _blocks(lines) for words in tokenize_words(_unwrap(block)))


def expand(paths: Paths) -> list[Source]:
    """Expand paths to files: each file, all files below a folder, all that match a glob; sorted, none hidden."""
    if isinstance(paths, str | PathLike):
        paths = [paths]
    return [source for path in paths for source in _expand_one(path)]


def plain_sizes(sources: Iterable[Source]) -> list[int | None]:
    """Sizes in bytes of what `open_text` reads; None for standard input and for compressed files."""
    return [
        None if source == "-" or Path(source).suffix in COMPRESSED else Path(source).stat().st_size
        for source in sources
    ]


@contextmanager
def open_text(path: str | PathLike[str]) -> Iterator[Iterator[str]]:
    """Open a text file as an iterator over its lines, decompressed and decoded, without line ends."""
    with explain_read_errors(path):
        stream = open_bytes(path)
    try:
        # A generator of its own, closed first, so that the file is not closed under a reader.
        with closing(_decoded(stream, str(path))) as lines:
            yield lines
    finally:
        if str(path) != "-":
            stream.close()


def _expand_one(path: str | PathLike[str]) -> list[Source]:
    if str(path) == "-":
        return ["-"]
    if not str(path):
        raise InputError("one of the inputs is empty; give a file, a folder, a pattern, or - for standard input.")
    place = Path(path)
    matches = [place] if place.exists() else sorted(Path(place.anchor).glob(str(place.relative_to(place.anchor))))
    visible = [match for match in matches if match is place or not match.name.startswith(".")]
    found = [file for match in visible for file in (_files_below(match) if match.is_dir() else [match])]
    if not found:
        fault = "no file below this folder" if place.is_dir() else "no such file"
        raise InputError(
            f"{path}: {fault}; expected a text file, a folder of text files, a pattern, or - for standard input."
        )
    return list(found)


def _files_below(folder: Path) -> list[Path]:
    inside = ((path, path.relative_to(folder).parts) for path in folder.rglob("*"))
    return sorted(path for path, parts in inside if path.is_file() and not any(part.startswith(".") for part in parts))


def open_bytes(path: str | PathLike[str]) -> io.BufferedReader:
    """Open a file as decompressed bytes; use it inside `explain_read_errors`."""
    if str(path) == "-":
        if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - it is when the shell closed it
            raise InputError("-: standard input is closed; give a file, or pipe text in.")
        return cast("io.BufferedReader", sys.stdin.buffer)
    place = Path(path)
    open_file = COMPRESSED.get(place.suffix)
    return open_file(place) if open_file else place.open("rb")


def _decoded(stream: io.BufferedReader, name: str) -> Generator[str, None, None]:
    number = offset = 0
    with explain_read_errors(name):
        binary = b"\0" in stream.peek(1)[:8192]
        while line := stream.readline(LONGEST_LINE):
            number += 1
            if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                raise InputError(
                    f"{name}: line {number} has over {LONGEST_LINE:,} bytes; expected text with line ends "
                    "(fold -s -w 10000 puts some in)."
                )
            try:
                text = line.decode().removeprefix("\ufeff" if number == 1 else "")
            except UnicodeDecodeError as error:
                at = error.start
                raise InputError(
                    _BINARY.format(name) if binary else _NOT_UTF8.format(name, number, line[at], at, offset + at)
                ) from error
            offset += len(line)
            count_read(len(line))
            yield text[:-1].removesuffix("\r") if text.endswith("\n") else text


_BINARY = "{}: a binary file, or text in UTF-16; expected UTF-8 (iconv -f UTF-16 -t UTF-8 converts such text)."
_NOT_UTF8 = (
    "{}: line {} is not UTF-8 (byte 0x{:02x}, byte {} of the line, {} of the file); "
    "convert the file, for instance with: iconv -f LATIN1 -t UTF-8"
)


@contextmanager
def explain_read_errors(path: str | PathLike[str]) -> Iterator[None]:
    """Turn read errors of the system and the decompressors into an InputError with the path."""
    try:
        yield
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file.") from error
    except IsADirectoryError as error:
        raise InputError(f"{path}: is a folder; expected a text file.") from error
    except EOFError as error:
        raise InputError(
            f"{path}: the compressed file ends too early; it is truncated; copy or download it again."
        ) from error
    except (OSError, lzma.LZMAError, zlib.error, *_zstd_errors()) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def _zstd_errors() -> tuple[type[Exception], ...]:
    zstandard = sys.modules.get("zstandard")
    return (zstandard.ZstdError,) if zstandard else ()


def _blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    """Split lines into blocks at blank lines, each of bounded size."""
    block: list[str] = []
    size = 0
    for line in lines:
        if block and (not line.strip() or size > LARGEST_BLOCK):
            yield block
            block, size = [], 0
        if line.strip():
            block.append(line)
            size += len(line)
    if block:
        yield block


def _unwrap(block: list[str]) -> str:
    """Unwrap a block of lines: a newline after a line that is wrapped, a blank line after one that is not."""
    width = max(map(len, block))
    text = block[:1]
    for line, following in pairwise(block):
        next_word = following.split(maxsplit=1)[0][:LONGEST_WORD]
        is_wrapped = width <= WIDEST_WRAP and len(line) + 1 + len(next_word) > width
        text += ["\n" if is_wrapped else "\n\n", following]
    return "".join(text)
