"""A model out of a file, whatever the file: settings, weights under our own names, and how it reads words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from polyseme.errors import FormatError, nearest
from polyseme.model.bilm import BiLM
from polyseme.model.config import BiLMConfig
from polyseme.text.words import WordEncoder


@dataclass(frozen=True)
class StoredModel:
    """What every format is read into and written from."""

    config: BiLMConfig
    weights: Mapping[str, Tensor]  # named as in BiLM(config).state_dict()
    words: WordEncoder
    format: str  # what it was read from, for people to read
    precision: str = "fp32"  # how the weights were stored
    origin: str = ""  # what it was converted from, before that

    def build(self) -> BiLM:
        """The network with these weights, ready to embed."""
        model = _skeleton(self.config)
        model.load_state_dict(dict(self.weights), assign=True)
        return model.eval()


def check_weights(config: BiLMConfig, weights: Mapping[str, Tensor], where: str) -> None:
    """Refuse missing, unknown, misshapen or non-finite tensors, by name."""
    expected = {name: tuple(tensor.shape) for name, tensor in _skeleton(config).state_dict().items()}
    for name in weights:
        if name not in expected:
            raise FormatError(f"{where}: there is a tensor {name!r} that this model has no place for")
    for name, shape in expected.items():
        if name not in weights:
            raise FormatError(f"{where}: the tensor {name!r} is missing.{nearest(name, weights)}")
        if tuple(weights[name].shape) != shape:
            raise FormatError(f"{where}: {name!r} should have shape {shape}, not {tuple(weights[name].shape)}")
        check_finite(weights[name], f"{where}: {name!r}")


def check_finite(tensor: Tensor, what: str) -> None:
    """A weight that is not a number would poison every vector; say so before it does."""
    if not torch.isfinite(tensor).all():
        raise FormatError(f"{what} holds values that are not finite (NaN or infinity); the file is damaged")


class _WithoutStart(TorchFunctionMode):
    """Leaves out the start values of weights, which are about to be replaced; on "meta" they would load a compiler."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
        if getattr(func, "__module__", None) == "torch.nn.init":
            return (kwargs or {}).get("tensor", args[0] if args else None)
        return func(*args, **(kwargs or {}))


def _skeleton(config: BiLMConfig) -> BiLM:
    with torch.device("meta"), _WithoutStart():
        return BiLM(config)
