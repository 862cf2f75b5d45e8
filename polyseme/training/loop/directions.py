"""The two directions side by side: a thread each on the cores of a CPU, a stream each on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TypeVar

import torch

from polyseme.training.loop.windows import DIRECTIONS

Result = TypeVar("Result")


class Lanes:
    """Work for each direction. Whoever asks goes on when all of it is done, or on a GPU, is under way."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def run(self, work: Callable[[int], Result]) -> list[Result]:
        """What each direction's work gave; the work of one must not touch what the other's writes."""
        if self._device.type == "cuda":
            return self._on_streams(work)
        threads = torch.get_num_threads()
        if threads < DIRECTIONS:
            return self.in_turn(work)
        torch.set_num_threads(threads // DIRECTIONS)  # of each direction
        try:
            return list(self._pool.map(work, range(DIRECTIONS)))
        finally:
            torch.set_num_threads(threads)

    def in_turn(self, work: Callable[[int], Result]) -> list[Result]:
        """One after the other."""
        return [work(direction) for direction in range(DIRECTIONS)]

    def _on_streams(self, work: Callable[[int], Result]) -> list[Result]:
        here, results = torch.cuda.current_stream(self._device), []
        for direction, stream in enumerate(self._streams):
            stream.wait_stream(here)
            with torch.cuda.stream(stream):
                results.append(work(direction))
        for stream in self._streams:
            here.wait_stream(stream)
        return results

    @cached_property
    def _streams(self) -> list[torch.cuda.Stream]:
        return [torch.cuda.Stream(self._device) for _ in range(DIRECTIONS)]

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(DIRECTIONS, thread_name_prefix="polyseme")
