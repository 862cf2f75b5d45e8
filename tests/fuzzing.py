"""Fuzzing: hostile input for a parser, and the property that all parsers have.

A parser reads what it is given or raises a `PolysemeError` whose message is one short line; it raises nothing else and
stays within a bound of processor time and memory. The harnesses lie in ``tests/fuzz``: `make test` tries some hundred
inputs with each, `make fuzz` (hypothesis profile ``fuzz``) very many. Leave ``max_examples`` to the profile; a slow
harness asks for a share of it: ``@settings(HARNESS, max_examples=settings.default.max_examples // 4)``.

    @HARNESS
    @given(damaged(GLOVE, WORD2VEC))
    def test_vectors(folder, content):
        with works_or_refuses():
            open_vectors(put(folder / "vectors.txt", content), cache=False)
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st

from polyseme.errors import PolysemeError

HARNESS = settings(deadline=None)  # processor time is bounded below; a busy machine is no fault of a parser
LONGEST_MESSAGE = 600  # characters
MOST_SECONDS = 2.0  # of processor time, for inputs of some kilobytes
MOST_MEMORY = 256 << 20  # bytes
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@contextmanager
def works_or_refuses(seconds: float = MOST_SECONDS, memory: int = MOST_MEMORY) -> Iterator[None]:
    """Fail unless the block succeeds, or is refused in one short line, within a bound of time and memory."""
    before = _peak_memory(reset=True)
    started = time.process_time()
    try:
        yield
    except PolysemeError as error:
        message = str(error)
        assert message.strip(), "an error without a message"
        assert "\n" not in message, f"a message of several lines: {message!r}"
        assert len(message) <= LONGEST_MESSAGE, f"a message of {len(message):,} characters: {message[:200]!r} ..."
    assert time.process_time() - started <= seconds
    assert _peak_memory() - before <= memory


def _peak_memory(reset: bool = False) -> int:
    """Peak resident memory of this process in bytes; 0 on systems that do not say."""
    if not (_CLEAR.exists() and _STATUS.exists()):
        return 0
    if reset:
        _CLEAR.write_text("5")
    peak = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
    return int(peak.split()[1]) << 10


def put(path: Path, content: bytes) -> Path:
    """Write a file in one line of a test."""
    path.write_bytes(content)
    return path


@st.composite
def damaged(draw: st.DrawFn, *samples: bytes, tokens: tuple[bytes, ...] = ()) -> bytes:
    """Draw a sound sample, damaged in a few places: cut, repeated, overwritten, or with hostile ``tokens`` put in."""
    content = bytearray(draw(st.sampled_from(samples)))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(content)))
        end = draw(st.integers(start, min(len(content), start + 64)) | st.just(len(content)))
        content[start:end] = draw(_replacement(bytes(content[start:end]), (*tokens, *ODD_BYTES)))
    return bytes(content)


ODD_BYTES = (
    b"",
    b"\0",
    b"\n",
    b"\r\n",
    b"\t",
    b" ",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"\xc2\xa0",
    b"-1",
    b"0",
    b"nan",
)
ODD_BYTES += (b"1e999", b"99999999999999999999", b"2147483648", b"\xe2\x80\xa9", b"9" * 5000, b"x" * 5000, b"[" * 5000)


def _replacement(old: bytes, tokens: tuple[bytes, ...]) -> st.SearchStrategy[bytes]:
    repeated = st.integers(2, 50).map(lambda times: (old * times)[: 1 << 16])
    flipped = st.integers(0, 255).map(lambda mask: bytes(byte ^ mask for byte in old))
    return st.sampled_from(tokens) | st.binary(max_size=8) | repeated | flipped
