"""The vectors of words as an answer: JSON, or a message of raw numbers."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import orjson
from starlette.requests import Request
from starlette.responses import Response

from polyseme.embedding.binary import pack
from polyseme.serving.engine.service import WordVectors, spans_of
from polyseme.serving.http.requests import as_json
from polyseme.serving.http.schema import WordsAsked

BINARY = "application/octet-stream"


async def as_answer(request: Request, asked: object, answer: Any) -> Response:  # noqa: ANN401 - what a service gives
    """Whatever was found, in the form that was asked for."""
    if not isinstance(answer, WordVectors) or not isinstance(asked, WordsAsked):
        return as_json(answer)
    preferred = request.headers.get("accept", "").split(",")[0].partition(";")[0].strip()
    form = asked.format or ("float32" if preferred == BINARY else "json")
    return await _as_json(answer) if form == "json" else _as_message(answer, form)


def _as_message(answer: WordVectors, dtype: str) -> Response:
    """Raw numbers; the words come along if the server has split them."""
    dim = answer.model.encoder.dim
    layers = answer.vectors[0].shape[0] if answer.vectors else 0
    more: dict[str, Any] = {"model": answer.model.id}
    if answer.read.spans is not None:
        more.update(words=answer.read.sentences, spans=answer.read.spans)
    return Response(b"".join(pack(answer.vectors, dtype, layers, dim, **more)), media_type=BINARY)


async def _as_json(answer: WordVectors) -> Response:
    """Sentence after sentence, with a pause after each for the other requests."""
    pieces = []
    for number, (words, vectors) in enumerate(zip(answer.read.sentences, answer.vectors, strict=True)):
        about = {"words": words, **spans_of(answer.read, number), "vectors": np.ascontiguousarray(vectors)}
        pieces.append(orjson.dumps(about, option=orjson.OPT_SERIALIZE_NUMPY))
        await asyncio.sleep(0)
    begin = b'{"model":' + orjson.dumps(answer.model.id) + b',"sentences":['
    return Response(begin + b",".join(pieces) + b"]}", media_type="application/json")
