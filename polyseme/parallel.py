"""Ordered map over worker processes or threads: results in the order of the items, only a few items in memory."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from polyseme.errors import ConfigError, PolysemeError

Item = TypeVar("Item")
Result = TypeVar("Result")

WORTH_A_PROCESS = 4_000_000  # bytes of text; less is done before another process has started


def number_of_workers(workers: int | None, size: int | None) -> int:
    """Number of worker processes: as requested, or one per core, or one where the text (size in bytes) is small."""
    if workers is not None:
        if workers < 1:
            raise ConfigError(f"workers must be at least 1, not {workers}")
        return workers
    if size is not None and size < WORTH_A_PROCESS:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_processes(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    workers: int,
    ahead: int | None = None,
    start: Callable[[], object] | None = None,
) -> Iterator[Result]:
    """Ordered map over worker processes; with one worker, no other process is started.

    Processes are spawned, not forked: forking a process in which torch has begun to compute can hang. A script that
    uses them needs ``if __name__ == "__main__":``.

    Args:
        work: A function of one item. It is sent to each process once; weights it holds go into shared memory.
        items: Taken as they are needed.
        workers: How many processes.
        ahead: Items that are submitted before the oldest result is waited for. [two per worker]
        start: Called once in each process, before any work.
    """
    if workers == 1:
        yield from map(work, items)
        return
    # Importing torch teaches multiprocessing to share tensors, so its plain context does, and no torch is needed here.
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _start_worker, (work, start))
    try:
        yield from _map(pool, _run_work, items, 2 * workers if ahead is None else ahead)
    except BrokenProcessPool as error:
        raise PolysemeError("a worker process died (killed, or out of memory?); use fewer workers") from error


def map_threads(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int = 1, ahead: int = 1
) -> Iterator[Result]:
    """Ordered map over threads, for work that waits: for a device, for a server."""
    return _map(ThreadPoolExecutor(threads, thread_name_prefix="polyseme"), work, items, ahead)


def _map(pool: Executor, work: Callable[[Item], Result], items: Iterable[Item], ahead: int) -> Iterator[Result]:
    running: deque[Future[Result]] = deque()
    try:
        for item in items:
            running.append(pool.submit(work, item))
            if len(running) > ahead:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_worker: dict[str, Any] = {}  # in a worker process: what it does


def _start_worker(work: Callable[[Any], Any], start: Callable[[], object] | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it at once, and the parent says what there is to say
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    if start is not None:
        start()
    _worker["work"] = work


def _exit_with_parent() -> None:
    """Watchdog thread: a parent that is killed cannot say so, and its workers would wait for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run_work(item: Any) -> Any:  # noqa: ANN401 - the type of `work` is known only in the parent
    return _worker["work"](item)
