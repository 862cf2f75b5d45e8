"""HTTP/1.1 protocol with a timeout for request headers, which uvicorn lacks."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol


class HeaderTimeoutProtocol(H11Protocol):
    """A connection that is closed when the headers of a request do not arrive in time.

    uvicorn closes a connection that is idle after a response, but not one that sends no request or half of one.
    """

    def __init__(self, *, seconds: float, **options: Any) -> None:  # noqa: ANN401 - options of uvicorn
        super().__init__(**options)
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Start to wait for the first request."""
        super().connection_made(transport)
        self._wait_for_headers()

    def data_received(self, data: bytes) -> None:
        """Wait on if the headers are not complete."""
        super().data_received(data)
        if self._in_request:
            self._stop_waiting()
        elif self._timer is None:
            self._wait_for_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the header timeout of a closed connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    @property
    def _in_request(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait_for_headers(self) -> None:
        self._timer = self.loop.call_later(self._seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        idle_after_response = self.timeout_keep_alive_task is not None
        if not self._in_request and not idle_after_response:
            self.transport.close()
