"""An app behind a socket: uvicorn, with logs as JSON lines and an end that loses nothing."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Callable
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn

from polyseme.errors import ConfigError

if TYPE_CHECKING:
    from fastapi import FastAPI

    from polyseme.serving.engine.service import Service

_KEEP_ALIVE = 65  # seconds for which an idle connection is kept: longer than most clients and proxies keep theirs
_QUIET = 0.3  # seconds without a request inside after which nobody is on the way any more


class Server(uvicorn.Server):
    """A server that is told to stop in two steps.

    First it says so: it is not ready, whoever asks is sent away with 503 and a closed connection, and what was accepted
    is computed and sent. Then it closes. A second signal ends it at once.
    """

    def __init__(self, app: FastAPI, host: str = "127.0.0.1", port: int = 8000) -> None:
        self.service: Service = app.state.service
        limits = self.service.limits
        config = uvicorn.Config(
            app,
            host=host,
            port=port,
            access_log=False,
            log_config=None,
            server_header=False,
            timeout_keep_alive=_KEEP_ALIVE,
            limit_concurrency=limits.connections,
            timeout_graceful_shutdown=int(limits.drain_seconds),
        )
        super().__init__(config)
        self._told_to_stop = False

    def serve_until_told(self, tell: Callable[[str], object]) -> None:
        """Take the socket, say where it is, and answer until a signal comes."""
        listener = self._listen()
        host, port = listener.getsockname()[:2]
        tell(f"http://{f'[{host}]' if ':' in host else host}:{port}")
        self.run([listener])

    def _listen(self) -> socket.socket:
        host, port = self.config.host, self.config.port
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            return socket.create_server((host, port), family=family, backlog=self.config.backlog)
        except (OSError, OverflowError) as error:
            raise ConfigError(f"cannot listen at {host}, port {port}: {error}; choose another --port") from error

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to drain, or at a second signal leave."""
        if self._told_to_stop:
            self.should_exit = self.force_exit = True
        self._told_to_stop = True

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: drain when told to."""
        if self._told_to_stop and not self.service.draining:
            await self.drain()
        return await super().on_tick(counter)

    async def drain(self) -> None:
        """Answer what was accepted, accept nothing more, then let uvicorn close."""
        self.service.draining = True
        end, quiet = monotonic() + self.service.limits.drain_seconds, 0.0
        while monotonic() < end and quiet < _QUIET and not self.force_exit:
            await asyncio.sleep(0.05)
            quiet = 0.0 if self.service.admission.words else quiet + 0.05
        self.should_exit = True


class JsonLines(logging.Formatter):
    """One JSON object a line: when, how grave, what, and the fields of what."""

    def format(self, record: logging.LogRecord) -> str:
        """A line."""
        about = {
            "time": round(record.created, 3),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        return json.dumps(about, ensure_ascii=False)


def log_to_stderr(verbose: bool) -> None:
    """Write the server's own lines; those about single requests only if asked."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    levels = {"polyseme.serving": logging.INFO if verbose else logging.WARNING, "uvicorn": logging.ERROR}
    for name, level in levels.items():
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
