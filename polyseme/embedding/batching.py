"""Work in batches, results in order.

A stream is read a window at a time. Within a window, items of like size are computed together, as many as a budget of
words allows; then the results are put back in the order in which the items came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# Budgets in a window. More sort better; the vectors of a whole window are held in memory.
WINDOW = 8


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
    """Group items, by number, from large to small; sizes in a group stay within the budget, but for a single giant."""
    batch: list[int] = []
    total = 0
    for number in sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True):
        if batch and total + sizes[number] > budget:
            yield batch
            batch, total = [], 0
        batch.append(number)
        total += sizes[number]
    if batch:
        yield batch


def compute_in_order(
    items: Sequence[Item], size: Callable[[Item], int], budget: int, compute: Callable[[list[Item]], Sequence[Result]]
) -> list[Result]:
    """Compute one window in sorted batches and give the results in the items' order."""
    results: dict[int, Result] = {}
    for batch in batches([size(item) for item in items], budget):
        results.update(zip(batch, compute([items[number] for number in batch]), strict=True))
    return [results[number] for number in range(len(items))]
