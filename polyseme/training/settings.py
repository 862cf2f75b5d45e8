"""Training settings as frozen dataclasses: presets, overrides from a TOML file or ``--set``, validation."""

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
    """Settings of the training loss and the vocabulary to predict.

    Attributes:
        kind: ``sampled``, ``full`` or ``adaptive``.
        words: Size of the vocabulary, or number of words added to that of a model; rarer words are predicted as
            ``<UNK>``.
        min_count: Lowest frequency of a word in the vocabulary.
        samples: Negative samples of a sampled softmax; as many as the vocabulary has make it the full softmax.
        weighting: Distribution of the samples: ``unigram`` (frequency to the power 3/4) or ``log-uniform`` (by rank).
        cutoffs: Ranks at which the clusters of an adaptive softmax start.
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
    """Settings of the training loop: batches, dropout, optimizer, learning rate schedule, evaluation.

    Attributes:
        epochs: Passes over the text.
        steps: Number of optimizer steps; overrides ``epochs``.
        rows: Batch size: positions in the text that are read side by side, over all processes.
        window: Words that each row reads in a step; backpropagation through time is truncated at its edge.
        fresh_rows: Fraction of the rows that start every window at the start of a sentence with a zero state, as
            sentences are embedded; the others carry their state over.
        forget: Fraction of the other rows whose state is reset at the edge of a window, at random.
        forget_documents: Also reset the state of rows in whose window a document ended.
        dropout: Dropout rate of the input of each LSTM layer and of the top layer.
        optimizer: ``adam``, or ``adagrad`` as published.
        learning_rate: Peak learning rate.
        warm_up: Fraction of the steps over which the learning rate rises linearly.
        decay: Learning rate decay after the warm-up: ``cosine``, ``linear`` or ``none``.
        floor: Final learning rate, as a fraction of the peak.
        clip: Gradient clipping: the largest norm of the gradient of all weights.
        loss_factor: Multiplies the loss; matters to Adagrad, whose steps depend on the scale.
        precision: Precision of the computation: ``float32``; on a GPU also ``bfloat16`` or ``float16``, whose LSTM
            computes in ``float16`` in both cases.
        seed: Random seed.
        evaluations: Number of evaluations on the held-out text during a run.
        held_out_tokens: Tokens of each evaluation during the run; the last one uses all.
        save_seconds: Seconds between two checkpoints.
        patience: Steps in a row without a finite gradient after which the run stops.
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
                raise ConfigError(f"{name} must be a fraction from 0 to 1; got {getattr(self, name)}")
        if not self.save_seconds >= 0:
            raise ConfigError(f"save_seconds must be 0 or more; got {self.save_seconds}")
        if self.seed >= 1 << 63:
            raise ConfigError(f"seed must be below 2^63; got {self.seed}")
        if self.dropout == 1:
            raise ConfigError("dropout 1 drops everything; give a fraction below 1")


@dataclass(frozen=True)
class TeacherSettings:
    """Settings of a second loss, the cosine distance to the word vectors of a teacher model.

    Attributes:
        model: Name and fingerprint of the teacher, so that a run is resumed with the same one.
        weight: Weight of the distance, summed over the layers that learn, beside a nat of the language model's loss.
        rows: Rows of each step that the teacher reads too, over all processes; fewer if there are not as many fresh
            rows. More teach faster and cost time.
        layers: Pairs of layers, one of the model and one of the teacher it learns from; None spreads the LSTM layers
            over the teacher's depth.
    """

    model: str = ""
    weight: float = 2.0
    rows: int = 64
    layers: tuple[tuple[int, int], ...] | None = None

    def __post_init__(self) -> None:
        if not 0 < self.weight < math.inf:
            raise ConfigError(f"teacher.weight must be above 0 and finite; got {self.weight}")
        _at_least(self, rows=1)
        if self.layers == ():
            raise ConfigError("teacher.layers names no layer; give pairs like [[1, 3], [2, 5]], or leave it out")


