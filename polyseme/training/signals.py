"""Graceful handling of SIGINT and SIGTERM."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class GracefulStop:
    """Defers SIGINT (Ctrl-C) and SIGTERM until a step is finished; the second signal interrupts at once.

    While `defer` is False, there is nothing to save, and the first signal interrupts at once, too.

    Args:
        announce: Called when a signal is deferred.
    """

    def __init__(self, announce: Callable[[], object] = lambda: None) -> None:
        self.requested = self.defer = False
        self._announce = announce

    def __enter__(self) -> GracefulStop:
        self._before = [signal.signal(number, self._handle) for number in SIGNALS]
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in zip(SIGNALS, self._before, strict=True):
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested or not self.defer:
            raise KeyboardInterrupt
        self.requested = True
        self._announce()
