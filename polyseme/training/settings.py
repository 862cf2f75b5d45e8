"""What a training run is, as frozen settings. A preset is a function; a TOML file or ``--set`` changes some."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from polyseme.errors import ConfigError, nearest
from polyseme.files import read_json
from polyseme.model import config as model
from polyseme.model.config import BiLMConfig, from_dict
from polyseme.training.shards.prepare import PrepareSettings

PRESETS = ("tiny", "small", "medium", "original")
RECIPES = ("modern", "bilm-tf")
TOML_SINCE = "Python 3.11"


@dataclass(frozen=True)
class LossSettings:
    """How predictions are measured, and over which words.

    Attributes:
        kind: ``sampled``, ``full`` or ``adaptive``.
        words: Size of the vocabulary, or of what is added to a model's; rarer words count as one, ``<UNK>``, when they
            are to be predicted.
        min_count: How often a word must occur to be in it.
        samples: Words that a sampled softmax scores; as many as there are, and it is the full one.
        weighting: What they are drawn by: ``unigram`` (frequency to the power of 3/4) or ``log-uniform`` (rank).
        cutoffs: Where the clusters of an adaptive softmax begin.
    """

    kind: Literal["sampled", "full", "adaptive"] = "sampled"
    words: int = 100_000
    min_count: int = 2
    samples: int = 8192
    weighting: Literal["unigram", "log-uniform"] = "unigram"
    cutoffs: tuple[int, ...] = (4000, 20_000)

    def __post_init__(self) -> None:
        _one_of(self, "kind", "sampled", "full", "adaptive")
        _one_of(self, "weighting", "unigram", "log-uniform")
        _at_least(self, words=4, min_count=1, samples=1)
        if any(one >= other for one, other in pairwise((0, *self.cutoffs))):
            raise ConfigError(f"cutoffs must be above 0 and rise; got {list(self.cutoffs)}")


@dataclass(frozen=True)
class LoopSettings:
    """How the text is read, and how the weights follow.

    Attributes:
        epochs: How often all of the text is read.
        steps: How many steps are taken, instead.
        rows: Places in the text that are read side by side, over all processes.
        window: Words that each of them goes on by in a step; gradients stop at its edge.
        fresh_rows: Share of the rows that begin every window at the beginning of a sentence with nothing remembered,
            as sentences are embedded; the others carry their state on.
        forget: Share of the other rows that forget their state at a window's edge.
        forget_documents: Rows forget their state at the edge of the window in which a document ended.
        dropout: Share of each LSTM layer's input and of the top layer.
        optimizer: ``adam``, or ``adagrad`` as published.
        learning_rate: At its highest.
        warm_up: Share of the steps over which the learning rate rises.
        decay: How it falls afterwards: ``cosine``, ``linear`` or ``none``.
        floor: What it falls to, as a share of its highest.
        clip: Longest gradient, all weights taken together.
        loss_factor: Multiplies the loss; matters to Adagrad, which knows no scale of its own.
        precision: Of the computation: ``float32``; ``bfloat16`` or ``float16`` on a GPU, whose LSTM computes in
            ``float16`` in both cases.
        seed: Of everything that is drawn at random.
        evaluations: How often the held-out text is looked at during a run.
        held_out_tokens: How much of it, on the way; all of it at the end.
        save_seconds: How often a checkpoint is written.
        patience: Steps in a row that may come to nothing (no finite gradient) before the run stops.
    """

    epochs: float = 5.0
    steps: int | None = None
    rows: int = 64
    window: int = 32
    fresh_rows: float = 0.5
    forget: float = 0.05
    forget_documents: bool = False
    dropout: float = 0.1
    optimizer: Literal["adam", "adagrad"] = "adam"
    learning_rate: float = 4e-3
    warm_up: float = 0.02
    decay: Literal["cosine", "linear", "none"] = "cosine"
    floor: float = 0.02
    clip: float = 1.0
    loss_factor: float = 1.0
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    seed: int = 0
    evaluations: int = 10
    held_out_tokens: int = 20_000
    save_seconds: float = 300.0
    patience: int = 20

    def __post_init__(self) -> None:
        _one_of(self, "optimizer", "adam", "adagrad")
        _one_of(self, "decay", "cosine", "linear", "none")
        _one_of(self, "precision", "float32", "bfloat16", "float16")
        _at_least(self, rows=1, window=1, patience=1, evaluations=1, held_out_tokens=1, seed=0)
        if self.steps is not None:
            _at_least(self, steps=1)
        for name in ("epochs", "learning_rate", "clip", "loss_factor"):
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigError(f"{name} must be above 0 and finite; got {getattr(self, name)}")
        for name in ("fresh_rows", "forget", "dropout", "warm_up", "floor"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name} is a share from 0 to 1; got {getattr(self, name)}")
        if not self.save_seconds >= 0:
            raise ConfigError(f"save_seconds must be 0 or more; got {self.save_seconds}")
        if self.seed >= 1 << 63:
            raise ConfigError(f"seed must be below 2^63; got {self.seed}")
        if self.dropout == 1:
            raise ConfigError("dropout 1 drops everything; give a share below 1")


@dataclass(frozen=True)
class TrainSettings:
    """A whole run but for its text: what is saved beside the model, and what ``--set`` and a file change.

    Attributes:
        model: Its shape.
        characters: What words are spelt by: ``bytes`` of UTF-8, as in all published models, or ``code points``, of
            which a script beyond Latin needs half or a third as many. The commonest of the text get a number each.
        data: How the text is read.
        loss: How predictions are measured.
        training: How the weights follow.
    """

    model: BiLMConfig
    characters: Literal["bytes", "code points"] = "bytes"
    data: PrepareSettings = field(default_factory=PrepareSettings)
    loss: LossSettings = field(default_factory=LossSettings)
    training: LoopSettings = field(default_factory=LoopSettings)

    def __post_init__(self) -> None:
        _one_of(self, "characters", "bytes", "code points")


def preset(name: str, device: str = "cpu", recipe: str = "modern") -> TrainSettings:
    """Settings that suit a size of model on a kind of device (``cpu``, ``cuda``)."""
    if name not in PRESETS:
        raise ConfigError(f"there is no preset {name!r}; there are {', '.join(PRESETS)}.{nearest(name, PRESETS)}")
    if recipe not in RECIPES:
        raise ConfigError(f"there is no recipe {recipe!r}; there are {', '.join(RECIPES)}.{nearest(recipe, RECIPES)}")
    shape: BiLMConfig = getattr(model, name)()
    if recipe == "bilm-tf":
        return _published(shape)
    # Clips were a remedy of 2018; without them a GPU's own LSTM can be used, and nothing was seen to run away.
    shape = replace(shape, lstm=replace(shape.lstm, cell_clip=None, output_clip=None))
    if device == "cpu":
        loop = LoopSettings(epochs=2.5, evaluations=6, held_out_tokens=5000)
        return TrainSettings(shape, loss=LossSettings(words=30_000, samples=2048), training=loop)
    rates = {"tiny": 8e-3, "small": 8e-3, "medium": 5e-3, "original": 3e-3}
    loop = LoopSettings(
        rows=1024,
        window=64,  # with 32 a GPU waits for the CPU
        precision="bfloat16",
        learning_rate=rates[name],
        clip=0.3,
        held_out_tokens=100_000,
        evaluations=20,
    )
    return TrainSettings(shape, training=loop)


def _published(shape: BiLMConfig) -> TrainSettings:
    """The recipe of the paper's own code; it had three GPUs with 128 rows each."""
    loop = LoopSettings(
        epochs=10.0,
        rows=128,
        window=20,
        fresh_rows=0.0,
        forget=0.0,
        optimizer="adagrad",
        learning_rate=0.2,
        warm_up=0.0,
        decay="none",
        clip=10.0,
        loss_factor=20.0,
    )
    return TrainSettings(shape, loss=LossSettings(weighting="log-uniform"), training=loop)


