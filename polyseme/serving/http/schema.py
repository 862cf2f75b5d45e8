"""The schema of request bodies: pydantic models that validate them and describe them in the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from polyseme.embedding.layers import Mix
from polyseme.errors import ConfigError
from polyseme.serving.engine.service import Layers
from polyseme.serving.http.errors import invalid

_WORDS = {"type": "array", "items": {"type": "string"}}
_SENTENCE = {"anyOf": [{"type": "string"}, _WORDS]}
_NUMBER = {"type": "integer", "minimum": 0}
_NUMBERS = {"type": "array", "items": _NUMBER, "minItems": 1, "uniqueItems": True}
_MIX = {
    "type": "object",
    "properties": {"weights": {"type": "array", "items": {"type": "number"}}, "gamma": {"type": "number"}},
    "required": ["weights"],
    "additionalProperties": False,
}
_LAYERS = {
    "anyOf": [{"enum": ["all", "mean"]}, _NUMBER, _NUMBERS, _MIX],
    "default": "all",
}


def _layers(value: object) -> Layers:
    """Layers: ``all``, ``mean``, a number, several numbers, or the weights of a mix."""
    if value == "mean":
        return "average"
    if value == "all" or _is_number(value):
        return value  # pyright: ignore[reportReturnType]
    if isinstance(value, list) and value and all(map(_is_number, value)) and len({*value}) == len(value):
        return tuple(value)
    if isinstance(value, dict) and {*value} <= {"weights", "gamma"}:
        return _mix(value)
    raise invalid('layers should be "all", "mean", a number, several numbers, or {"weights": [...]}', ["layers"])


def _mix(value: dict[str, Any]) -> Mix:
    weights, gamma = value.get("weights"), value.get("gamma", 1.0)
    if not isinstance(weights, list) or not all(map(_is_finite, [*weights, gamma])):
        raise invalid(
            "a mix needs weights, a list of finite numbers, and may have gamma, a finite number", ["layers", "weights"]
        )
    try:
        return Mix(tuple(map(float, weights)), float(gamma))
    except (ConfigError, OverflowError):
        raise invalid("a mix needs at least one weight, and all must be finite", ["layers", "weights"]) from None


def _layer(value: object) -> str | int:
    if value == "mean":
        return "average"
    if _is_number(value):
        return value  # pyright: ignore[reportReturnType]
    raise invalid('layer should be a number or "mean"', ["layer"])


def _layer_or_all(value: object) -> str | int:
    return "all" if value == "all" else _layer(value)


def _is_number(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_finite(value: object) -> bool:
    return type(value) in (int, float) and abs(value) < 1e30  # pyright: ignore[reportOperatorIssue, reportArgumentType]


def _sentence(value: object) -> str | list[str]:
    """One sentence: raw text, or a list of words."""
    if isinstance(value, str) or (isinstance(value, list) and all(isinstance(word, str) for word in value)):
        return value
    raise invalid("sentence should be a string or a list of words", ["sentence"])


def _sentences(value: object) -> list[str | list[str]]:
    if not isinstance(value, list):
        raise invalid("sentences should be a list", ["sentences"])
    for number, sentence in enumerate(value):
        if not isinstance(sentence, str) and not (
            isinstance(sentence, list) and all(isinstance(word, str) for word in sentence)
        ):
            raise invalid(f"sentence {number} should be a string or a list of words", ["sentences", number])
    return value


def _inputs(value: object) -> list[str]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts:
        raise invalid("input should be a string, or a list of at least one string", ["input"])
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise invalid(f"input {number} should be a string; token ids are not supported", ["input", number])
    return texts


OneSentence = Annotated[Any, BeforeValidator(_sentence), WithJsonSchema(_SENTENCE)]
SomeSentences = Annotated[
    Any,
    BeforeValidator(_sentences),
    WithJsonSchema({"type": "array", "items": _SENTENCE, "minItems": 2, "maxItems": 64}),
]
OneLayer = Annotated[
    Any, BeforeValidator(_layer), WithJsonSchema({"anyOf": [_NUMBER, {"const": "mean"}], "default": "mean"})
]
AnyLayer = Annotated[
    Any,
    BeforeValidator(_layer_or_all),
    WithJsonSchema({"anyOf": [_NUMBER, {"enum": ["mean", "all"]}], "default": "all"}),
]
SomeLayers = Annotated[Any, BeforeValidator(_layers), WithJsonSchema(_LAYERS)]
Inputs = Annotated[
    Any,
    BeforeValidator(_inputs),
    WithJsonSchema(
        {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]},
    ),
]
Model = Annotated[str | None, Field(description="The id of a model in /v1/models; the first one by default.")]
Position = Annotated[int, Field(ge=0, le=1 << 30, description="The position of the word in the sentence, from 0.")]
Top = Annotated[int, Field(ge=1, le=100, description="The number of results.")]


class RequestBody(BaseModel):
    """The body of a request; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)


class TextOrSentences(RequestBody):
    """Either raw text, which the server splits into sentences and words, or sentences as lists of words."""

    text: str | None = None
    sentences: list[list[str]] | None = None


class WordsRequest(TextOrSentences):
    """Get the vectors of the words in sentences."""

    model: Model = None
    layers: SomeLayers = "all"
    format: Literal["json", "float32", "float16"] | None = None


class TagRequest(TextOrSentences):
    """Label the words of sentences with the tagger."""


class EmbeddingsRequest(BaseModel):
    """Get one vector per text, in OpenAI's format; its fields that do not apply here are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True, hide_input_in_errors=True)
    input: Inputs
    model: Model = None
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None


class NeighboursRequest(RequestBody):
    """Find the uses and the words most similar to a word in its sentence."""

    sentence: OneSentence
    position: Position
    model: Model = None
    layer: OneLayer = "average"
    top: Top = 10


class CompareRequest(RequestBody):
    """Compare the vectors of a word in several sentences, or of one word in each."""

    sentences: SomeSentences
    positions: list[Position] | None = None
    word: str | None = None
    model: Model = None
    layer: AnyLayer = "all"


class PredictRequest(RequestBody):
    """Predict the words at a position with the language model."""

    sentence: OneSentence
    position: Position
    model: Model = None
    top: Top = 10
