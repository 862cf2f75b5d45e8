"""Weights as our own format stores them: fp32, fp16 or int8. Whatever it is, they come out as fp32.

In int8 each output of a matrix has its own scale, stored beside it as ``<name>.scale``: each word of a softmax, each
column of an LSTM's matrix.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from polyseme.errors import FormatError

Precision = Literal["fp32", "fp16", "int8"]
PRECISIONS: tuple[Precision, ...] = ("fp32", "fp16", "int8")
_TINY = torch.finfo(torch.float32).tiny


def pack(weights: Mapping[str, Tensor], precision: Precision) -> dict[str, Tensor]:
    """Tensors to be stored."""
    packed = {}
    for name, tensor in weights.items():
        weight = tensor.detach().cpu().float().contiguous()
        if precision == "int8" and weight.dim() > 1:
            scale = weight.abs().amax(dim=_inputs(name, weight), keepdim=True).clamp(min=_TINY) / 127
            packed[name] = (weight / scale).round().to(torch.int8)
            packed[f"{name}.scale"] = scale
        else:
            packed[name] = weight.half() if precision == "fp16" else weight
    return packed


def read_weights(file: Path) -> dict[str, Tensor]:
    """Stored tensors as they are computed with; fp32 stays in the file until it is needed."""
    try:
        stored = load_file(file)
    except (SafetensorError, OSError, ValueError) as error:
        raise FormatError(f"{file} cannot be read: {error}") from error
    weights = {}
    for name, weight in stored.items():
        if name.removesuffix(".scale") in stored and name.endswith(".scale"):
            continue
        scale = stored.get(f"{name}.scale")
        wide = weight.float()
        weights[name] = wide if scale is None else wide * scale
    return weights


def _inputs(name: str, weight: Tensor) -> tuple[int, ...]:
    """The axes that one output sums over, which share a scale: rows of an LSTM's matrix, the later axes of others."""
    return (0,) if name.startswith("lstms.") else tuple(range(1, weight.dim()))
