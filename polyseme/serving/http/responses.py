"""HTTP responses: JSON, and the vectors of words as JSON or as a binary message."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson
from starlette.responses import Response

from polyseme.embedding.binary import pack
from polyseme.errors import InputError
from polyseme.serving.engine.catalogue import ServedModel

BINARY = "application/octet-stream"
_ROWS = 64  # vectors written as JSON at a time: some milliseconds


class RequestSentences(NamedTuple):
    """The sentences of a request, with the spans of their words if it was raw text."""

    words: list[list[str]]
    spans: list[list[tuple[int, int]]] | None

    def describe(self, number: int) -> dict[str, Any]:
        """The words and spans of one sentence, as responses show them."""
        words = {"words": self.words[number]}
        return words if self.spans is None else {**words, "spans": self.spans[number]}


def json_response(payload: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:  # noqa: ANN401
    """A JSON response; arrays of numbers become lists."""
    body = orjson.dumps(payload, option=orjson.OPT_SERIALIZE_NUMPY)
    return Response(body, status, headers, "application/json")


def binary_vectors(
    model: ServedModel, sentences: RequestSentences, vectors: Sequence[np.ndarray], dtype: str
) -> Response:
    """Word vectors as a binary message; it includes the words if the server has split raw text.

    Raises `InputError` if a number is too large for float16.
    """
    if dtype == "float16":
        vectors = [_half(array) for array in vectors]
    layers = vectors[0].shape[0] if vectors else 0
    header: dict[str, Any] = {"model": model.id}
    if sentences.spans is not None:
        header.update(words=sentences.words, spans=sentences.spans)
    return Response(b"".join(pack(vectors, dtype, layers, model.encoder.dim, **header)), media_type=BINARY)


def _half(array: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):  # it is told below
        half = array.astype(np.float16)
    if not np.isfinite(half).all():
        raise InputError("the vectors have numbers too large for float16; ask for float32")
    return half


async def json_vectors(model: ServedModel, sentences: RequestSentences, vectors: Sequence[np.ndarray]) -> Response:
    """Word vectors as JSON, some rows at a time, with a pause after each for the other requests."""
    parts = []
    for number, array in enumerate(vectors):
        about = orjson.dumps(sentences.describe(number)).removesuffix(b"}")
        layers = [await _json_rows(layer) for layer in array]
        parts.append(about + b',"vectors":[' + b",".join(layers) + b"]}")
    start = b'{"model":' + orjson.dumps(model.id) + b',"sentences":['
    return Response(start + b",".join(parts) + b"]}", media_type="application/json")


async def _json_rows(layer: np.ndarray) -> bytes:
    """The vectors (words, dim) of one layer as JSON."""
    rows = []
    for start in range(0, len(layer), _ROWS):
        piece = np.ascontiguousarray(layer[start : start + _ROWS])
        rows.append(orjson.dumps(piece, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1])
        await asyncio.sleep(0)
    return b"[" + b",".join(rows) + b"]"
