"""A model out of a file, whatever the file: settings, weights under our own names, and how it reads words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from polyseme.errors import FormatError, nearest
from polyseme.formats.packing import Precision
from polyseme.model.bilm import BiLM
from polyseme.model.config import BiLMConfig
from polyseme.model.softmax import Head, SoftmaxConfig, build_softmax
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.words import WordEncoder

Config = TypeVar("Config")
Network = TypeVar("Network", bound=nn.Module)


@dataclass(frozen=True)
class StoredModel:
    """What every format is read into and written from."""

    config: BiLMConfig
    weights: Mapping[str, Tensor]  # named as in BiLM(config).state_dict()
    words: WordEncoder
    format: str  # what it was read from, for people to read
    precision: Precision = "fp32"  # how the weights were stored
    origin: str = ""  # what it was converted from, before that
    softmax: SoftmaxConfig | None = None  # the head that lies beside it, unread

    def build(self) -> BiLM:
        """The network with these weights, ready to embed."""
        return _filled(_skeleton(self.config, BiLM), self.weights)


@dataclass(frozen=True)
class StoredSoftmax:
    """The head of a language model, out of a file or on its way into one."""

    config: SoftmaxConfig
    weights: Mapping[str, Tensor]  # named as in build_softmax(config).state_dict()
    vocabulary: Vocabulary

    def build(self) -> Head:
        """The module with these weights."""
        return _filled(_skeleton(self.config, build_softmax), self.weights)


def check_weights(config: BiLMConfig | SoftmaxConfig, weights: Mapping[str, Tensor], where: str) -> None:
    """Refuse missing, unknown, misshapen or non-finite tensors, by name."""
    network = _skeleton(config, BiLM) if isinstance(config, BiLMConfig) else _skeleton(config, build_softmax)
    expected = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
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


def _skeleton(config: Config, build: Callable[[Config], Network]) -> Network:
    with torch.device("meta"), _WithoutStart():
        return build(config)


def _filled(network: Network, weights: Mapping[str, Tensor]) -> Network:
    network.load_state_dict(dict(weights), assign=True)
    return network.eval()
