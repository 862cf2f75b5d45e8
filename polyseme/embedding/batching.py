"""Work in batches, results in order.

A stream is read a window at a time. Within a window, items of like size are computed together, as many as a budget of
words allows; then the results are put back in the order in which the items came.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# Budgets in a window. More sort better, but the vectors of a whole window are held in memory, so there is a limit.
WINDOW = 8
WINDOW_WORDS = 250_000


def window_words(budget: int) -> int:
    """Words of a window for a budget: several budgets, within the limit, but one at least."""
    return max(budget, min(WINDOW * budget, WINDOW_WORDS))


def windows(items: Iterable[Item], size: Callable[[Item], int], limit: int) -> Iterator[list[Item]]:
    """Cut a stream into lists whose sizes add up to a limit or just above."""
    window: list[Item] = []
    total = 0
    for item in items:
        window.append(item)
        total += size(item)
        if total >= limit:
            yield window
            window, total = [], 0
    if window:
        yield window


def batches(sizes: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Group items, by number, from large to small; sizes in a group stay within the budget, but for a single giant.

    Groups are about equal, so that no small rest is left over.
    """
    batch: list[int] = []
    total = 0
    whole = sum(sizes)
    even = whole / max(1, -(-whole // budget))
    for number in sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True):
        if batch and (total >= even or total + sizes[number] > budget):
            yield batch
            batch, total = [], 0
        batch.append(number)
        total += sizes[number]
    if batch:
        yield batch


def compute_in_order(
    items: Sequence[Item],
    size: Callable[[Item], int],
    budget: int,
    begin: Callable[[list[Item]], Callable[[], Sequence[Result]]],
) -> list[Result]:
    """Compute one window in sorted batches and give the results in the items' order.

    A batch is begun before the results of the one before are waited for, so a device is never idle in between.
    """
    results: dict[int, Result] = {}
    running: deque[tuple[list[int], Callable[[], Sequence[Result]]]] = deque()

    def finish() -> None:
        batch, wait = running.popleft()
        results.update(zip(batch, wait(), strict=True))

    for batch in batches([size(item) for item in items], budget):
        running.append((batch, begin([items[number] for number in batch])))
        if len(running) > 1:
            finish()
    while running:
        finish()
    return [results[number] for number in range(len(items))]
