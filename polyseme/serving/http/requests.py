"""Requests: their bodies are read and validated within the limits, and answered before the deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import numpy as np
from fastapi import APIRouter, Request
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from polyseme.errors import ConfigError
from polyseme.serving.engine.admission import OverloadedError
from polyseme.serving.engine.catalogue import ServedModel
from polyseme.serving.engine.service import Layers, Service, select_layers
from polyseme.serving.http.errors import (
    ClientGoneError,
    HttpError,
    Place,
    from_exception,
    from_validation,
    invalid,
    too_large,
)
from polyseme.serving.http.responses import RequestSentences
from polyseme.serving.http.schema import TextOrSentences
from polyseme.serving.settings import Limits
from polyseme.text.tokenizer import TokenizedSentence, tokenize

B = TypeVar("B", bound=BaseModel)
Handler = Callable[[Service, B, Request], Awaitable[Response]]
_DISCARD_FACTOR = 16  # a body of up to so many times the limit is read to its end, so that the client sees the refusal
_LONG_TEXT = 20_000  # characters; a longer text is split in another thread, so that other requests go on


def post(router: APIRouter, path: str, body_type: type[B]) -> Callable[[Handler[B]], Handler[B]]:
    """Decorator: a handler answers POST requests at a path, given the service, the validated body and the request."""

    def add(handler: Handler[B]) -> Handler[B]:
        async def endpoint(request: Request) -> Response:
            service: Service = request.app.state.service
            body = validate(await read_body(request, service.limits), body_type)
            return await _before_deadline(request, service, _handle(handler, service, body, request))

        summary = (body_type.__doc__ or "").strip()
        router.add_api_route(path, endpoint, methods=["POST"], summary=summary, name=handler.__name__)
        return handler

    return add


async def _handle(handler: Handler[B], service: Service, body: B, request: Request) -> Response:
    try:
        return await handler(service, body, request)
    except Exception as error:
        raise from_exception(error) from None


async def _before_deadline(request: Request, service: Service, answer: Awaitable[Response]) -> Response:
    """Wait for a response until the deadline, or until the client disconnects."""
    answering, leaving = asyncio.ensure_future(answer), asyncio.ensure_future(_disconnect(request))
    try:
        await asyncio.wait((answering, leaving), timeout=service.limits.deadline, return_when=asyncio.FIRST_COMPLETED)
        if answering.done():
            return answering.result()
        if leaving.done():
            raise ClientGoneError
        service.metrics.dropped.add(reason="deadline")
        raise from_exception(OverloadedError(service.limits.deadline / 2))
    finally:
        for task in (answering, leaving):
            task.cancel()


async def _disconnect(request: Request) -> None:
    """Return when the client has disconnected."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def read_body(request: Request, limits: Limits) -> bytes:
    """Read the body of a request within the limits on its size and time."""
    _check_headers(request)
    try:
        return await asyncio.wait_for(_read_bytes(request, limits.body_bytes), limits.body_seconds)
    except asyncio.TimeoutError:
        message = f"the request took longer than {limits.body_seconds:g} s to arrive"
        raise HttpError(408, "timeout", message, headers={"Connection": "close"}) from None
    except ClientDisconnect:
        raise ClientGoneError from None


def validate(body: bytes, body_type: type[B]) -> B:
    """Validate a JSON body against its schema."""
    try:
        return body_type.model_validate_json(body)
    except ValidationError as error:
        raise from_validation(error) from None


def _check_headers(request: Request) -> None:
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise HttpError(415, "unsupported", "send JSON, with the header Content-Type: application/json")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise HttpError(415, "unsupported", "send the request uncompressed, without Content-Encoding")


async def _read_bytes(request: Request, limit: int) -> bytes:
    """Read the bytes of a body; if it is too large, none are kept."""
    chunks: list[bytes] = []
    total = 0
    async for chunk in request.stream():
        total += len(chunk)
        if total <= limit:
            chunks.append(chunk)
        else:
            chunks.clear()
            if total > _DISCARD_FACTOR * limit:
                break
    if total > limit:
        raise too_large(f"a request may have {limit:,} bytes; send less at a time")
    return b"".join(chunks)


async def read_sentences(body: TextOrSentences, limits: Limits) -> RequestSentences:
    """The sentences of a request, within the limits; raw text is split into sentences and words."""
    if (body.text is None) == (body.sentences is None):
        raise invalid("give either text or sentences")
    if body.text is not None:
        split = await split_text(body.text, limits, ["text"])
        return RequestSentences([sentence.words for sentence in split], [sentence.spans for sentence in split])
    sentences = body.sentences or []
    check_sentences(sentences, limits, ["sentences"])
    return RequestSentences(sentences, None)


async def split_text(text: str, limits: Limits, where: Place) -> list[TokenizedSentence]:
    """Split raw text into sentences and words, within the limits."""
    if len(text) < _LONG_TEXT:
        return _split(text, limits, where)
    return await asyncio.to_thread(_split, text, limits, where)


async def read_sentence(sentence: str | list[str], limits: Limits, where: Place = ("sentence",)) -> list[str]:
    """The words of one sentence; raw text counts as one sentence even if it looks like several."""
    if isinstance(sentence, str):
        sentence = [word for part in await split_text(sentence, limits, where) for word in part.words]
    _check_words(sentence, limits, where)
    if not sentence:
        raise invalid("there are no words in this sentence", where)
    return sentence


def check_sentences(sentences: Sequence[Sequence[str]], limits: Limits, where: Place) -> None:
    """Refuse sentences that exceed the limits, with the place of the excess."""
    if len(sentences) > limits.sentences:
        raise too_large(f"a request may have {limits.sentences:,} sentences, not {len(sentences):,}", where)
    total = 0
    for number, words in enumerate(sentences):
        _check_words(words, limits, [*where, number])
        total += len(words)
        if total > limits.words:
            raise too_large(f"a request may have {limits.words:,} words; send several", [*where, number])


def check_position(position: int, words: Sequence[str], where: Place = ("position",)) -> None:
    """Refuse a position outside of a sentence."""
    if position >= len(words):
        raise invalid(f"position should be 0 to {len(words) - 1} in this sentence of {len(words)} words", where)


def check_layers(layers: Layers, model: ServedModel, field: str = "layers") -> None:
    """Refuse layers that a model does not have, before anything is computed."""
    try:
        select_layers(np.zeros((model.encoder.num_layers, 0, 1), np.float32), layers)
    except ConfigError as error:
        raise invalid(str(error), [field]) from None


def _check_words(words: Sequence[str], limits: Limits, where: Place) -> None:
    if len(words) > limits.sentence_words:
        raise too_large(f"a sentence may have {limits.sentence_words:,} words, not {len(words):,}", where)
    if words and max(map(len, words)) > limits.word_characters:
        position = next(at for at, word in enumerate(words) if len(word) > limits.word_characters)
        raise too_large(f"a word may have {limits.word_characters:,} characters", [*where, position])


def _split(text: str, limits: Limits, where: Place) -> list[TokenizedSentence]:
    sentences: list[TokenizedSentence] = []
    total = 0
    for sentence in tokenize(text):
        _check_words(sentence.words, limits, where)
        total += len(sentence.words)
        if total > limits.words or len(sentences) >= limits.sentences:
            raise too_large(
                f"a request may have {limits.sentences:,} sentences and {limits.words:,} words; send several", where
            )
        sentences.append(sentence)
    return sentences
