"""Work on a GPU that is recorded once and then played at one stroke (CUDA graphs), for a few short sentences."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from polyseme.text.word_encoder import BOUNDARIES

MOST_WORDS = 256  # at a time; more keep a GPU busy without
MULTIPLE = 4  # of words, to which sentences are padded
MOST_RECORDINGS = 64


class Recording(NamedTuple):
    """A graph and the memory that it works on."""

    graph: torch.cuda.CUDAGraph
    hidden: Tensor  # (W, words, P) put in before it is played
    places: Tensor  # (W, rows · steps) likewise
    outputs: list[Tensor]  # (W, rows · steps, P) a layer, there after it was played


class Recordings:
    """What is launched for a few short sentences, recorded once for each size and then played at one stroke.

    Sentences are padded to a common length, a multiple of a few words, so that sizes recur.
    """

    def __init__(self, read: Callable[[Tensor, Tensor, list[int]], Iterable[Tensor]]) -> None:
        self._read = read
        self._recorded: OrderedDict[tuple[int, int], Recording] = OrderedDict()
        self._seen: set[tuple[int, int]] = set()

    def read(self, hidden: Tensor, places: Tensor, sizes: list[int]) -> list[Tensor]:
        """As `TensorBiLM._read_all` for sentences that are begun."""
        rows, steps = sizes[0], -(-len(sizes) // MULTIPLE) * MULTIPLE
        key = (rows, steps)
        recording = self._recorded.get(key)
        if recording is None:
            if key not in self._seen:  # it may be the small rest of something large, which does not come again
                self._seen.add(key)
                return list(self._read(hidden, places, sizes))
            recording = self._recorded[key] = self._record(hidden, rows, steps)
            if len(self._recorded) > MOST_RECORDINGS:
                self._recorded.popitem(last=False)
        self._recorded.move_to_end(key)
        # Packed words without padding, as rows of packed words with padding.
        there = torch.cat([torch.arange(size) + step * rows for step, size in enumerate(sizes)])
        there = there.pin_memory().to(hidden.device, non_blocking=True)
        recording.hidden[:, : hidden.shape[1]] = hidden
        recording.places[:, there] = places
        recording.graph.replay()
        return [output[:, there] for output in recording.outputs]

    def _record(self, hidden: Tensor, rows: int, steps: int) -> Recording:
        still = hidden.new_zeros(len(hidden), MOST_WORDS + BOUNDARIES, hidden.shape[2])
        places = torch.zeros(len(hidden), rows * steps, dtype=torch.int32, device=hidden.device)
        graph, stream, present = torch.cuda.CUDAGraph(), torch.cuda.Stream(), torch.cuda.current_stream()
        stream.wait_stream(present)
        with torch.cuda.stream(stream):
            list(self._read(still, places, [rows] * steps))  # libraries prepare themselves: that cannot be recorded
            stream.synchronize()
            graph.capture_begin(capture_error_mode="thread_local")
            outputs = list(self._read(still, places, [rows] * steps))
            graph.capture_end()
        present.wait_stream(stream)
        return Recording(graph, still, places, outputs)
