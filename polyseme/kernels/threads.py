"""Thread pool for the native kernels, which release the GIL, so that threads compute in parallel."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def count() -> int:
    """Number of threads: as many as torch uses, so `torch.set_num_threads` and OMP_NUM_THREADS hold here too."""
    return torch.get_num_threads()


def share(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Map a function over items in the thread pool; results in order."""
    items = list(items)
    if len(items) < 2 or count() < 2:
        return [function(item) for item in items]
    return list(_pool(count()).map(function, items))


def parts(total: int, smallest: int = 1) -> list[slice]:
    """Equal parts of so many rows, one a thread, but none below a size that is worth a thread."""
    number = max(1, min(count(), total // smallest))
    return [slice(total * part // number, total * (part + 1) // number) for part in range(number)]


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="polyseme")


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a child has the pool but not its threads
