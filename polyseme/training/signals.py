"""Being asked to stop."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class GracefulStop:
    """Ctrl-C and SIGTERM: at once while there is nothing to save, then remembered until a step is finished.

    Asked a second time, at once again.

    Args:
        answer: Called when somebody will have to wait.
    """

    def __init__(self, answer: Callable[[], object] = lambda: None) -> None:
        self.requested = self.defer = False
        self._answer = answer

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
        self._answer()
