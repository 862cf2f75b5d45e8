"""CUDA-graph replay for small batches: the launches of a few short sentences captured once for each shape."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from polyseme.text.word_encoder import BOUNDARIES

MOST_WORDS = 256  # at a time; more keep a GPU busy without
MULTIPLE = 4  # of words, to which sentences are padded
MOST_GRAPHS = 64


class CapturedGraph(NamedTuple):
    """A captured CUDA graph and the memory that it works on."""

    graph: torch.cuda.CUDAGraph
    hidden: Tensor  # (W, words, P) written before a replay
    places: Tensor  # (W, rows · steps) likewise
    outputs: list[Tensor]  # (W, rows · steps, P) a layer, there after a replay


class CudaGraphs:
    """CUDA graphs by batch shape, the least recently used dropped first.

    Sentences are padded to a common length, a multiple of a few words, so that shapes recur.
    """

    def __init__(self, read: Callable[[Tensor, Tensor, list[int]], Iterable[Tensor]]) -> None:
        self._read = read
        self._captured: OrderedDict[tuple[int, int], CapturedGraph] = OrderedDict()
        self._seen: set[tuple[int, int]] = set()

    def read(self, hidden: Tensor, places: Tensor, sizes: list[int]) -> list[Tensor]:
        """As `StackedLstm.read` for sentences after their first boundary word."""
        rows, steps = sizes[0], -(-len(sizes) // MULTIPLE) * MULTIPLE
        key = (rows, steps)
        captured = self._captured.get(key)
        if captured is None:
            if key not in self._seen:  # it may be the small rest of something large, which does not come again
                self._seen.add(key)
                return list(self._read(hidden, places, sizes))
            captured = self._captured[key] = self._capture(hidden, rows, steps)
            if len(self._captured) > MOST_GRAPHS:
                self._captured.popitem(last=False)
        self._captured.move_to_end(key)
        # Packed words without padding, as rows of packed words with padding.
        there = torch.cat([torch.arange(size) + step * rows for step, size in enumerate(sizes)])
        there = there.pin_memory().to(hidden.device, non_blocking=True)
        captured.hidden[:, : hidden.shape[1]] = hidden
        captured.places[:, there] = places
        captured.graph.replay()
        return [output[:, there] for output in captured.outputs]

    def _capture(self, hidden: Tensor, rows: int, steps: int) -> CapturedGraph:
        still = hidden.new_zeros(len(hidden), MOST_WORDS + BOUNDARIES, hidden.shape[2])
        places = torch.zeros(len(hidden), rows * steps, dtype=torch.int32, device=hidden.device)
        graph, stream, present = torch.cuda.CUDAGraph(), torch.cuda.Stream(), torch.cuda.current_stream()
        stream.wait_stream(present)
        with torch.cuda.stream(stream):
            list(
                self._read(still, places, [rows] * steps)
            )  # libraries initialise themselves here, which cannot be captured
            stream.synchronize()
            graph.capture_begin(capture_error_mode="thread_local")
            outputs = list(self._read(still, places, [rows] * steps))
            graph.capture_end()
        present.wait_stream(stream)
        return CapturedGraph(graph, still, places, outputs)
