"""Requests: answered before the deadline; their sentences are split and checked against the limits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import numpy as np
from fastapi import APIRouter, Request
from starlette.responses import Response

from polyseme.errors import ConfigError
from polyseme.serving.engine.admission import OverloadedError
from polyseme.serving.engine.catalogue import ServedModel
from polyseme.serving.engine.service import Layers, Service, select_layers
from polyseme.serving.engine.sizes import Place, check_sentences, check_words
from polyseme.serving.http.bodies import B, read_body
from polyseme.serving.http.errors import ClientGoneError, from_exception, invalid
from polyseme.serving.http.responses import RequestSentences
from polyseme.serving.http.schema import TextOrSentences

Handler = Callable[[Service, B, Request], Awaitable[Response]]


def post(router: APIRouter, path: str, body_type: type[B]) -> Callable[[Handler[B]], Handler[B]]:
    """Decorator: a handler answers POST requests at a path, given the service, the validated body and the request."""

    def add(handler: Handler[B]) -> Handler[B]:
        async def endpoint(request: Request) -> Response:
            service: Service = request.app.state.service
            body = await read_body(request, service.limits, body_type)
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


async def read_sentences(body: TextOrSentences, service: Service) -> RequestSentences:
    """The sentences of a request, within the limits; raw text is split into sentences and words."""
    if (body.text is None) == (body.sentences is None):
        raise invalid("give either text or sentences")
    if body.text is not None:
        (split,) = await service.splitter.split([body.text], [["text"]])
        return RequestSentences([sentence.words for sentence in split], [sentence.spans for sentence in split])
    sentences = body.sentences or []
    check_sentences(sentences, service.limits, ["sentences"])
    return RequestSentences(sentences, None)


async def read_sentence(sentence: str | list[str], service: Service) -> list[str]:
    """The words of the one sentence of a request."""
    (words,) = await read_each_sentence([sentence], service, [["sentence"]])
    return words


async def read_each_sentence(
    sentences: Sequence[str | list[str]], service: Service, places: Sequence[Place]
) -> list[list[str]]:
    """The words of each sentence; raw text counts as one sentence even if it looks like several."""
    raw = [number for number, sentence in enumerate(sentences) if isinstance(sentence, str)]
    split = await service.splitter.split([str(sentences[number]) for number in raw], [places[n] for n in raw])
    joined = {n: [word for part in text for word in part.words] for n, text in zip(raw, split, strict=True)}
    found: list[list[str]] = []
    for number, (sentence, where) in enumerate(zip(sentences, places, strict=True)):
        words = sentence if isinstance(sentence, list) else joined[number]
        check_words(words, service.limits, where)
        if not words:
            raise invalid("there are no words in this sentence", where)
        found.append(words)
    return found


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
