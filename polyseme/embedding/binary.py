"""Vectors as one message: what a server sends and a client reads.

    8 bytes      length of the header, little-endian
    header       JSON: "dtype" (float32 or float16), "layers", "dim", "lengths" (words of each sentence), and whatever
                 else goes with them; filled up with spaces so that what follows starts at a multiple of 8
    vectors      little-endian numbers: for each sentence, layer after layer, word after word

So the vectors of a sentence are an array (layers, words, dim), and the first eight bytes are read as in a safetensors
file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from polyseme.errors import FormatError

_ALIGNED = 8
_TYPES = {"float32": "<f4", "float16": "<f2"}


class Message(NamedTuple):
    """An unpacked message: its header and its vectors."""

    header: dict[str, Any]
    vectors: list[np.ndarray]  # (layers, words, dim) each


def pack(vectors: Sequence[np.ndarray], dtype: str, layers: int, dim: int, **more: object) -> list[bytes]:
    """The message in pieces, to be sent one after the other; values too large for float16 become infinite."""
    about = {"dtype": dtype, "layers": layers, "dim": dim, "lengths": [array.shape[1] for array in vectors], **more}
    header = json.dumps(about, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
    header += b" " * (-len(header) % _ALIGNED)
    with np.errstate(over="ignore"):
        arrays = [array.astype(_TYPES[dtype], order="C", copy=False).tobytes() for array in vectors]
    return [len(header).to_bytes(_ALIGNED, "little"), header, *arrays]


def unpack(message: bytes) -> Message:
    """The reverse; refused where lengths and sizes do not fit together."""
    try:
        begin = _ALIGNED + int.from_bytes(message[:_ALIGNED], "little")
        header = json.loads(message[_ALIGNED:begin])
        dtype, layers, dim = np.dtype(_TYPES[header["dtype"]]), int(header["layers"]), int(header["dim"])
        lengths = [int(length) for length in header["lengths"]]
        numbers = np.frombuffer(message, dtype, offset=begin)
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"the message of vectors cannot be read ({type(error).__name__}); it is damaged") from error
    if min([layers, dim, *lengths]) < 0 or len(numbers) != layers * dim * sum(lengths):
        raise FormatError(f"the message should hold {layers} x {sum(lengths)} x {dim} numbers, not {len(numbers)}")
    ends = np.cumsum([0, *lengths]) * layers * dim
    return Message(
        header,
        [
            numbers[ends[number] : ends[number + 1]].reshape(layers, length, dim)
            for number, length in enumerate(lengths)
        ],
    )
