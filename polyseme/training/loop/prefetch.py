"""Prefetching of windows for a GPU, by a background thread on a CUDA stream of its own.

Building a window waits for the GPU (how many distinct words are there?), and starting a shard takes a second on the
CPU. The thread does the waiting, and the queue holds enough windows to bridge that second.
"""

from __future__ import annotations

import queue
import threading
import weakref
from contextlib import suppress
from typing import Any, NamedTuple

import torch
from torch import Tensor

from polyseme.training.loop.windows import Window, Windows

QUEUE_SIZE = 32  # windows
POLL_SECONDS = 0.5  # how often the thread checks whether it should stop


class _Prefetched(NamedTuple):
    window: Window
    position: tuple[dict[str, Any], dict[str, Tensor]]  # after it
    epochs: float
    event: torch.cuda.Event


class PrefetchedWindows:
    """Prefetched `Windows` for a GPU: the same windows; the position is that of the last window taken."""

    def __init__(self, windows: Windows, device: torch.device) -> None:
        self._windows, self._device = windows, device
        self.windows_per_epoch = windows.windows_per_epoch
        self._prefetcher: _PrefetchThread | None = None
        self._position, self.epochs = windows.position(), windows.epochs

    def next_window(self, step: int) -> Window:
        """The window of a training step; steps must be consecutive."""
        if self._prefetcher is None:
            self._prefetcher = _PrefetchThread(self._windows, step, self._device)
            weakref.finalize(self, self._prefetcher.stop)
        made = self._prefetcher.take()
        here = torch.cuda.current_stream(self._device)
        made.event.wait(here)
        for part in made.window:
            if part is not None and part.is_cuda:
                part.record_stream(here)
        self._position, self.epochs = made.position, made.epochs
        return made.window

    def position(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Position in the text; see `Windows.position`."""
        return self._position

    def restore(self, facts: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """Resume from a position; see `Windows.restore`."""
        if self._prefetcher is not None:
            self._prefetcher.stop()
            self._prefetcher = None
        self._windows.restore(facts, tensors)
        torch.cuda.synchronize(self._device)
        self._position, self.epochs = self._windows.position(), self._windows.epochs


class _PrefetchThread:
    """The background thread and its queue. It holds no reference to the consumer, so it ends when that is deleted."""

    def __init__(self, windows: Windows, first: int, device: torch.device) -> None:
        self._queue: queue.Queue[_Prefetched | BaseException] = queue.Queue(QUEUE_SIZE)
        self._stopping = threading.Event()
        torch.cuda.current_stream(device).synchronize()  # the set-up of the windows is done
        self._thread = threading.Thread(target=self._work, args=(windows, first, device), daemon=True)
        self._thread.start()

    def take(self) -> _Prefetched:
        item = self._queue.get()
        if isinstance(item, BaseException):
            raise item
        return item

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _work(self, windows: Windows, step: int, device: torch.device) -> None:
        stream = torch.cuda.Stream(device)
        try:
            with torch.cuda.device(device), torch.cuda.stream(stream):
                while not self._stopping.is_set():
                    window = windows.next_window(step)
                    event = torch.cuda.Event()
                    event.record(stream)
                    self._put(_Prefetched(window, windows.position(), windows.epochs, event))
                    step += 1
        except BaseException as error:
            self._put(error)

    def _put(self, item: _Prefetched | BaseException) -> None:
        while not self._stopping.is_set():
            with suppress(queue.Full):
                self._queue.put(item, timeout=POLL_SECONDS)
                return
