"""Embedding beside the caller, in other processes or in a thread; results come back in order."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Generic, TypeVar

import torch
import torch.multiprocessing as torch_processes
from torch import nn

from polyseme.errors import PolysemeError

Item = TypeVar("Item")
Result = TypeVar("Result")
Module = TypeVar("Module", bound=nn.Module)


class Pool(Generic[Module, Item, Result]):
    """A function of an encoder (any module) and a window of items, done in other processes.

    Weights are put in shared memory, so they are there once. Processes are spawned, not forked: forking a process in
    which torch has begun to compute can hang. A script that uses them needs ``if __name__ == "__main__":``.
    """

    def __init__(self, encoder: Module, work: Callable[[Module, list[Item]], list[Result]], workers: int) -> None:
        self.encoder, self.work, self.workers = encoder, work, workers

    def map(self, windows: Iterable[list[Item]]) -> Iterator[Result]:
        """Results of all windows, in order; a few windows are under way at a time."""
        threads = max(1, torch.get_num_threads() // self.workers)
        context = torch_processes.get_context("spawn")
        pool = ProcessPoolExecutor(self.workers, context, _start, (self.encoder, self.work, threads))
        try:
            yield from _map(pool, _run, windows, self.workers + 1)
        except BrokenProcessPool as error:
            raise PolysemeError("a worker process died (killed, or out of memory?); use fewer workers") from error


def one_ahead(work: Callable[[list[Item]], list[Result]], windows: Iterable[list[Item]]) -> Iterator[Result]:
    """Results of all windows, in order; a thread keeps a device busy while the caller reads the next window."""
    return _map(ThreadPoolExecutor(1), work, windows, 1)


def _map(
    pool: Executor, work: Callable[[list[Item]], list[Result]], windows: Iterable[list[Item]], ahead: int
) -> Iterator[Result]:
    running: deque[Future[list[Result]]] = deque()
    try:
        for window in windows:
            running.append(pool.submit(work, window))
            if len(running) > ahead:
                yield from running.popleft().result()
        while running:
            yield from running.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_state: dict[str, Any] = {}


def _start(encoder: nn.Module, work: object, threads: int) -> None:
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    _state.update(encoder=encoder, work=work)


def _leave_with_parent() -> None:
    """A parent that is killed cannot tell; without this its workers would wait for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run(window: list[Any]) -> list[Any]:
    return _state["work"](_state["encoder"], window)
