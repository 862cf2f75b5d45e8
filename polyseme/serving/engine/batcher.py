"""Requests of all connections, joined into batches under a budget of words and computed in one thread.

A request is a ticket: items (sentences, mostly) for one engine, a function of a list of items. A batch takes items of
one engine from as many tickets as there is room for, a small share of each at a time, so that a long request cannot
hold up the short ones that come after it. What nobody waits for any more is never computed.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from polyseme.serving.engine.metrics import Metrics

_SHARES = 4  # tickets among which a batch is shared out at least, where so many wait


@dataclass(frozen=True, eq=False)
class Engine:
    """Something that computes lists of items; an item's result depends on nothing but the item."""

    name: str
    compute: Callable[[list[Any]], Sequence[Any]]


@dataclass(eq=False)
class Ticket:
    """The work of one request."""

    engine: Engine
    items: Sequence[Any]
    sizes: Sequence[int]
    future: asyncio.Future[list[Any]]
    begun: int = 0  # items that were given out
    done: int = 0
    results: list[Any] = field(default_factory=list)

    def take(self, room: int) -> list[int]:
        """The next items, by number, while there is room; the first one in any case."""
        first = self.begun
        room -= self.sizes[first]
        self.begun += 1
        while self.begun < len(self.items) and self.sizes[self.begun] <= room:
            room -= self.sizes[self.begun]
            self.begun += 1
        return list(range(first, self.begun))


@dataclass(frozen=True)
class Batch:
    """Items of several tickets."""

    engine: Engine
    parts: list[tuple[Ticket, list[int]]]
    words: int


class Batcher:
    """The queue and its thread. Everything but `_work` and what it calls happens in the event loop's thread."""

    def __init__(self, budget: int, metrics: Metrics) -> None:
        self._budget, self._metrics = budget, metrics
        self._queue: deque[Ticket] = deque()
        self._filled = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="polyseme-batches", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Begin to compute, for the event loop that runs."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def close(self) -> None:
        """Stop after the batch that is being computed."""
        with self._filled:
            self._closed = True
            self._filled.notify()
        self._thread.join()

    @property
    def alive(self) -> bool:
        """Whether it computes."""
        return self._thread.is_alive()

    @property
    def waiting(self) -> int:
        """Tickets in the queue."""
        return len(self._queue)

    async def run(self, engine: Engine, items: Sequence[Any], sizes: Sequence[int]) -> list[Any]:
        """The results of some items, in order. Whoever stops waiting takes the ticket back."""
        if not items:
            return []
        future = asyncio.get_running_loop().create_future()
        ticket = Ticket(engine, items, sizes, future, results=[None] * len(items))
        with self._filled:
            self._queue.append(ticket)
            self._filled.notify()
        return await future  # when the waiting is cancelled, so is the future

    def _work(self) -> None:
        while (batch := self._next()) is not None:
            outcomes = _compute(batch)
            assert self._loop is not None
            self._loop.call_soon_threadsafe(self._deliver, batch, outcomes)

    def _next(self) -> Batch | None:
        with self._filled:
            while True:
                if self._closed:
                    return None
                if batch := self._join():
                    return batch
                self._filled.wait()

    def _join(self) -> Batch | None:
        """Fill a batch with what waits for the engine of whoever waits longest."""
        passed: list[Ticket] = []
        parts: list[tuple[Ticket, list[int]]] = []
        room, engine = self._budget, None
        while self._queue and room > 0:
            ticket = self._queue.popleft()
            if ticket.future.done():  # nobody waits any more
                continue
            engine = engine or ticket.engine
            full = parts and ticket.sizes[ticket.begun] > room
            if ticket.engine is not engine or full:
                passed.append(ticket)
                continue
            numbers = ticket.take(min(room, max(1, self._budget // _SHARES)))
            parts.append((ticket, numbers))
            room -= sum(ticket.sizes[number] for number in numbers)
            if ticket.begun < len(ticket.items):
                self._queue.append(ticket)
        self._queue.extendleft(reversed(passed))
        return Batch(engine, parts, self._budget - room) if engine and parts else None

    def _deliver(self, batch: Batch, outcomes: list[Any]) -> None:
        self._metrics.batches.observe(batch.words)
        self._metrics.words.add(batch.words, model=batch.engine.name)
        for (ticket, numbers), outcome in zip(batch.parts, outcomes, strict=True):
            if ticket.future.done():
                continue
            if isinstance(outcome, Exception):
                ticket.future.set_exception(outcome)
                continue
            for number, result in zip(numbers, outcome, strict=True):
                ticket.results[number] = result
            ticket.done += len(numbers)
            if ticket.done == len(ticket.items):
                ticket.future.set_result(ticket.results)


def _compute(batch: Batch) -> list[Any]:
    """Results for each part, or what was raised: a part that cannot be computed does not take the others with it."""
    try:
        items = [ticket.items[number] for ticket, numbers in batch.parts for number in numbers]
        results = list(batch.engine.compute(items))
        ends = list(accumulate(len(numbers) for _, numbers in batch.parts))
        return [results[end - len(numbers) : end] for end, (_, numbers) in zip(ends, batch.parts, strict=True)]
    except Exception as error:
        if len(batch.parts) == 1:
            return [error]
    return [_compute(Batch(batch.engine, [part], 0))[0] for part in batch.parts]
