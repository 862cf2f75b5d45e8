"""Routes for predictions: words by the language model (/v1/predict), labels by the tagger (/v1/tag)."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from polyseme.serving.engine.service import Service
from polyseme.serving.http.errors import missing
from polyseme.serving.http.requests import check_position, post, read_sentence, read_sentences
from polyseme.serving.http.responses import json_response
from polyseme.serving.http.schema import PredictRequest, TagRequest

router = APIRouter()


@post(router, "/v1/predict", PredictRequest)
async def predict(service: Service, body: PredictRequest, request: Request) -> Response:
    """The words that the language model predicts at a position."""
    model = service.catalogue.find(body.model)
    if model.prediction is None:
        raise missing(f"{model.id} has no language model, so it cannot predict words", ["model"])
    words = await read_sentence(body.sentence, service)
    check_position(body.position, words)
    load = request.scope["load"]
    return json_response(await service.predict(model.prediction, words, body.position, body.top, load))


@post(router, "/v1/tag", TagRequest)
async def tag(service: Service, body: TagRequest, request: Request) -> Response:
    """The labels that the tagger predicts for words."""
    tagging = service.catalogue.tagging
    if tagging is None:
        raise missing("this server has no tagger; start it with polyseme serve --tagger FOLDER")
    sentences = await read_sentences(body, service)
    labels = await service.run(tagging, sentences.words, request.scope["load"])
    tagged = [{**sentences.describe(number), "labels": found} for number, found in enumerate(labels)]
    return json_response({"sentences": tagged})
