"""Forward and backward pass over one window: its loss, and the gradient of every weight.

The two directions share the word vectors and the softmax, and nothing in between. So each runs its own forward and
backward pass, and both run side by side: a thread each on a CPU, a CUDA stream each on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from polyseme.kernels.reference import LstmState
from polyseme.model.bilm import BiLM, direction_state, read_layers
from polyseme.model.softmax import Head
from polyseme.training.loop.losses import Loss
from polyseme.training.loop.teacher import TeacherLoss
from polyseme.training.loop.windows import DIRECTIONS, Window, mix_seeds

Result = TypeVar("Result")

# Loss scaling: gradients of single words are tiny, and the LSTM of a GPU computes in float16 in both cases.
LOSS_SCALES = {"float16": 1 / 16, "bfloat16": 1 / 16}


class WindowResult(NamedTuple):
    """Loss of a window and the LSTM states after it."""

    loss: Tensor  # () mean loss of a prediction, in nats
    states: list[LstmState]  # of each direction
    distance: Tensor | None  # () mean cosine distance to the teacher's vectors, if there is a teacher


class Learner:
    """Computes the gradients of a biLM and its softmax head.

    Args:
        bilm: The model.
        head: The softmax over its top layer; both directions share it.
        loss: The training loss.
        dropout: Dropout rate of the input of each layer.
        precision: ``float32``, ``bfloat16`` or ``float16`` (autocast).
        teacher: The loss against a teacher's vectors, if there is one.
    """

    def __init__(
        self, bilm: BiLM, head: Head, loss: Loss, dropout: float, precision: str, teacher: TeacherLoss | None = None
    ) -> None:
        self.bilm, self.head, self.loss, self.teacher = bilm, head, loss, teacher
        self._dropout, self._precision = dropout, precision
        self.parameters: list[nn.Parameter] = [*bilm.parameters(), *head.parameters()]
        if teacher:
            self.parameters += teacher.parameters()
        device = self.parameters[0].device
        self._directions = DirectionRunner(device)
        # Both directions add to the head's gradient, and its products fill a GPU by themselves.
        self._run_losses = self._directions.run_in_turn if device.type == "cuda" else self._directions.run

    def initial_states(self, rows: int) -> list[LstmState]:
        """Zero LSTM states for so many rows, one for each direction."""
        return [direction_state(self.bilm, rows) for _ in range(DIRECTIONS)]

    def compute_gradients(
        self, window: Window, states: Sequence[LstmState], predictions: int, seed: int
    ) -> WindowResult:
        """Compute the gradient of the mean loss into ``.grad`` of every weight.

        Args:
            window: Input words and targets.
            states: LSTM state of each direction.
            predictions: Number of predictions over all processes, which the mean is over.
            seed: Random seed of the dropout.
        """
        scale = LOSS_SCALES.get(self._precision, 1 / predictions)
        for parameter in self.parameters:
            parameter.grad = None
        with self._autocast():
            vectors = [encode(window.characters, window.character_lengths, window.ids) for encode in self.bilm.inputs]
        leaves = [part.detach() for part in vectors]
        inputs = [leaves[way % len(leaves)][window.places[way]].requires_grad_() for way in range(DIRECTIONS)]

        def run_direction(way: int) -> tuple[list[Tensor], Tensor, LstmState]:
            dropout = self._make_dropout(mix_seeds(seed, way), inputs[way].device)
            before = _reset_rows(states[way], window.keep[way])
            with self._autocast():
                layers, after = read_layers(self.bilm, way, inputs[way], before, dropout)
                return layers, dropout(layers[-1]), after

        def loss_of_direction(way: int) -> tuple[Tensor, Tensor]:
            top = tops[way].detach().requires_grad_()
            loss = self.loss(top.flatten(0, 1), window.targets[way])
            (loss * scale).backward()
            assert top.grad is not None
            return loss.detach(), top.grad

        layers, tops, after = zip(*self._directions.run(run_direction), strict=True)
        losses, top_gradients = zip(*self._run_losses(loss_of_direction), strict=True)
        distance, taught = None, [([], []) for _ in range(DIRECTIONS)]
        if self.teacher and window.taught is not None and window.lessons is not None:
            distance, taught = self.teacher.gradients(layers, window.taught, window.lessons, scale * predictions)

        def back_through_direction(way: int) -> None:
            outputs, gradients = taught[way]
            torch.autograd.backward([tops[way], *outputs], [top_gradients[way], *gradients])

        with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):  # no TF32 in the backward pass either
            self._directions.run(back_through_direction)
        for number, part in enumerate(vectors):
            gradient = torch.zeros_like(part, dtype=torch.float32)
            for way in range(number, DIRECTIONS, len(vectors)):
                input_gradient = inputs[way].grad
                assert input_gradient is not None
                gradient.index_add_(0, window.places[way].flatten(), input_gradient.flatten(0, 1).float())
            part.backward(gradient.to(part.dtype))
        if scale * predictions != 1:
            for gradient in self.gradients():
                gradient.mul_(1 / (scale * predictions))
        return WindowResult(torch.stack(losses).sum() / predictions, list(after), distance)

    def gradients(self) -> list[Tensor]:
        """Gradients of the last window, in the order of the weights."""
        return [parameter.grad for parameter in self.parameters if parameter.grad is not None]

    def _autocast(self) -> torch.autocast:
        kind = next(self.bilm.parameters()).device.type
        return torch.autocast(kind, getattr(torch, self._precision), enabled=self._precision != "float32")

    def _make_dropout(self, seed: int, device: torch.device) -> Callable[[Tensor], Tensor]:
        """Dropout with a random generator of its own, since the directions run side by side."""
        if not self._dropout:
            return lambda vectors: vectors
        generator = torch.Generator(device).manual_seed(seed)
        kept = 1 - self._dropout
        return lambda vectors: vectors * torch.empty_like(vectors).bernoulli_(kept, generator=generator).div_(kept)


class DirectionRunner:
    """Runs the same work for both directions in parallel; on a GPU it returns once the work is queued."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def run(self, work: Callable[[int], Result]) -> list[Result]:
        """Run the work of each direction in parallel and collect the results; neither may write what the other uses."""
        if self._device.type == "cuda":
            return self._on_streams(work)
        threads = torch.get_num_threads()
        if threads < DIRECTIONS:
            return self.run_in_turn(work)
        torch.set_num_threads(threads // DIRECTIONS)
        try:
            return list(self._pool.map(work, range(DIRECTIONS)))
        finally:
            torch.set_num_threads(threads)

    def run_in_turn(self, work: Callable[[int], Result]) -> list[Result]:
        """Run the directions one after the other."""
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


def _reset_rows(state: LstmState, keep: Tensor) -> LstmState:
    """Zero the LSTM state of rows that are reset, and values that are not finite, which would otherwise stay."""
    kept = keep.unsqueeze(1)
    return LstmState(*(torch.where(torch.isfinite(part) & (kept > 0), part, 0.0) for part in state))
