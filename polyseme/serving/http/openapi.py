"""The OpenAPI document of the server, with an example for every POST route."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from polyseme.serving.http import schema
from polyseme.serving.settings import Limits

_BANKS = ["She sat on the bank of the river.", "He paid the money into the bank."]
EXAMPLES: dict[str, tuple[type[BaseModel], dict[str, Any]]] = {
    "/v1/words": (schema.WordsRequest, {"text": _BANKS[0], "layers": "mean"}),
    "/v1/embeddings": (schema.EmbeddingsRequest, {"input": _BANKS}),
    "/v1/neighbours": (schema.NeighboursRequest, {"sentence": _BANKS[0], "position": 4, "top": 5}),
    "/v1/compare": (schema.CompareRequest, {"sentences": _BANKS, "word": "bank", "layer": "all"}),
    "/v1/predict": (schema.PredictRequest, {"sentence": _BANKS[0], "position": 4}),
    "/v1/tag": (schema.TagRequest, {"sentences": [["Paris", "is", "a", "city"]]}),
}
_ERROR = {
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
_ERRORS = {
    "401": "The key is missing or wrong.",
    "404": "There is no such model, or it does not support this.",
    "408": "The request took too long to arrive.",
    "413": "The request exceeds a limit; where gives the place.",
    "415": "The request is not sent as JSON.",
    "422": "The request is not valid; where gives the place.",
    "429": "The server is busy; Retry-After gives the seconds to wait.",
    "503": "The server is shutting down.",
}


def openapi_document(app: FastAPI, limits: Limits) -> dict[str, Any]:
    """The OpenAPI document of an app, made once."""
    if app.openapi_schema:
        return app.openapi_schema
    description = (
        f"Contextual word vectors. A request may have {limits.body_bytes:,} bytes, {limits.sentences:,} sentences and "
        f"{limits.words:,} words, with at most {limits.sentence_words:,} words in a sentence."
    )
    document = get_openapi(title=app.title, version=app.version, description=description, routes=app.routes)
    for path, (kind, example) in EXAMPLES.items():
        operation = document["paths"][path]["post"]
        shape = kind.model_json_schema()
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": shape, "example": example}},
        }
        operation["responses"] = {"200": _success(path), **_error_responses()}
    app.openapi_schema = document
    return document


def _success(path: str) -> dict[str, Any]:
    content: dict[str, Any] = {"application/json": {"schema": {"type": "object"}}}
    if path == "/v1/words":
        content["application/octet-stream"] = {"schema": {"type": "string", "format": "binary"}}
    return {"description": "The requested result.", "content": content}


def _error_responses() -> dict[str, Any]:
    content = {"application/json": {"schema": _ERROR}}
    return {status: {"description": text, "content": content} for status, text in _ERRORS.items()}
