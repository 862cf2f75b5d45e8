"""Safe reading of safetensors files: header, types and memory are checked before a tensor is read."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from polyseme.errors import FormatError
from polyseme.formats.budget import Budget, check_plain_file

LONGEST_HEADER = 8 << 20  # bytes, for some ten thousand tensors


def read_tensors(file: Path) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file by name; they stay in the mapped file until they are needed."""
    check_plain_file(file)
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
    if LONGEST_HEADER < length <= file.stat().st_size:
        raise FormatError(f"{file} has a header of {length:,} bytes; expected at most {LONGEST_HEADER:,}")
    budget = Budget(file)
    try:
        with safe_open(file, framework="pt") as stored:
            names = stored.keys()
            for name in names:
                budget.take_array(tuple(stored.get_slice(name).get_shape()), 4, f"tensor {name!r:.100}")
            return {name: stored.get_tensor(name) for name in names}
    except (SafetensorError, OSError, ValueError, TypeError, KeyError, RuntimeError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{file} cannot be read: {error}") from error


def check_finite(tensor: Tensor, what: str) -> None:
    """Check for NaN and infinity, which would spoil every vector."""
    # A sum is finite only if every term is, and needs no memory; a sum of finite terms may still overflow.
    if tensor.is_floating_point() and not torch.isfinite(tensor.sum()) and not torch.isfinite(tensor).all():
        raise FormatError(f"{what} holds values that are not finite (NaN or infinity); the file is damaged")
