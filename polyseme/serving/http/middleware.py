"""Access middleware around every request: host, origin and key checks, admission, metrics, log, security headers."""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Iterator
from http import HTTPStatus
from time import perf_counter

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from polyseme.serving.engine.service import RequestLoad, Service
from polyseme.serving.http.errors import HttpError, from_exception
from polyseme.serving.http.hosts import check_host, check_origin

logger = logging.getLogger("polyseme.serving")
_ALWAYS_OPEN = {"/health", "/ready"}  # answered while draining, and without a key
_CHUNK = 1 << 16  # bytes sent at a time; the next are sent when the client has received these
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class _SlowClientError(Exception):
    """A client does not receive its response in time."""


class AccessMiddleware:
    """ASGI middleware: checks access, counts and logs. A log line holds nothing that a user wrote."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service
        self._key = service.settings.key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the app, or refuse it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["method"] == "HEAD":  # answered like GET; uvicorn leaves the body out
            scope = {**scope, "method": "GET"}
        load = scope["load"] = RequestLoad()
        start, status = perf_counter(), 0

        async def send_counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._add_headers(MutableHeaders(scope=message))
            for chunk in _chunks(message):
                await self._send(send, chunk)

        try:
            refusal = self._refusal(scope)
            if refusal is None and scope["path"] not in _ALWAYS_OPEN:
                load.accepted = True
                self._service.in_flight += 1
            await (refusal.response() if refusal else self._app)(scope, receive, send_counted)
        except _SlowClientError:
            self._service.metrics.dropped.add(reason="slow")
        except asyncio.CancelledError:  # the time to drain is over
            if not status:
                await _draining().response()(scope, receive, send_counted)
        finally:
            self._service.leave(load, status == HTTPStatus.OK)
            self._record(scope, status, load.words, perf_counter() - start)

    async def _send(self, send: Send, message: Message) -> None:
        try:
            await asyncio.wait_for(send(message), self._service.limits.send_seconds)
        except asyncio.TimeoutError:
            raise _SlowClientError from None

    def _refusal(self, scope: Scope) -> HttpError | None:
        path, settings = scope["path"], self._service.settings
        foreign = check_host(scope, self._service.hosts) or check_origin(scope, settings.origins, settings.hosts)
        if foreign or path in _ALWAYS_OPEN:
            return foreign
        if self._service.draining:
            return _draining()
        needs_key = path.startswith("/v1/") or path == "/metrics"
        if needs_key and self._key is not None and not self._has_key(scope):
            message = "this server requires a key; send the header Authorization: Bearer KEY"
            return HttpError(401, "unauthorized", message, headers={"WWW-Authenticate": "Bearer"})
        computes = path.startswith("/v1/") and scope["method"] == "POST"
        overloaded = self._service.admission.refusal() if computes else None
        return from_exception(overloaded) if overloaded else None

    def _has_key(self, scope: Scope) -> bool:
        scheme, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
        expected = (self._key or "").encode()
        return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode("utf-8", "replace"), expected)

    def _add_headers(self, headers: MutableHeaders) -> None:
        for name, value in _HEADERS.items():
            headers[name] = value
        if self._service.draining:
            headers["Connection"] = "close"

    def _record(self, scope: Scope, status: int, words: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", None) or "other"
        metrics = self._service.metrics
        metrics.requests.add(route=route, status=str(status))
        metrics.seconds.observe(seconds)
        milliseconds = round(1000 * seconds, 1)
        fields = {"route": route, "status": status, "words": words, "milliseconds": milliseconds}
        logger.info("request", extra={"fields": fields})


def _draining() -> HttpError:
    return HttpError(503, "draining", "the server is shutting down", headers={"Retry-After": "5"})


def _chunks(message: Message) -> Iterator[Message]:
    """Split a long body, so that what a slow client has not received waits here, where admission counts it."""
    body = message.get("body", b"")
    if len(body) <= _CHUNK:
        yield message
        return
    for start in range(0, len(body), _CHUNK):
        more = message.get("more_body", False) or start + _CHUNK < len(body)
        yield {**message, "body": body[start : start + _CHUNK], "more_body": more}
