"""Request bodies: read within the limits on size and time, parsed as JSON, and validated against their schema."""

from __future__ import annotations

import asyncio
import gc
from typing import Any, TypeVar

import orjson
from fastapi import Request
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect

from polyseme.serving.http.errors import ClientGoneError, HttpError, from_validation, invalid, too_large
from polyseme.serving.settings import Limits

B = TypeVar("B", bound=BaseModel)
_DISCARD_FACTOR = 16  # a body of up to so many times the limit is read to its end, so that the client sees the refusal
_OTHER_VALUES = 2000  # values in a body, beside its sentences and words


async def read_body(request: Request, limits: Limits, body_type: type[B]) -> B:
    """The validated body of a request."""
    _check_headers(request)
    try:
        body = await asyncio.wait_for(_read_bytes(request, limits.body_bytes), limits.body_seconds)
    except asyncio.TimeoutError:
        message = f"the request took longer than {limits.body_seconds:g} s to arrive"
        raise HttpError(408, "timeout", message, headers={"Connection": "close"}) from None
    except ClientDisconnect:
        raise ClientGoneError from None
    return _validate(_parse(body, limits), body_type)


def _check_headers(request: Request) -> None:
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise HttpError(415, "unsupported", "send JSON, with the header Content-Type: application/json")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise HttpError(415, "unsupported", "send the request uncompressed, without Content-Encoding")


async def _read_bytes(request: Request, limit: int) -> bytes:
    """Read the bytes of a body; if it is too large, none are kept."""
    chunks: list[bytes] = []
    total = 0
    async for chunk in request.stream():
        total += len(chunk)
        if total <= limit:
            chunks.append(chunk)
        else:
            chunks.clear()
            if total > _DISCARD_FACTOR * limit:
                break
    if total > limit:
        raise too_large(f"a request may have {limit:,} bytes; send less at a time")
    return b"".join(chunks)


def _parse(body: bytes, limits: Limits) -> dict[str, Any]:
    """Parse a JSON object in milliseconds, whatever it contains.

    The garbage collector would look at hundreds of thousands of small lists again and again, and pydantic would
    describe each of as many errors; so the one is paused, and the other sees no more values than a request may have.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        parsed = orjson.loads(body)
        if _count(parsed, most := limits.sentences + limits.words + _OTHER_VALUES) > most:
            most_words = f"{limits.sentences:,} sentences and {limits.words:,} words"
            raise too_large(f"a request may have {most_words}; send several")
    except orjson.JSONDecodeError as error:
        raise invalid(f"the body is not valid JSON: {error.msg}") from None
    finally:
        if enabled:
            gc.enable()
    if not isinstance(parsed, dict):
        raise invalid("the body should be a JSON object, like the examples in /openapi.json")
    return parsed


def _count(value: object, most: int) -> int:
    """The number of values inside of a JSON value; counting stops above `most`."""
    total, containers = 0, [value]
    while containers and total <= most:
        container = containers.pop()
        if isinstance(container, dict | list):
            total += len(container)
            if total <= most:
                containers += container.values() if isinstance(container, dict) else container
    return total


def _validate(parsed: dict[str, Any], body_type: type[B]) -> B:
    try:
        return body_type.model_validate(parsed)
    except ValidationError as error:
        raise from_validation(error) from None
