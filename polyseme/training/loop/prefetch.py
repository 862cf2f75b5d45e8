"""Windows made ready while a GPU still learns from those before: by a thread, on a stream of its own.

Making one means waiting for the GPU (how many distinct words are there?), and beginning a shard means a second of work
on the CPU. The thread does the waiting, and enough windows lie ready to bridge the second.
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

READY = 32  # windows
PATIENCE = 0.5  # seconds after which a thread looks whether it is still wanted


class _Made(NamedTuple):
    window: Window
    position: tuple[dict[str, Any], dict[str, Tensor]]  # after it
    epochs: float
    event: torch.cuda.Event


class PrefetchedWindows:
    """`Windows` for a GPU: the same windows, and positions are those of what was taken, not of what was made."""

    def __init__(self, windows: Windows, device: torch.device) -> None:
        self._windows, self._device = windows, device
        self.windows_per_epoch = windows.windows_per_epoch
        self._maker: _Maker | None = None
        self._position, self.epochs = windows.position(), windows.epochs

    def step(self, number: int) -> Window:
        """The window of step ``number``; steps come one after the other."""
        if self._maker is None:
            self._maker = _Maker(self._windows, number, self._device)
            weakref.finalize(self, self._maker.leave)
        made = self._maker.take()
        here = torch.cuda.current_stream(self._device)
        made.event.wait(here)
        for part in made.window:
            if part is not None and part.is_cuda:
                part.record_stream(here)
        self._position, self.epochs = made.position, made.epochs
        return made.window

    def position(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """See `Windows.position`."""
        return self._position

    def restore(self, facts: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """See `Windows.restore`."""
        if self._maker is not None:
            self._maker.leave()
            self._maker = None
        self._windows.restore(facts, tensors)
        torch.cuda.synchronize(self._device)
        self._position, self.epochs = self._windows.position(), self._windows.epochs


class _Maker:
    """The thread and what it has made. It holds no reference to who takes, so that it ends when nobody will."""

    def __init__(self, windows: Windows, first: int, device: torch.device) -> None:
        self._made: queue.Queue[_Made | BaseException] = queue.Queue(READY)
        self._unwanted = threading.Event()
        torch.cuda.current_stream(device).synchronize()  # what the windows were set up with is there
        self._thread = threading.Thread(target=self._work, args=(windows, first, device), daemon=True)
        self._thread.start()

    def take(self) -> _Made:
        made = self._made.get()
        if isinstance(made, BaseException):
            raise made
        return made

    def leave(self) -> None:
        self._unwanted.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _work(self, windows: Windows, number: int, device: torch.device) -> None:
        stream = torch.cuda.Stream(device)
        try:
            with torch.cuda.device(device), torch.cuda.stream(stream):
                while not self._unwanted.is_set():
                    window = windows.step(number)
                    event = torch.cuda.Event()
                    event.record(stream)
                    self._give(_Made(window, windows.position(), windows.epochs, event))
                    number += 1
        except BaseException as error:
            self._give(error)

    def _give(self, made: _Made | BaseException) -> None:
        while not self._unwanted.is_set():
            with suppress(queue.Full):
                self._made.put(made, timeout=PATIENCE)
                return
