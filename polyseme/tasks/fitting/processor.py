"""What a processor needs to be quick at small LSTMs."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_ARM = platform.machine().lower() in ("aarch64", "arm64")


@contextmanager
def quick_on_cpu() -> Iterator[None]:
    """On an ARM processor, keep oneDNN out: torch's LSTM and its gradient are 1.6 times as fast without it there."""
    before = torch.backends.mkldnn.enabled
    if _ARM:
        torch.backends.mkldnn.enabled = False
    try:
        yield
    finally:
        torch.backends.mkldnn.enabled = before
