"""Several processes that embed side by side; results come back in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Generic, TypeVar

import torch
import torch.multiprocessing as torch_processes

from polyseme.embedding.interfaces import Encoder
from polyseme.errors import ConfigError, PolysemeError

Item = TypeVar("Item")
Result = TypeVar("Result")


class Pool(Generic[Item, Result]):
    """A function of an encoder and a window of items, done in other processes.

    Weights are put in shared memory, so they are there once. Processes are spawned, not forked: forking a process in
    which torch has begun to compute can hang. A script that uses them needs ``if __name__ == "__main__":``.
    """

    def __init__(self, encoder: Encoder, work: Callable[[Encoder, list[Item]], list[Result]], workers: int) -> None:
        if encoder.device.type != "cpu":
            raise ConfigError(
                f"workers={workers} is for the CPU; on {encoder.device} use one, and a larger word_budget"
            )
        self.encoder, self.work, self.workers = encoder, work, workers

    def map(self, windows: Iterable[list[Item]]) -> Iterator[Result]:
        """Results of all windows, in order; a few windows are under way at a time."""
        threads = max(1, torch.get_num_threads() // self.workers)
        context = torch_processes.get_context("spawn")
        running: deque[Future[list[Result]]] = deque()
        pool = ProcessPoolExecutor(self.workers, context, _start, (self.encoder, self.work, threads))
        try:
            for window in windows:
                running.append(pool.submit(_run, window))
                if len(running) > self.workers + 1:
                    yield from running.popleft().result()
            while running:
                yield from running.popleft().result()
        except BrokenProcessPool as error:
            raise PolysemeError("a worker process died (killed, or out of memory?); use fewer workers") from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


_state: dict[str, Any] = {}


def _start(encoder: Encoder, work: object, threads: int) -> None:
    torch.set_num_threads(threads)
    _state.update(encoder=encoder, work=work)


def _run(window: list[Any]) -> list[Any]:
    return _state["work"](_state["encoder"], window)
