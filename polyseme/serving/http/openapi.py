"""The OpenAPI document, with an example for every route."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from polyseme.serving.http import schema
from polyseme.serving.settings import Limits

_BANKS = ["She sat on the bank of the river.", "He paid the money into the bank."]
EXAMPLES: dict[str, tuple[type[BaseModel], dict[str, Any]]] = {
    "/v1/words": (schema.WordsAsked, {"text": _BANKS[0], "layers": "mean"}),
    "/v1/embeddings": (schema.EmbeddingsAsked, {"input": _BANKS}),
    "/v1/neighbours": (schema.NeighboursAsked, {"sentence": _BANKS[0], "position": 4, "top": 5}),
    "/v1/compare": (schema.CompareAsked, {"sentences": _BANKS, "word": "bank", "layer": "all"}),
    "/v1/predict": (schema.PredictAsked, {"sentence": _BANKS[0], "position": 4}),
    "/v1/tag": (schema.TagsAsked, {"sentences": [["Paris", "is", "a", "city"]]}),
}
_FAULT = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "where": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
            },
        }
    },
}
_FAULTS = {
    "401": "The key is missing or wrong.",
    "404": "There is no such model, or it cannot do this.",
    "408": "The request took too long to arrive.",
    "413": "The request asks for more than is allowed; where says at which place.",
    "415": "The request is no JSON.",
    "422": "The request cannot be understood; where says at which place.",
    "429": "The server is busy; Retry-After says for how many seconds.",
    "503": "The server is about to stop.",
}


def describe(app: FastAPI, limits: Limits) -> dict[str, Any]:
    """What the server takes and gives, for programs to read."""
    if app.openapi_schema:
        return app.openapi_schema
    about = (
        f"Word vectors in context. A request may have {limits.body_bytes:,} bytes, {limits.sentences:,} sentences and "
        f"{limits.words:,} words, {limits.sentence_words:,} of them in a sentence."
    )
    document = get_openapi(title=app.title, version=app.version, description=about, routes=app.routes)
    for path, (kind, example) in EXAMPLES.items():
        operation = document["paths"][path]["post"]
        shape = kind.model_json_schema()
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": shape, "example": example}},
        }
        operation["responses"] = {"200": _found(path), **_faults()}
    app.openapi_schema = document
    return document


def _found(path: str) -> dict[str, Any]:
    content: dict[str, Any] = {"application/json": {"schema": {"type": "object"}}}
    if path == "/v1/words":
        content["application/octet-stream"] = {"schema": {"type": "string", "format": "binary"}}
    return {"description": "What was asked for.", "content": content}


def _faults() -> dict[str, Any]:
    content = {"application/json": {"schema": _FAULT}}
    return {status: {"description": text, "content": content} for status, text in _FAULTS.items()}
