"""Model architecture settings (frozen dataclasses) and presets: tiny, small, medium, original."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from polyseme.errors import ConfigError, nearest

Direction = Literal["forward", "backward"]
# Bounds far beyond any model: a damaged file may say anything, and sizes are multiplied with each other.
MAX_LAYERS = 100
MAX_DIM = 1 << 17  # of vectors, cells and filters
MAX_FILTERS = 100  # widths of filters
MAX_CHARACTERS = 1_000  # of a word: each word of a batch is padded to so many
MAX_ROWS = 1 << 31  # words or characters: rows are 32-bit numbers
MAX_FORGET_BIAS = 100.0  # the sigmoid is 0 or 1 in fp32 long before
MIN_CLIP, MAX_CLIP = 1e-30, 1e30  # numbers that fp32 holds
PUBLISHED_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))

KINDS = {tuple: "a list", bool: "true or false"}  # as a file of settings has them

T = TypeVar("T")


@dataclass(frozen=True)
class CharCnnConfig:
    """Character CNN settings: filters, activation, highway layers."""

    num_characters: int = 261
    dim: int = 16
    filters: tuple[tuple[int, int], ...] = PUBLISHED_FILTERS  # (width, how many)
    max_characters: int = 50
    activation: Literal["relu", "tanh"] = "relu"
    num_highway: int = 1

    def __post_init__(self) -> None:
        _within(self, "num_characters", 1, MAX_ROWS)
        _within(self, "dim", 1, MAX_DIM)
        if not self.filters or any(width < 1 or count < 1 for width, count in self.filters):
            raise ConfigError(f"filters must be pairs of width and count, each 1 or more; got {self.filters!s:.100}")
        if len(self.filters) > MAX_FILTERS or self.num_filters > MAX_DIM:
            raise ConfigError(
                f"filters must be of at most {MAX_FILTERS} widths and {MAX_DIM:,} in all; "
                f"got {len(self.filters):,} widths and {self.num_filters:,} filters"
            )
        _within(self, "max_characters", 3, MAX_CHARACTERS)
        widest = max(width for width, _ in self.filters)
        if self.max_characters < widest:
            raise ConfigError(
                f"max_characters is {self.max_characters}, but the widest filter reads {widest} characters"
            )
        _within(self, "num_highway", 0, MAX_LAYERS)
        if self.activation not in ("relu", "tanh"):
            raise ConfigError(f"activation must be 'relu' or 'tanh', not {self.activation!r}")

    @property
    def num_filters(self) -> int:
        """Number of filters: features of a word before the projection."""
        return sum(count for _, count in self.filters)


@dataclass(frozen=True)
class InputConfig:
    """Input settings: character CNN, word embeddings, or both side by side."""

    dim: int
    characters: CharCnnConfig | None
    num_words: int = 0
    word_dim: int = 0
    projected: bool = True

    def __post_init__(self) -> None:
        _within(self, "dim", 1, MAX_DIM)
        _within(self, "num_words", 0, MAX_ROWS)
        _within(self, "word_dim", 0, MAX_DIM)
        if bool(self.num_words) != bool(self.word_dim):
            raise ConfigError(f"num_words ({self.num_words}) and word_dim ({self.word_dim}) go together")
        if not self.num_features:
            raise ConfigError("a model needs characters, a table of words, or both as its input; got neither")
        if not self.projected and self.num_features != self.dim:
            raise ConfigError(
                f"without a projection the {self.num_features} features must be as many as dim, {self.dim}"
            )

    @property
    def num_features(self) -> int:
        """Width before the projection."""
        return self.word_dim + (self.characters.num_filters if self.characters else 0)


@dataclass(frozen=True)
class LstmConfig:
    """The recurrent layers; `dim` is the width of one direction's output."""

    cells: int
    dim: int
    num_layers: int = 2
    projected: bool = True
    residual: bool = True
    cell_clip: float | None = 3.0
    output_clip: float | None = 3.0  # has no effect without a projection, as in TensorFlow
    forget_bias: float = 1.0  # added to the stored bias at run time, as in TensorFlow

    def __post_init__(self) -> None:
        _within(self, "cells", 1, MAX_DIM)
        _within(self, "dim", 1, MAX_DIM)
        _within(self, "num_layers", 0, MAX_LAYERS)
        _within(self, "forget_bias", -MAX_FORGET_BIAS, MAX_FORGET_BIAS)
        if not self.projected and self.cells != self.dim:
            raise ConfigError(f"without a projection cells ({self.cells}) and dim ({self.dim}) must be equal")
        for name in ("cell_clip", "output_clip"):
            clip = getattr(self, name)
            if clip is not None and not MIN_CLIP <= clip <= MAX_CLIP:
                raise ConfigError(f"{name} must be above 0, at most {MAX_CLIP:g}, or null for none; got {clip}")


