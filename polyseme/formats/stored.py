"""Stored models: what every file format is read into and written from, and weights in fp32, fp16 or int8.

In int8 each output of a matrix has its own scale, stored beside it as ``<name>.scale``: each word of a softmax, each
column of an LSTM's matrix. Whatever the stored precision, weights are fp32 once they are read.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from polyseme.errors import FormatError, nearest
from polyseme.formats.tensor_file import check_finite, read_tensors
from polyseme.model.bilm import BiLM
from polyseme.model.config import BiLMConfig
from polyseme.model.softmax import Head, SoftmaxConfig, build_softmax
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.word_encoder import WordEncoder

Precision = Literal["fp32", "fp16", "int8"]
PRECISIONS: tuple[Precision, ...] = ("fp32", "fp16", "int8")
_TINY = torch.finfo(torch.float32).tiny
_STORED = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int8)

WORTH_RELEASING = 1 << 20  # bytes
_MADV_PAGEOUT = 21  # drop what is unchanged in a file, keep everything else

Network = TypeVar("Network", bound=nn.Module)


@dataclass(frozen=True)
class StoredModel:
    """Stored model: what every file format is read into and written from."""

    config: BiLMConfig
    weights: Mapping[str, Tensor]  # named as in BiLM(config).state_dict()
    words: WordEncoder
    format: str  # what it was read from, to show to people
    precision: Precision = "fp32"  # how the weights were stored
    origin: str = ""  # what it was converted from, before that
    softmax: SoftmaxConfig | None = None  # the softmax head stored beside it, not loaded

    def build(self) -> BiLM:
        """Build the network with these weights, ready to embed."""
        return _with_weights(build_on_meta(lambda: BiLM(self.config)), self.weights)


@dataclass(frozen=True)
class StoredSoftmax:
    """Stored softmax: the head of a language model, read from a file or to be written."""

    config: SoftmaxConfig
    weights: Mapping[str, Tensor]  # named as in build_softmax(config).state_dict()
    vocabulary: Vocabulary

    def build(self) -> Head:
        """Build the softmax module with these weights."""
        return _with_weights(build_on_meta(lambda: build_softmax(self.config)), self.weights)


def check_weights(config: BiLMConfig | SoftmaxConfig, weights: Mapping[str, Tensor], where: str) -> None:
    """Check the weights: refuse missing, unknown, misshapen or non-finite tensors, by name."""
    check_fit(
        build_on_meta(lambda: BiLM(config) if isinstance(config, BiLMConfig) else build_softmax(config)), weights, where
    )


def check_fit(network: nn.Module, weights: Mapping[str, Tensor], where: str) -> None:
    """Check weights against a network, be it on "meta": the same names and shapes, and finite numbers."""
    expected = network.state_dict()
    for name in weights:
        if name not in expected:
            raise FormatError(f"{where}: unexpected tensor {name!r:.100}, which this model does not have")
    for name, tensor in expected.items():
        if name not in weights:
            raise FormatError(f"{where}: the tensor {name!r} is missing.{nearest(name, weights)}")
        if weights[name].shape != tensor.shape:
            shapes = f"{tuple(tensor.shape)}, not {tuple(weights[name].shape)}"
            raise FormatError(f"{where}: {name!r} should have shape {shapes}")
        check_finite(weights[name].to(tensor.dtype), f"{where}: {name!r}")


def check_words(config: BiLMConfig, words: WordEncoder, where: str) -> None:
    """Check that every id of the word encoder has a row in the tables of the model."""
    read = config.input.characters
    if read and words.characters and words.characters.size != read.num_characters:
        raise FormatError(
            f"{where}: the model has {read.num_characters:,} characters, but its words are spelled with "
            f"{words.characters.size:,}"
        )
    if words.vocabulary is not None and len(words.vocabulary) != config.input.num_words:
        raise FormatError(
            f"{where}: the model has {config.input.num_words:,} words, but its vocabulary {len(words.vocabulary):,}"
        )
    if words.longest is not None and (type(words.longest) is not int or words.longest < 1):
        raise FormatError(f"{where}: vocabulary.longest should be a number of characters, not {words.longest!r:.60}")


def pack(weights: Mapping[str, Tensor], precision: Precision) -> dict[str, Tensor]:
    """Pack weights for storage in fp32, fp16 or int8 (with scales)."""
    packed = {}
    for name, tensor in weights.items():
        weight = tensor.detach().cpu().float().contiguous()
        if precision == "int8" and weight.dim() > 1:
            scale = weight.abs().amax(dim=_input_axes(name, weight), keepdim=True).clamp(min=_TINY) / 127
            packed[name] = (weight / scale).round().to(torch.int8)
            packed[f"{name}.scale"] = scale
        else:
            packed[name] = weight.half() if precision == "fp16" else weight
    return packed


def read_weights(file: Path) -> dict[str, Tensor]:
    """Read stored weights as fp32; those stored so stay in the mapped file until they are needed."""
    stored = read_tensors(file)
    weights = {}
    for name, weight in stored.items():
        if name.removesuffix(".scale") in stored and name.endswith(".scale"):
            continue
        if weight.dtype not in _STORED:
            raise FormatError(f"{file}: {name!r:.100} should hold floating-point numbers or int8, not {weight.dtype}")
        weights[name] = _scaled(weight, stored.get(f"{name}.scale"), f"{file}: {name!r:.100}")
    return weights


def _scaled(weight: Tensor, scale: Tensor | None, where: str) -> Tensor:
    if scale is None:
        return weight.float()
    expected = [(1, size) for size in weight.shape]
    if scale.dim() != weight.dim() or any(size not in pair for size, pair in zip(scale.shape, expected, strict=True)):
        raise FormatError(
            f"{where} has shape {tuple(weight.shape)}, but its scales have {tuple(scale.shape)}; expected one an output"
        )
    return weight.float().mul_(scale) if weight.dtype == torch.int8 else (weight.float() * scale).float()


def release_mapped_pages(*tensors: Tensor) -> None:
    """Give pages of memory-mapped tensors back to the system (madvise); they are read again when they are needed.

    Nothing is lost: memory that was changed, or never came from a file, stays as it is. Where the system cannot do it,
    nothing happens.
    """
    advise = _madvise()
    for tensor in tensors:
        size = tensor.numel() * tensor.element_size()
        if advise is None or tensor.device.type != "cpu" or size < WORTH_RELEASING or not tensor.is_contiguous():
            continue
        page, address = mmap.PAGESIZE, tensor.data_ptr()
        first, end = -(-address // page) * page, (address + size) // page * page
        advise(first, end - first, _MADV_PAGEOUT)


class _SkipInitialization(TorchFunctionMode):
    """Skips weight initialisation, whose values are replaced anyway; on "meta" it would load a compiler."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
        if getattr(func, "__module__", None) == "torch.nn.init":
            return (kwargs or {}).get("tensor", args[0] if args else None)
        return func(*args, **(kwargs or {}))


def build_on_meta(build: Callable[[], Network]) -> Network:
    """Build a network that has names and shapes but no numbers, and takes no memory."""
    with torch.device("meta"), _SkipInitialization():
        return build()


def _with_weights(network: Network, weights: Mapping[str, Tensor]) -> Network:
    network.load_state_dict(dict(weights), assign=True)
    return network.eval()


def _input_axes(name: str, weight: Tensor) -> tuple[int, ...]:
    """Input axes of a matrix, which share a scale: rows of an LSTM's matrix, the later axes of others."""
    return (0,) if name.startswith("lstms.") else tuple(range(1, weight.dim()))


@functools.cache
def _madvise() -> Callable[[int, int, int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    function = ctypes.CDLL(None).madvise
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return function
