"""Data-parallel training under torchrun: each process reads its own rows, and gradients are summed (all-reduce)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import Tensor
from torch import distributed as dist

from polyseme.embedding.device import find_device
from polyseme.errors import ConfigError, TrainingError


@dataclass(frozen=True)
class ProcessGroup:
    """The process group of a run, seen from this process; a single process needs no torchrun."""

    rank: int = 0
    count: int = 1

    @property
    def is_leader(self) -> bool:
        """Whether this is rank 0, the process that writes files and prints."""
        return self.rank == 0

    def own_rows(self, rows: int) -> slice:
        """The slice of a step's rows that this process reads."""
        if rows % self.count:
            raise ConfigError(f"training.rows ({rows}) must be a multiple of the number of processes ({self.count})")
        each = rows // self.count
        return slice(self.rank * each, (self.rank + 1) * each)

    def sum(self, tensors: Iterable[Tensor]) -> None:
        """All-reduce: replace each tensor by its sum over all processes, in one exchange."""
        tensors = list(tensors)
        if self.count == 1 or not tensors:
            return
        joined = torch.cat([tensor.flatten() for tensor in tensors])
        with _explain_lost_process():
            dist.all_reduce(joined)
        for tensor, part in zip(tensors, joined.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(part.view_as(tensor))

    def any(self, flags: Sequence[bool], device: torch.device) -> list[bool]:
        """Which flags are set in any process; the answer is the same in all of them."""
        if self.count == 1:
            return list(flags)
        votes = torch.tensor(flags, dtype=torch.float32, device=device)
        self.sum([votes])
        return [vote > 0 for vote in votes.tolist()]

    def wait(self) -> None:
        """Barrier: wait until all processes are here."""
        if self.count > 1:
            with _explain_lost_process():
                dist.barrier()

    def gather(self, tensor: Tensor, dim: int) -> Tensor:
        """All-gather: the tensors of all processes, concatenated along an axis, in all of them."""
        if self.count == 1:
            return tensor
        parts = [torch.empty_like(tensor) for _ in range(self.count)]
        with _explain_lost_process():
            dist.all_gather(parts, tensor.contiguous())
        return torch.cat(parts, dim=dim)


@contextmanager
def _explain_lost_process() -> Iterator[None]:
    """Turn the failure of a collective operation into an error; the process that ended has printed the reason."""
    try:
        yield
    except RuntimeError as error:
        raise TrainingError("another process of this run has ended; its own message says why") from error


def is_leader() -> bool:
    """Whether this process is rank 0 of what torchrun started; works before the process group is joined."""
    return os.environ.get("RANK", "0") == "0"


def join_process_group(name: str) -> tuple[ProcessGroup, torch.device]:
    """Join the process group that torchrun started, if it did, and choose the device of this process."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        return ProcessGroup(), find_device(name)
    on_gpus = name.startswith("cuda")
    device = find_device(f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if on_gpus else name)
    if on_gpus:
        torch.cuda.set_device(device)
    if not dist.is_initialized():
        timeout = timedelta(hours=12)  # the leader prepares the text and evaluates; the others wait
        dist.init_process_group("nccl" if on_gpus else "gloo", timeout=timeout)
    return ProcessGroup(dist.get_rank(), dist.get_world_size()), device


def leave_process_group() -> None:
    """Leave the process group, where there is one."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()
