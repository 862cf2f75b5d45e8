"""Devices by name: cpu, cuda, mps, checked where a user names one."""

from __future__ import annotations

import torch

from polyseme.errors import ConfigError

_REMEDY = "use cpu, cuda for an NVIDIA GPU (cuda:1 for the second one) or mps for an Apple GPU"


def find_device(device: str | torch.device) -> torch.device:
    """The device of this name, after a check that something can be computed on it."""
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError):
        raise ConfigError(f"there is no device {device!r}; {_REMEDY}") from None
    try:
        torch.empty(1, device=found).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ConfigError(f"device {str(device)!r} cannot be used here: {str(error).splitlines()[0]}") from error
    return found
