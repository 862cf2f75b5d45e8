"""Work in other processes, in order, with few pieces of it in memory at a time."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from polyseme.errors import ConfigError, PolysemeError

Item = TypeVar("Item")
Result = TypeVar("Result")

WORTH_A_PROCESS = 4_000_000  # bytes; less text is done before another process has started


def number_of_workers(workers: int | None, size: int | None) -> int:
    """As many as are asked for, or one for each core, or one where there is too little text for more."""
    if workers is not None:
        if workers < 1:
            raise ConfigError(f"workers must be at least 1, not {workers}")
        return workers
    if size is not None and size < WORTH_A_PROCESS:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_in_order(work: Callable[[Item], Result], items: Iterable[Item], workers: int) -> Iterator[Result]:
    """Results in the order of the items; with one worker, no other process is started.

    Processes are spawned: a script that uses them needs ``if __name__ == "__main__":``.
    """
    if workers == 1:
        yield from map(work, items)
        return
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _start)
    running: deque[Future[Result]] = deque()
    try:
        for item in items:
            running.append(pool.submit(work, item))
            if len(running) > 2 * workers:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    except BrokenProcessPool as error:
        raise PolysemeError("a worker process died (killed, or out of memory?); use fewer workers") from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _start() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it at once, and the parent says what there is to say
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    """A parent that is killed cannot tell; without this its workers would wait for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
