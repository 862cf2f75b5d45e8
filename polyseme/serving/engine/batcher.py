"""Dynamic batching: requests of all connections, joined into batches under a word budget, computed in one thread.

A request queues items (mostly sentences) for one function of a list of items. A batch takes items for one function from
as many requests as fit, a limited share of each, so that a long request cannot hold up short ones that come after it.
A request whose client has left is not computed.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from polyseme.serving.engine.metrics import Metrics

_PATIENCE = 1.5  # seconds to wait for the current batch at the end
_MIN_REQUESTS = 4  # that share a batch where so many wait: each gets at most a quarter of it at a time


@dataclass(frozen=True, eq=False)
class BatchFunction:
    """A named function of a list of items; the result of an item depends on nothing but that item.

    An exception in the place of a result fails the request of that item, and no other.
    """

    name: str
    compute: Callable[[list[Any]], Sequence[Any]]


@dataclass(eq=False)
class QueuedRequest:
    """The items of one request in the queue, and their results so far."""

    function: BatchFunction
    items: Sequence[Any]
    sizes: Sequence[int]
    future: asyncio.Future[list[Any]]
    started: int = 0  # items given to batches so far
    done: int = 0
    results: list[Any] = field(default_factory=list)

    def take(self, room: int) -> list[int]:
        """The indices of the next items that fit into the room; at least one, whatever its size."""
        first = self.started
        room -= self.sizes[first]
        self.started += 1
        while self.started < len(self.items) and self.sizes[self.started] <= room:
            room -= self.sizes[self.started]
            self.started += 1
        return list(range(first, self.started))


@dataclass(frozen=True)
class WorkBatch:
    """Items of several requests, computed together: for each request the indices of its items."""

    function: BatchFunction
    parts: list[tuple[QueuedRequest, list[int]]]
    words: int


class Batcher:
    """The request queue and its worker thread.

    Everything but `_work` and what it calls happens in the event loop's thread.
    """

    def __init__(self, budget: int, metrics: Metrics) -> None:
        self._budget, self._metrics = budget, metrics
        self._queue: deque[QueuedRequest] = deque()
        self._filled = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="polyseme-batches", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Start the worker thread; results go to the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def close(self) -> None:
        """Stop the worker thread after the current batch; a batch that takes very long is not waited for."""
        with self._filled:
            self._closed = True
            self._filled.notify()
        self._thread.join(_PATIENCE)

    @property
    def alive(self) -> bool:
        """Whether the worker thread is running."""
        return self._thread.is_alive()

    @property
    def waiting(self) -> int:
        """The number of requests in the queue."""
        return len(self._queue)

    async def run(self, function: BatchFunction, items: Sequence[Any], sizes: Sequence[int]) -> list[Any]:
        """The results of the items, in order. Cancelling this call withdraws what is not yet computed."""
        if not items:
            return []
        future = asyncio.get_running_loop().create_future()
        request = QueuedRequest(function, items, sizes, future, results=[None] * len(items))
        with self._filled:
            self._queue.append(request)
            self._filled.notify()
        return await future  # cancelling the wait cancels the future too

    def _work(self) -> None:
        while (batch := self._next()) is not None:
            outcomes = _compute(batch)
            assert self._loop is not None
            with suppress(RuntimeError):  # the event loop is closed, and nobody waits any more
                self._loop.call_soon_threadsafe(self._deliver, batch, outcomes)

    def _next(self) -> WorkBatch | None:
        with self._filled:
            while True:
                if self._closed:
                    return None
                if batch := self._fill():
                    return batch
                self._filled.wait()

    def _fill(self) -> WorkBatch | None:
        """Fill a batch with items for the function of the request that has waited longest."""
        skipped: list[QueuedRequest] = []
        parts: list[tuple[QueuedRequest, list[int]]] = []
        room, function = self._budget, None
        while self._queue and room > 0:
            request = self._queue.popleft()
            if request.future.done():  # cancelled
                continue
            function = function or request.function
            too_large = parts and request.sizes[request.started] > room
            if request.function is not function or too_large:
                skipped.append(request)
                continue
            indices = request.take(min(room, max(1, self._budget // _MIN_REQUESTS)))
            parts.append((request, indices))
            room -= sum(request.sizes[index] for index in indices)
            if request.started < len(request.items):
                self._queue.append(request)
        self._queue.extendleft(reversed(skipped))
        return WorkBatch(function, parts, self._budget - room) if function and parts else None

    def _deliver(self, batch: WorkBatch, outcomes: list[list[Any]]) -> None:
        self._metrics.batches.observe(batch.words)
        self._metrics.words.add(batch.words, model=batch.function.name)
        for (request, indices), outcome in zip(batch.parts, outcomes, strict=True):
            if request.future.done():
                continue
            if error := next((each for each in outcome if isinstance(each, Exception)), None):
                request.future.set_exception(error)
                continue
            for index, result in zip(indices, outcome, strict=True):
                request.results[index] = result
            request.done += len(indices)
            if request.done == len(request.items):
                request.future.set_result(request.results)


def _compute(batch: WorkBatch) -> list[list[Any]]:
    """Results for each part, with exceptions among them; a part that fails does not fail the others."""
    try:
        items = [request.items[index] for request, indices in batch.parts for index in indices]
        results = list(batch.function.compute(items))
        ends = list(accumulate(len(indices) for _, indices in batch.parts))
        return [results[end - len(indices) : end] for end, (_, indices) in zip(ends, batch.parts, strict=True)]
    except Exception as error:
        if len(batch.parts) == 1:
            return [[error]]
    return [_compute(WorkBatch(batch.function, [part], 0))[0] for part in batch.parts]
