"""Batching: sentences checked, read in windows, computed in batches of similar length, results in order.

A stream is read a window at a time. Within a window, items of similar size are computed together, as many as a budget
of words allows; then the results are put back in the order in which the items came.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from functools import partial
from typing import TypeVar

import numpy as np
import torch

from polyseme.errors import ConfigError, InputError
from polyseme.parallel import map_processes, map_threads
from polyseme.text.word_encoder import BOUNDARIES

Item = TypeVar("Item")
Result = TypeVar("Result")
Wait = Callable[[], Sequence[Result]]  # waits for a batch that was started, and returns its results

# Budgets in a window. More sort better, but the vectors of a whole window are held in memory, so there is a limit.
WINDOW = 8
WINDOW_WORDS = 250_000


EMBED_REMEDY = "split it, or use embed_text or encode for raw text"
SPLIT_REMEDY = "split it into words first: [sentence.words for sentence in polyseme.tokenize(text)]"


def check_sentences(sentences: Iterable[Sequence[str]], remedy: str = EMBED_REMEDY) -> Iterator[list[str]]:
    """Check that sentences are lists of words; each is checked as it is read. The remedy is for bare strings."""
    if isinstance(sentences, str):
        raise InputError(_bare_string("got", sentences, remedy))
    if not isinstance(sentences, Iterable):
        raise InputError(f"sentences should be lists of words, not {type(sentences).__name__}")
    return (_check_sentence(words, number, remedy) for number, words in enumerate(sentences))


def _check_sentence(words: Sequence[str], number: int, remedy: str = EMBED_REMEDY) -> list[str]:
    if isinstance(words, str):
        raise InputError(_bare_string(f"sentence {number} is", words, remedy))
    try:
        checked = list(words)
    except TypeError:
        raise InputError(f"sentence {number} should be a list of words, not {type(words).__name__}") from None
    try:
        "".join(checked)  # the quickest test for nothing but strings
    except TypeError:
        place, word = next((place, word) for place, word in enumerate(checked) if not isinstance(word, str))
        raise InputError(
            f"sentence {number}, word {place} should be a string, not {type(word).__name__}: {word!r:.60}"
        ) from None
    return checked


def _bare_string(what: str, text: str, remedy: str) -> str:
    return f"{what} a bare string, {text!r:.60}, where a list of words belongs; {remedy}"


def sentence_size(words: Sized) -> int:
    """Words that a model reads for a sentence, the two boundaries included."""
    return len(words) + BOUNDARIES


def window_words(budget: int) -> int:
    """Words in a window for a word budget: several budgets, within the limit, but at least one."""
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


class NumberedWindow(list[np.ndarray]):
    """A window of sentences as indices into the distinct words of the window."""

    words: list[str]


def numbered_windows(sentences: Iterable[Sequence[str]], limit: int) -> Iterator[NumberedWindow]:
    """Cut a stream into windows of about so many words, and number their distinct words on the way.

    For a GPU, which outruns Python: each word is looked at once, and only the distinct ones are kept.
    """
    stream = enumerate(sentences if not isinstance(sentences, str) else check_sentences(sentences))
    first, window, total = 0, NumberedWindow(), 0
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    for position, words in stream:
        window.append(_number(words, position, numbers))
        total += sentence_size(window[-1])
        if total >= limit:
            yield _checked(window, numbers, first)
            first, window, total = position + 1, NumberedWindow(), 0
            numbers.clear()
    if window:
        yield _checked(window, numbers, first)


def _number(words: Sequence[str], position: int, numbers: defaultdict[str, int]) -> np.ndarray:
    if type(words) not in (list, tuple):
        words = _check_sentence(words, position)
    try:
        return np.fromiter(map(numbers.__getitem__, words), np.int64, len(words))
    except TypeError:  # an unhashable object is no word
        _check_sentence(words, position)
        raise


def _checked(window: NumberedWindow, numbers: Mapping[str, int], first: int) -> NumberedWindow:
    window.words = list(numbers)
    wrong = [number for number, word in enumerate(window.words) if not isinstance(word, str)]
    if wrong:
        row, place = next((row, at[0]) for row, ids in enumerate(window) if len(at := np.flatnonzero(ids == wrong[0])))
        _check_sentence([*[""] * int(place), window.words[wrong[0]]], first + row)
    return window


def map_windows(
    embed_window: Callable[[Item], list[np.ndarray]], stream: Iterable[Item], workers: int, device: torch.device
) -> Iterator[np.ndarray]:
    """Embed windows in order: here, in worker processes on a CPU, or in a thread beside the caller on a GPU."""
    if workers > 1 and device.type != "cpu":
        raise ConfigError(f"workers={workers} is for the CPU; on {device} use one, and a larger word_budget")
    if workers > 1:
        start = partial(torch.set_num_threads, max(1, torch.get_num_threads() // workers))
        embedded = map_processes(embed_window, stream, workers, workers + 1, start)
    elif device.type == "cpu":
        embedded = map(embed_window, stream)
    else:  # the device stays busy while the caller reads the next window
        embedded = map_threads(embed_window, stream)
    return (vectors for window in embedded for vectors in window)


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
    start: Callable[[list[Item]], Wait[Result]],
) -> list[Result]:
    """Compute one window in batches of similar size, and return the results in the items' order.

    A batch is started before the results of the previous one are waited for, so a device is never idle in between.
    """
    results: dict[int, Result] = {}
    running: deque[tuple[list[int], Wait[Result]]] = deque()

    def finish() -> None:
        batch, wait = running.popleft()
        results.update(zip(batch, wait(), strict=True))

    for batch in batches([size(item) for item in items], budget):
        running.append((batch, start([items[number] for number in batch])))
        if len(running) > 1:
            finish()
    while running:
        finish()
    return [results[number] for number in range(len(items))]
