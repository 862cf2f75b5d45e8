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
_LAYER_NUMBER = {"type": "integer", "minimum": 0}
_LAYER_NUMBERS = {"type": "array", "items": _LAYER_NUMBER, "minItems": 1, "uniqueItems": True}
_MIX = {
    "type": "object",
    "properties": {"weights": {"type": "array", "items": {"type": "number"}}, "gamma": {"type": "number"}},
    "required": ["weights"],
    "additionalProperties": False,
}
_LAYERS = {
    "anyOf": [{"enum": ["all", "mean"]}, _LAYER_NUMBER, _LAYER_NUMBERS, _MIX],
    "default": "all",
}


def _layers(value: object) -> Layers:
    """Layers: ``all``, ``mean``, a number, several numbers, or the weights of a mix."""
    if value == "mean":
        return "average"
    if value == "all" or _is_layer_number(value):
        return value  # pyright: ignore[reportReturnType]
    if isinstance(value, list) and value and all(map(_is_layer_number, value)) and len({*value}) == len(value):
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
    if _is_layer_number(value):
        return value  # pyright: ignore[reportReturnType]
    raise invalid('layer should be a number or "mean"', ["layer"])


def _layer_or_all(value: object) -> str | int:
    return "all" if value == "all" else _layer(value)


def _is_layer_number(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_finite(value: object) -> bool:
    return type(value) in (int, float) and abs(value) < 1e30  # pyright: ignore[reportOperatorIssue, reportArgumentType]


def _sentence(value: object) -> str | list[str]:
    """One sentence: raw text, or a list of words."""
    if _is_sentence(value):
        return value  # pyright: ignore[reportReturnType]
    raise invalid("sentence should be a string or a list of words", ["sentence"])


def _is_sentence(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(word, str) for word in value))


def _sentences(value: object) -> list[str | list[str]]:
    if not isinstance(value, list):
        raise invalid("sentences should be a list", ["sentences"])
    for number, sentence in enumerate(value):
        if not _is_sentence(sentence):
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


SentenceField = Annotated[Any, BeforeValidator(_sentence), WithJsonSchema(_SENTENCE)]
SentencesField = Annotated[
    Any,
    BeforeValidator(_sentences),
    WithJsonSchema({"type": "array", "items": _SENTENCE, "minItems": 2, "maxItems": 64}),
]
LayerField = Annotated[
    Any, BeforeValidator(_layer), WithJsonSchema({"anyOf": [_LAYER_NUMBER, {"const": "mean"}], "default": "mean"})
]
LayerOrAllField = Annotated[
    Any,
    BeforeValidator(_layer_or_all),
    WithJsonSchema({"anyOf": [_LAYER_NUMBER, {"enum": ["mean", "all"]}], "default": "all"}),
]
LayersField = Annotated[Any, BeforeValidator(_layers), WithJsonSchema(_LAYERS)]
InputField = Annotated[
    Any,
    BeforeValidator(_inputs),
    WithJsonSchema(
        {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]},
    ),
]
ModelField = Annotated[str | None, Field(description="The id of a model in /v1/models; the first one by default.")]
PositionField = Annotated[int, Field(ge=0, le=1 << 30, description="The position of the word in the sentence, from 0.")]
TopField = Annotated[int, Field(ge=1, le=100, description="The number of results.")]


class RequestBody(BaseModel):
    """The body of a request; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)


class TextOrSentences(RequestBody):
    """Either raw text, which the server splits into sentences and words, or sentences as lists of words."""

    text: str | None = None
    sentences: list[list[str]] | None = None


class WordsRequest(TextOrSentences):
    """Get the vectors of the words in sentences."""

    model: ModelField = None
    layers: LayersField = "all"
    format: Literal["json", "float32", "float16"] | None = None


class TagRequest(TextOrSentences):
    """Label the words of sentences with the tagger."""


class EmbeddingsRequest(BaseModel):
    """Get one vector per text, in OpenAI's format; its fields that do not apply here are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True, hide_input_in_errors=True)
    input: InputField
    model: ModelField = None
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None


class NeighboursRequest(RequestBody):
    """Find the uses and the words most similar to a word in its sentence."""

    sentence: SentenceField
    position: PositionField
    model: ModelField = None
    layer: LayerField = "average"
    top: TopField = 10


class CompareRequest(RequestBody):
    """Compare the vectors of a word in several sentences, or of one word in each."""

    sentences: SentencesField
    positions: list[PositionField] | None = None
    word: str | None = None
    model: ModelField = None
    layer: LayerOrAllField = "all"


class PredictRequest(RequestBody):
    """Predict the words at a position with the language model."""

    sentence: SentenceField
    position: PositionField
    model: ModelField = None
    top: TopField = 10