@dataclass(frozen=True)
class TrainSettings:
    """All settings of a training run, as saved beside the model and overridden by ``--set`` or a file.

    Attributes:
        model: Architecture of the biLM.
        characters: How words are spelled: in ``bytes`` of UTF-8, as in all published models, or in ``code points``, of
            which scripts other than Latin need half or a third as many; the most frequent of the text get an id each.
        data: Settings of the text preparation.
        loss: Settings of the training loss.
        training: Settings of the training loop.
        teacher: Settings of the teacher's loss, if there is a teacher.
    """

    model: BiLMConfig
    characters: Literal["bytes", "code points"] = "bytes"
    data: PrepareSettings = field(default_factory=PrepareSettings)
    loss: LossSettings = field(default_factory=LossSettings)
    training: LoopSettings = field(default_factory=LoopSettings)
    teacher: TeacherSettings | None = None

    def __post_init__(self) -> None:
        _one_of(self, "characters", "bytes", "code points")
        if self.teacher and not int(self.training.rows * self.training.fresh_rows):
            raise ConfigError(
                "a teacher needs rows that start at a sentence, and training.rows times training.fresh_rows is below "
                "1; raise training.fresh_rows"
            )


def preset(name: str, device: str = "cpu", recipe: str = "modern") -> TrainSettings:
    """Preset settings for a model size on a kind of device (``cpu``, ``cuda``)."""
    if name not in PRESETS:
        raise ConfigError(f"there is no preset {name!r}; there are {', '.join(PRESETS)}.{nearest(name, PRESETS)}")
    if recipe not in RECIPES:
        raise ConfigError(f"there is no recipe {recipe!r}; there are {', '.join(RECIPES)}.{nearest(recipe, RECIPES)}")
    shape: BiLMConfig = getattr(model, name)()
    if recipe == "bilm-tf":
        return _published(shape)
    # Without clipped cells cuDNN's LSTM can be used, and no run was seen to diverge.
    shape = replace(shape, lstm=replace(shape.lstm, cell_clip=None, output_clip=None))
    if device == "cpu":
        loop = LoopSettings(epochs=2.5, evaluations=6, held_out_tokens=5000)
        return TrainSettings(shape, loss=LossSettings(words=30_000, samples=2048), training=loop)
    rates = {"tiny": 8e-3, "small": 8e-3, "medium": 5e-3, "original": 3e-3}
    loop = LoopSettings(
        rows=1024,
        window=64,  # with 32 the GPU waits for the CPU
        precision="bfloat16",
        learning_rate=rates[name],
        clip=0.3,
        held_out_tokens=100_000,
        evaluations=20,
    )
    return TrainSettings(shape, training=loop)


def _published(shape: BiLMConfig) -> TrainSettings:
    """The published recipe of bilm-tf, which ran on three GPUs with 128 rows each."""
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
    """Return the settings, or refuse a precision that the device cannot compute in."""
    if device == "cpu" and settings.training.precision != "float32":
        raise ConfigError(
            f"a CPU trains in float32, not in {settings.training.precision}; "
            "leave out training.precision, or give --device cuda"
        )
    return settings


def choose_preset(words: int, device: str) -> str:
    """Choose a preset by the number of words in the text and the kind of device."""
    if device == "cpu" or words < 20_000_000:
        return "tiny"
    return "small" if words < 100_000_000 else "medium"


def change(settings: TrainSettings, values: Mapping[str, Any], where: str = "settings") -> TrainSettings:
    """Override settings with nested tables, as read from a TOML file."""
    return from_dict(TrainSettings, merge_tables(dataclasses.asdict(settings), values), where)


def parse_set(assignments: list[str]) -> dict[str, Any]:
    """Parse ``--set`` options like ``training.steps=100`` into nested tables; a value is JSON or else a string."""
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
    """Merge two nested tables; values of the second override those of the first."""
    merged = dict(one)
    for key, value in other.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = merge_tables(merged[key], value) if both else value
    return merged


def read_settings(path: Path) -> Mapping[str, Any]:
    """Read settings tables from a TOML or JSON file."""
    if path.suffix == ".json":
        return read_json(path)
    try:
        tomllib = import_module("tomllib")
    except ImportError as error:  # Python 3.10
        raise ConfigError(f"{path}: TOML needs {TOML_SINCE} or later; write the same tables as JSON") from error
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
