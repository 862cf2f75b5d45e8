"""What every request passes: the key, the count, the log, headers that keep browsers safe."""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Iterator
from http import HTTPStatus
from time import perf_counter
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from polyseme.serving.engine.service import Service, Visit
from polyseme.serving.http.errors import HttpError
from polyseme.serving.http.requests import fault_as_json

logger = logging.getLogger("polyseme.serving")
_OPEN = {"/health", "/ready"}  # answered while draining, and without a key
_PIECE = 1 << 16  # bytes that are sent at a time: the next ones when the client has taken these
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class _SlowError(Exception):
    """A client does not take its answer."""


class Door:
    """An ASGI app around another. A log line holds a route, a status, a time and sizes: nothing that a user wrote."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service
        self._key = service.settings.key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        visit = scope["visit"] = Visit()
        begun, status = perf_counter(), 0

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._add_headers(MutableHeaders(scope=message))
            for piece in _pieces(message):
                await self._send(send, piece)

        try:
            fault = self._refusal(scope)
            await (fault_as_json(fault) if fault else self._app)(scope, receive, send_on)
        except _SlowError:
            self._service.metrics.dropped.add(reason="slow")
        finally:
            self._service.leave(visit, status == HTTPStatus.OK)
            self._count(scope, status, visit.words, perf_counter() - begun)

    async def _send(self, send: Send, message: Message) -> None:
        try:
            await asyncio.wait_for(send(message), self._service.limits.send_seconds)
        except asyncio.TimeoutError:
            raise _SlowError from None

    def _refusal(self, scope: Scope) -> HttpError | None:
        path = scope["path"]
        if path in _OPEN:
            return None
        if self._service.draining:
            return HttpError(503, "draining", "the server is about to stop", headers={"Retry-After": "5"})
        guarded = path.startswith("/v1/") or path == "/metrics"
        if guarded and self._key is not None and not self._has_key(scope):
            return HttpError(
                401, "unauthorized", "show the key: Authorization: Bearer KEY", headers={"WWW-Authenticate": "Bearer"}
            )
        return self._service.admission.refusal() if path.startswith("/v1/") and scope["method"] == "POST" else None

    def _has_key(self, scope: Scope) -> bool:
        scheme, _, shown = Headers(scope=scope).get("authorization", "").partition(" ")
        expected = (self._key or "").encode()
        return scheme.lower() == "bearer" and hmac.compare_digest(shown.strip().encode("utf-8", "replace"), expected)

    def _add_headers(self, headers: MutableHeaders) -> None:
        for name, value in _HEADERS.items():
            headers[name] = value
        if self._service.draining:
            headers["Connection"] = "close"

    def _count(self, scope: Scope, status: int, words: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", None) or "other"
        metrics = self._service.metrics
        metrics.requests.add(route=route, status=str(status))
        metrics.seconds.observe(seconds)
        about: dict[str, Any] = {
            "route": route,
            "status": status,
            "words": words,
            "milliseconds": round(1000 * seconds, 1),
        }
        logger.info("request", extra={"fields": about})


def _pieces(message: Message) -> Iterator[Message]:
    """A long body in pieces, so that what a slow client has not taken waits here, and is counted."""
    body = message.get("body", b"")
    if len(body) <= _PIECE:
        yield message
        return
    for begin in range(0, len(body), _PIECE):
        more = message.get("more_body", False) or begin + _PIECE < len(body)
        yield {**message, "body": body[begin : begin + _PIECE], "more_body": more}
