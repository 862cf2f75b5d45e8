"""One step of learning: the loss of a window, and the gradient of every weight.

The two directions know nothing of each other between the words' vectors, which they share, and the words to predict. So
each is worked through by itself, forward and back, side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from polyseme.kernels.reference import LstmState
from polyseme.model.bilm import BiLM, direction_state, read_direction
from polyseme.model.softmax import Head
from polyseme.training.loop.losses import Loss
from polyseme.training.loop.windows import DIRECTIONS, Window, mix_seeds

Result = TypeVar("Result")

# Gradients of single words are tiny. A GPU's LSTM computes in float16 in both cases, where they must not vanish.
SCALES = {"float16": 1 / 16, "bfloat16": 1 / 16}


class WindowResult(NamedTuple):
    """What came of a window."""

    loss: Tensor  # () mean loss of a prediction, in nats
    states: list[LstmState]  # where each direction stands now


class Learner:
    """A biLM and its head, and how they learn.

    Args:
        bilm: The model.
        head: What predicts words from its top layer; both directions share it.
        loss: How predictions are measured.
        dropout: Share of what each layer reads that is left out.
        precision: Of the computation.
    """

    def __init__(self, bilm: BiLM, head: Head, loss: Loss, dropout: float, precision: str) -> None:
        self.bilm, self.head, self.loss = bilm, head, loss
        self._dropout, self._precision = dropout, precision
        self.parameters: list[nn.Parameter] = [*bilm.parameters(), *head.parameters()]
        device = self.parameters[0].device
        self._directions = DirectionRunner(device)
        # Both directions add to the head's gradient, and its products fill a GPU by themselves.
        self._run_losses = self._directions.run_in_turn if device.type == "cuda" else self._directions.run

    def initial_states(self, rows: int) -> list[LstmState]:
        """Nothing read yet."""
        return [direction_state(self.bilm, rows) for _ in range(DIRECTIONS)]

    def compute_gradients(
        self, window: Window, states: Sequence[LstmState], predictions: int, seed: int
    ) -> WindowResult:
        """Leave the gradient of the mean loss in ``.grad`` of every weight.

        Args:
            window: What to read and to predict.
            states: Where each direction stands.
            predictions: How many there are in all processes: what the mean is over.
            seed: Of the dropout.
        """
        scale = SCALES.get(self._precision, 1 / predictions)
        for parameter in self.parameters:
            parameter.grad = None
        with self._reduced():
            vectors = [encode(window.characters, window.character_lengths, window.ids) for encode in self.bilm.inputs]
        leaves = [part.detach() for part in vectors]
        inputs = [leaves[way % len(leaves)][window.places[way]].requires_grad_() for way in range(DIRECTIONS)]

        def reading(way: int) -> tuple[Tensor, LstmState]:
            drop = self._dropping(mix_seeds(seed, way), inputs[way].device)
            with self._reduced():
                return read_direction(self.bilm, way, inputs[way], _kept(states[way], window.keep[way]), drop)

        def judging(way: int) -> tuple[Tensor, Tensor]:
            top = tops[way].detach().requires_grad_()
            loss = self.loss(top.flatten(0, 1), window.targets[way])
            (loss * scale).backward()
            assert top.grad is not None
            return loss.detach(), top.grad

        tops, after = zip(*self._directions.run(reading), strict=True)
        losses, changes = zip(*self._run_losses(judging), strict=True)
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):  # float32 is float32, on the way back too
            self._directions.run(lambda way: tops[way].backward(changes[way]))
        for number, part in enumerate(vectors):
            change = torch.zeros_like(part, dtype=torch.float32)
            for way in range(number, DIRECTIONS, len(vectors)):
                wanted = inputs[way].grad
                assert wanted is not None
                change.index_add_(0, window.places[way].flatten(), wanted.flatten(0, 1).float())
            part.backward(change.to(part.dtype))
        if scale * predictions != 1:
            for gradient in self.gradients():
                gradient.mul_(1 / (scale * predictions))
        return WindowResult(torch.stack(losses).sum() / predictions, list(after))

    def gradients(self) -> list[Tensor]:
        """Those of the last window, in the order of the weights."""
        return [parameter.grad for parameter in self.parameters if parameter.grad is not None]

    def _reduced(self) -> torch.autocast:
        kind = next(self.bilm.parameters()).device.type
        return torch.autocast(kind, getattr(torch, self._precision), enabled=self._precision != "float32")

    def _dropping(self, seed: int, device: torch.device) -> Callable[[Tensor], Tensor]:
        """Dropout by a generator of its own: directions draw side by side."""
        if not self._dropout:
            return lambda vectors: vectors
        generator = torch.Generator(device).manual_seed(seed)
        kept = 1 - self._dropout
        return lambda vectors: vectors * torch.empty_like(vectors).bernoulli_(kept, generator=generator).div_(kept)


class DirectionRunner:
    """Work for each direction. Whoever asks goes on when all of it is done, or on a GPU, is under way."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def run(self, work: Callable[[int], Result]) -> list[Result]:
        """What each direction's work gave; the work of one must not touch what the other's writes."""
        if self._device.type == "cuda":
            return self._on_streams(work)
        threads = torch.get_num_threads()
        if threads < DIRECTIONS:
            return self.run_in_turn(work)
        torch.set_num_threads(threads // DIRECTIONS)  # of each direction
        try:
            return list(self._pool.map(work, range(DIRECTIONS)))
        finally:
            torch.set_num_threads(threads)

    def run_in_turn(self, work: Callable[[int], Result]) -> list[Result]:
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


def _kept(state: LstmState, keep: Tensor) -> LstmState:
    """The state with the rows that forget at zero; what is not finite is forgotten too, for it would never leave."""
    kept = keep.unsqueeze(1)
    return LstmState(*(torch.where(torch.isfinite(part) & (kept > 0), part, 0.0) for part in state))
