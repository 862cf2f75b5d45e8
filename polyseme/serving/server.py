"""The server process: uvicorn with graceful shutdown (drain on SIGTERM) and logs as JSON lines."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import signal
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn

from polyseme.errors import ConfigError
from polyseme.serving.http.protocol import HeaderTimeoutProtocol

if TYPE_CHECKING:
    from fastapi import FastAPI

    from polyseme.serving.engine.service import Service

_KEEP_ALIVE = 65  # seconds that an idle connection stays open: longer than most clients and proxies keep theirs
_QUIET = 0.3  # seconds without a request in flight after which the server counts as drained


class Server(uvicorn.Server):
    """A uvicorn server with graceful shutdown.

    On the first signal it drains: it is no longer ready, refuses new requests with 503 and closes their connections,
    and answers what it has accepted. Then it closes. A second signal stops it at once.
    """

    def __init__(self, app: FastAPI, host: str = "127.0.0.1", port: int = 8000) -> None:
        self.service: Service = app.state.service
        self.service.hosts.add(host.lower())
        limits = self.service.limits
        config = uvicorn.Config(
            app,
            host=host,
            port=port,
            http=partial(HeaderTimeoutProtocol, seconds=limits.body_seconds),  # pyright: ignore[reportArgumentType]
            ws="none",
            access_log=False,
            log_config=None,
            server_header=False,
            timeout_keep_alive=_KEEP_ALIVE,
            limit_concurrency=limits.connections,
        )
        super().__init__(config)
        self._on_ready: Callable[[], object] = lambda: None
        self._preparing: AbstractContextManager[object] = nullcontext()

    def serve_until_stopped(
        self, announce: Callable[[str], object], preparing: AbstractContextManager[object] | None = None
    ) -> None:
        """Open the socket, announce its address when the server is ready, and serve until a signal comes.

        Args:
            announce: Called with the address.
            preparing: Entered until the server is ready, to show that it works.
        """
        self._preparing = preparing or nullcontext()
        listener = self._listen()
        host, port = listener.getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}"

        def on_ready() -> None:
            gc.collect()
            gc.freeze()  # what was made until now stays, so that later collections are short
            announce(address)

        self._on_ready = on_ready
        self.run([listener])
        for sig in (signal.SIGINT, signal.SIGTERM):  # it is over: a late second signal ends the process silently
            signal.signal(sig, signal.SIG_DFL)

    async def main_loop(self) -> None:
        """Wait for the preparations, then for a signal."""
        with self._preparing:
            while not (self.service.ready or self.should_exit):
                await asyncio.sleep(0.05)
        if not self.should_exit:
            self._on_ready()
        await super().main_loop()

    def _listen(self) -> socket.socket:
        host, port = self.config.host, self.config.port
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            return socket.create_server((host, port), family=family, backlog=self.config.backlog)
        except (OSError, OverflowError) as error:
            raise ConfigError(f"cannot listen at {host}, port {port}: {error}; choose another --port") from error

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Start to drain; at a second signal, end the process at once, as if there were no handler."""
        if self.service.draining:
            self.service.splitter.stop()
            signal.signal(sig, signal.SIG_DFL)
            signal.raise_signal(sig)
        self.should_exit = self.service.draining = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Drain if a signal has come, then let uvicorn close; both together within `drain_seconds`."""
        end = monotonic() + self.service.limits.drain_seconds
        if self.service.draining:
            await self._drain(end)
        self.config.timeout_graceful_shutdown = max(0, end - monotonic())  # pyright: ignore[reportAttributeAccessIssue]
        await super().shutdown(sockets)

    async def _drain(self, end: float) -> None:
        """Answer the accepted requests while new ones are refused, until none has come for a moment."""
        quiet = 0.0
        while monotonic() < end and quiet < _QUIET:
            await asyncio.sleep(0.05)
            quiet = 0.0 if self.service.in_flight else quiet + 0.05


class JsonLines(logging.Formatter):
    """Log formatter: one JSON object per line, with time, level, event and the event's fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a log record as a JSON line."""
        entry = {
            "time": round(record.created, 3),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        return json.dumps(entry, ensure_ascii=False)


def log_to_stderr(verbose: bool) -> None:
    """Log to standard error: errors always, single requests only if verbose."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    levels = {"polyseme.serving": logging.INFO if verbose else logging.WARNING, "uvicorn": logging.ERROR}
    for name, level in levels.items():
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