@dataclass(frozen=True)
class BiLMConfig:
    """A language model that reads forward, backward, or both ways."""

    input: InputConfig
    lstm: LstmConfig
    directions: tuple[Direction, ...] = ("forward", "backward")
    separate_inputs: bool = False  # each direction encodes words by itself: two one-direction models joined

    def __post_init__(self) -> None:
        if self.directions not in (("forward", "backward"), ("forward",), ("backward",)):
            raise ConfigError(f"directions must be forward, backward or both in that order; got {self.directions}")
        if self.separate_inputs and len(self.directions) < 2:
            raise ConfigError("separate_inputs needs both directions")
        if self.input.dim != self.lstm.dim:
            raise ConfigError(f"the input's dim ({self.input.dim}) and the LSTM's ({self.lstm.dim}) must be equal")

    @property
    def dim(self) -> int:
        """Dimension of a word vector."""
        return self.lstm.dim * len(self.directions)

    @property
    def num_layers(self) -> int:
        """Layers of vectors: the context-free one and one for each LSTM layer."""
        return 1 + self.lstm.num_layers


def tiny() -> BiLMConfig:
    """256 cells, 64 dimensions a direction: 0.8 million parameters, for a few megabytes of text on a CPU."""
    filters = ((1, 16), (2, 32), (3, 64), (4, 96), (5, 112))
    return BiLMConfig(InputConfig(64, CharCnnConfig(filters=filters)), LstmConfig(256, 64))


def small() -> BiLMConfig:
    """1,024 cells, 128 dimensions a direction: 13.6 million parameters."""
    return BiLMConfig(InputConfig(128, CharCnnConfig(num_highway=1)), LstmConfig(1024, 128))


def medium() -> BiLMConfig:
    """2,048 cells, 256 dimensions a direction: 28.0 million parameters."""
    return BiLMConfig(InputConfig(256, CharCnnConfig(num_highway=1)), LstmConfig(2048, 256))


def original() -> BiLMConfig:
    """4,096 cells, 512 dimensions a direction: 93.6 million parameters, the model of the paper."""
    return BiLMConfig(InputConfig(512, CharCnnConfig(num_highway=2)), LstmConfig(4096, 512))


def to_dict(config: BiLMConfig) -> dict[str, Any]:
    """Settings as JSON can hold them."""
    return dataclasses.asdict(config)


def from_dict(kind: type[T], values: object, where: str = "config") -> T:
    """Settings out of JSON; a missing, unknown or mistyped key is refused by its full name."""
    if not isinstance(values, Mapping):
        raise ConfigError(f"{where} must be a table of settings, not {values!r}")
    hints = typing.get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}  # pyright: ignore[reportArgumentType]
    for key in values:
        if key not in fields:
            inside = [f"{table}.{key}" for table in fields if key in _names(hints[table])]
            hint = f" Did you mean {inside[0]!r}?" if inside else nearest(str(key), fields)
            raise ConfigError(f"{where} has no setting {key!r}.{hint}")
    for name, field in fields.items():
        if field.default is dataclasses.MISSING and name not in values:
            raise ConfigError(f"{where} lacks the setting {name!r}")
    return kind(**{key: _value(hints[key], value, f"{where}.{key}") for key, value in values.items()})


def _names(hint: Any) -> list[str]:  # noqa: ANN401
    """The settings of a table, and none of anything else."""
    return [field.name for field in dataclasses.fields(hint)] if dataclasses.is_dataclass(hint) else []


def _value(hint: Any, value: Any, where: str) -> Any:  # noqa: ANN401
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if value is None and type(None) in options:
        return None
    wanted = options[0]
    if dataclasses.is_dataclass(wanted):
        return from_dict(typing.cast("type[Any]", wanted), value, where)
    origin = typing.get_origin(wanted) or wanted
    if origin is tuple and isinstance(value, list | tuple):
        item = typing.get_args(wanted)
        kinds = [item[0]] * len(value) if item[-1] is Ellipsis else item
        if len(kinds) != len(value):
            raise ConfigError(f"{where} must be {len(kinds)} values, not {value!r}")
        return tuple(_value(kind, entry, where) for kind, entry in zip(kinds, value, strict=True))
    if origin is float and type(value) is int:
        return float(value)
    expected = str if origin is Literal else origin
    if type(value) is not expected:
        raise ConfigError(f"{where} must be {KINDS.get(expected, expected.__name__)}, not {value!r}")
    return value


def _within(config: object, name: str, least: float, most: float) -> None:
    if not least <= getattr(config, name) <= most:
        raise ConfigError(f"{name} must be {least:,} to {most:,}; got {getattr(config, name)!r:.60}")
