"""Routes that explore uses of words: nearest neighbours (/v1/neighbours) and comparisons (/v1/compare)."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from polyseme.serving.engine.comparison import compare as compare_uses
from polyseme.serving.engine.service import Service
from polyseme.serving.engine.sizes import check_sentences
from polyseme.serving.http.errors import invalid
from polyseme.serving.http.requests import check_layers, check_position, post, read_each_sentence, read_sentence
from polyseme.serving.http.responses import json_response
from polyseme.serving.http.schema import CompareRequest, NeighboursRequest

router = APIRouter()


@post(router, "/v1/neighbours", NeighboursRequest)
async def neighbours(service: Service, body: NeighboursRequest, request: Request) -> Response:
    """The uses and words most similar to a word in its sentence."""
    model = service.catalogue.find(body.model)
    check_layers(body.layer, model, "layer")
    words = await read_sentence(body.sentence, service)
    check_position(body.position, words)
    load = request.scope["load"]
    return json_response(await service.find_neighbours(model, words, body.position, body.layer, body.top, load))


@post(router, "/v1/compare", CompareRequest)
async def compare(service: Service, body: CompareRequest, request: Request) -> Response:
    """Cosine similarities of words in several sentences, and a map of them."""
    model = service.catalogue.find(body.model)
    check_layers(body.layer, model, "layer")
    if not 2 <= len(body.sentences) <= 64:
        raise invalid(f"give 2 to 64 sentences to compare, not {len(body.sentences)}", ["sentences"])
    places = [["sentences", number] for number in range(len(body.sentences))]
    sentences = await read_each_sentence(body.sentences, service, places)
    check_sentences(sentences, service.limits, ["sentences"])
    positions = _positions(body, sentences)
    vectors = await service.run(model.embedding, sentences, request.scope["load"])
    layers = compare_uses([array[:, at] for array, at in zip(vectors, positions, strict=True)], body.layer)
    uses = [{"words": words, "position": at} for words, at in zip(sentences, positions, strict=True)]
    return json_response({"uses": uses, "layers": layers})


def _positions(body: CompareRequest, sentences: list[list[str]]) -> list[int]:
    """The position of the compared word in each sentence."""
    if (body.positions is None) == (body.word is None):
        raise invalid("give either positions or word")
    if body.positions is None:
        return [_find(str(body.word), words, number) for number, words in enumerate(sentences)]
    if len(body.positions) != len(sentences):
        raise invalid(f"{len(sentences)} sentences need as many positions, not {len(body.positions)}", ["positions"])
    for number, (position, words) in enumerate(zip(body.positions, sentences, strict=True)):
        check_position(position, words, ["positions", number])
    return body.positions


def _find(word: str, words: list[str], number: int) -> int:
    """The first position of a word in a sentence; case counts only if that finds it."""
    if word in words:
        return words.index(word)
    folded = [other.casefold() for other in words]
    if word.casefold() not in folded:
        raise invalid(f"sentence {number} does not contain the word", ["sentences", number])
    return folded.index(word.casefold())
