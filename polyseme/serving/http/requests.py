"""Requests in, answers out: bytes are read within limits, and checked; answers are JSON or a message of vectors."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from polyseme.serving.http.errors import HttpError, from_validation, too_large
from polyseme.serving.settings import Limits

M = TypeVar("M", bound=BaseModel)
_READ_ON = 16  # times the limit is read and forgotten, so that an honest client gets to read the answer


class GoneError(Exception):
    """The client has left."""


async def read(request: Request, limits: Limits) -> bytes:
    """The bytes of a request."""
    _check_headers(request)
    try:
        return await asyncio.wait_for(_read_bytes(request, limits.body_bytes), limits.body_seconds)
    except asyncio.TimeoutError:
        late = f"the request took longer than {limits.body_seconds:g} s to arrive"
        raise HttpError(408, "timeout", late, headers={"Connection": "close"}) from None
    except ClientDisconnect:
        raise GoneError from None


def understand(body: bytes, kind: type[M]) -> M:
    """What is asked for."""
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        raise from_validation(error) from None


def _check_headers(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HttpError(415, "unsupported", "a request is JSON, and says so: Content-Type: application/json")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise HttpError(415, "unsupported", "a request is sent as it is, without Content-Encoding")


async def _read_bytes(request: Request, limit: int) -> bytes:
    """The body; of one that is too large, nothing is kept."""
    pieces: list[bytes] = []
    total = 0
    async for piece in request.stream():
        total += len(piece)
        if total <= limit:
            pieces.append(piece)
        else:
            pieces.clear()
            if total > _READ_ON * limit:
                break
    if total > limit:
        raise too_large(f"a request may have {limit:,} bytes; send less at a time")
    return b"".join(pieces)


def as_json(payload: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:  # noqa: ANN401
    """An answer; arrays of numbers become lists."""
    body = orjson.dumps(payload, option=orjson.OPT_SERIALIZE_NUMPY)
    return Response(body, status, headers, "application/json")


def fault_as_json(fault: HttpError) -> Response:
    """The answer to what cannot be answered."""
    return as_json(fault.as_json(), fault.status, fault.headers)


async def gone(request: Request) -> None:
    """Return when the client has left."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
