"""The quickest way to embed with a biLM where it is: compiled loops on a CPU, large products on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import torch

from polyseme.backends.elmo.native import CompiledBiLM
from polyseme.backends.elmo.tensors import TensorBiLM
from polyseme.backends.elmo.word_table import WordTable
from polyseme.embedding.encoder import WORD_BUDGET
from polyseme.embedding.interfaces import EmbedSettings
from polyseme.errors import ConfigError
from polyseme.kernels import native
from polyseme.model.bilm import BiLM
from polyseme.text.word_encoder import WordEncoder

CACHE_WORDS = {"cpu": 20_000, "cuda": 250_000}
GPU_WORDS = 1 << 17  # at a time; more do not make it faster
GPU_BYTES = 256  # of memory for a word and dimension, on the safe side


class FastBiLM(Protocol):
    """A biLM's weights made ready for embedding, and the words that it has encoded so far."""

    table: WordTable

    def begin(self, sentences: Sequence[Sequence[str]], boundaries: bool, dtype: str) -> Callable[[], list[np.ndarray]]:
        """Begin to embed sentences, each fresh; what is returned waits for the arrays (L, words, D) and gives them."""
        ...

    def begin_running(self, documents: Sequence[Sequence[Sequence[str]]], dtype: str) -> Callable[[], list[np.ndarray]]:
        """The same for whole documents, boundary words among the words, state running on."""
        ...

    def embed_words(self, words: Sequence[str]) -> np.ndarray:
        """Context-free vectors (words, D)."""
        ...


def prepare(bilm: BiLM, words: WordEncoder, settings: EmbedSettings) -> FastBiLM | None:
    """Make weights ready; None where only the plain way will do."""
    kind = next(bilm.parameters())
    device = kind.device.type
    check_precision(settings.precision, device)
    if kind.dtype != torch.float32 or device not in CACHE_WORDS:
        return None
    cached = CACHE_WORDS[device] if settings.cache_words is None else settings.cache_words
    if device == "cuda":
        return TensorBiLM(bilm, words, precision=settings.precision, cache_words=cached)
    if native.library() is None:
        return None
    return CompiledBiLM(bilm, words, eight=settings.precision == "int8", cache_words=cached)


def can_travel(prepared: FastBiLM | None) -> bool:
    """Whether it can be copied or sent to another process."""
    return isinstance(prepared, CompiledBiLM)


def word_budget(bilm: BiLM) -> int:
    """Words computed at a time where nobody says otherwise: on a GPU what its free memory holds."""
    device = next(bilm.parameters()).device
    if device.type != "cuda":
        return WORD_BUDGET
    free, _ = torch.cuda.mem_get_info(device)
    return max(WORD_BUDGET, min(GPU_WORDS, free // (GPU_BYTES * bilm.config.dim)))


def check_precision(precision: str, device: str) -> None:
    """Refuse what cannot be computed on a device (``cpu``, ``cuda``)."""
    if precision == "int8" and device != "cpu":
        raise ConfigError(f"precision='int8' is for the CPU; on {device} use 'float16' or 'bfloat16'")
    if precision == "int8" and native.library() is None:
        raise ConfigError(
            "precision='int8' needs the compiled kernels, and this install has none for this processor; "
            "install polyseme again where there is a C compiler, or use 'float32'"
        )
    if precision not in ("float32", "int8") and device != "cuda":
        raise ConfigError(f"precision={precision!r} is for a GPU; on {device} use 'float32', or 'int8' on a CPU")
