"""Several processes that train one model, as torchrun starts them: each reads its rows, and gradients are summed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import Tensor
from torch import distributed as dist

from polyseme.errors import ConfigError, TrainingError


@dataclass(frozen=True)
class ProcessGroup:
    """This process among all of them. One alone needs no torchrun and starts nothing."""

    rank: int = 0
    count: int = 1

    @property
    def is_leader(self) -> bool:
        """Whether this is the process that writes files and speaks."""
        return self.rank == 0

    def share(self, rows: int) -> slice:
        """The rows of this process."""
        if rows % self.count:
            raise ConfigError(f"training.rows ({rows}) must be a multiple of the {self.count} processes")
        each = rows // self.count
        return slice(self.rank * each, (self.rank + 1) * each)

    def sum(self, tensors: Iterable[Tensor]) -> None:
        """Replace each tensor by the sum over all processes, in one exchange."""
        tensors = list(tensors)
        if self.count == 1 or not tensors:
            return
        joined = torch.cat([tensor.flatten() for tensor in tensors])
        with _together():
            dist.all_reduce(joined)
        for tensor, part in zip(tensors, joined.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(part.view_as(tensor))

    def any(self, wishes: Sequence[bool], device: torch.device) -> list[bool]:
        """Which of these somebody wants; the same answer in all processes."""
        if self.count == 1:
            return list(wishes)
        votes = torch.tensor(wishes, dtype=torch.float32, device=device)
        self.sum([votes])
        return [vote > 0 for vote in votes.tolist()]

    def wait(self) -> None:
        """Until all are here."""
        if self.count > 1:
            with _together():
                dist.barrier()

    def gather(self, tensor: Tensor, dim: int) -> Tensor:
        """The tensors of all processes, joined along an axis, in all of them."""
        if self.count == 1:
            return tensor
        parts = [torch.empty_like(tensor) for _ in range(self.count)]
        with _together():
            dist.all_gather(parts, tensor.contiguous())
        return torch.cat(parts, dim=dim)


@contextmanager
def _together() -> Iterator[None]:
    """What needs all processes cannot be when one of them has ended; which has said why."""
    try:
        yield
    except RuntimeError as error:
        raise TrainingError("another process of this run has ended") from error


def is_leader() -> bool:
    """Whether this process speaks for all that torchrun started; it may be asked before they are joined."""
    return os.environ.get("RANK", "0") == "0"


def join_process_group(name: str) -> tuple[ProcessGroup, torch.device]:
    """Join the processes that torchrun started, if it did; and the device of this one."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        return ProcessGroup(), _usable(name)
    on_gpus = name.startswith("cuda")
    device = _usable(f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if on_gpus else name)
    if on_gpus:
        torch.cuda.set_device(device)
    if not dist.is_initialized():
        patience = timedelta(hours=12)  # the leader prepares the text and evaluates; the others wait
        dist.init_process_group("nccl" if on_gpus else "gloo", timeout=patience)
    return ProcessGroup(dist.get_rank(), dist.get_world_size()), device


def leave_process_group() -> None:
    """Part from the others."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


def _usable(name: str) -> torch.device:
    """The device of this name, if it computes anything here."""
    try:
        found = torch.device(name)
        torch.empty(1, device=found).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ConfigError(f"device {name!r} cannot be used here: {str(error).splitlines()[0]}") from error
    return found