def check_precision(settings: TrainSettings, device: str) -> TrainSettings:
    """The same settings; refused where the device cannot compute in their precision."""
    if device == "cpu" and settings.training.precision != "float32":
        raise ConfigError(
            f"a CPU trains in float32, not in {settings.training.precision}; "
            "leave out training.precision, or give --device cuda"
        )
    return settings


def choose_preset(words: int, device: str) -> str:
    """The size that so many running words can fill and such a device can train."""
    if device == "cpu" or words < 20_000_000:
        return "tiny"
    return "small" if words < 100_000_000 else "medium"


def change(settings: TrainSettings, values: Mapping[str, Any], where: str = "settings") -> TrainSettings:
    """The same with some settings replaced: nested tables as a TOML file has them."""
    return from_dict(TrainSettings, merge_tables(dataclasses.asdict(settings), values), where)


def parse_set(assignments: list[str]) -> dict[str, Any]:
    """``["training.steps=100"]`` to nested tables; a value is JSON, or else a string."""
    values: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        *tables, last = name.strip().split(".")
        if not equals or not all([*tables, last]):
            raise ConfigError(f"--set takes table.setting=value, like training.steps=1000; got {assignment!r}")
        value: Any = text.strip()
        with suppress(json.JSONDecodeError):
            value = json.loads(text)
        for table in (last, *reversed(tables)):
            value = {table: value}
        values = merge_tables(values, value)
    return values


def merge_tables(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Two nested tables; the second has the last word."""
    merged = dict(one)
    for key, value in other.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = merge_tables(merged[key], value) if both else value
    return merged


def read_settings(path: Path) -> Mapping[str, Any]:
    """Tables out of a TOML or JSON file."""
    if path.suffix == ".json":
        return read_json(path)
    try:
        tomllib = import_module("tomllib")
    except ImportError as error:  # Python 3.10
        raise ConfigError(f"{path}: TOML is read since {TOML_SINCE}; write the same tables as JSON") from error
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{path} cannot be read as TOML: {error}") from error


def _one_of(settings: object, name: str, *known: str) -> None:
    value = getattr(settings, name)
    if value not in known:
        raise ConfigError(f"{name} must be {', '.join(known[:-1])} or {known[-1]}, not {value!r}")


def _at_least(settings: object, **least: int) -> None:
    for name, bound in least.items():
        if getattr(settings, name) < bound:
            raise ConfigError(f"{name} must be {bound} or more; got {getattr(settings, name)}")
