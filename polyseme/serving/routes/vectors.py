"""Routes for word vectors (/v1/words) and text embeddings in OpenAI's format (/v1/embeddings)."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import numpy as np
from fastapi import APIRouter, Request
from starlette.responses import Response

from polyseme.embedding.layers import choose, pool
from polyseme.embedding.similarity import unit
from polyseme.serving.engine.service import Service, select_layers
from polyseme.serving.http.errors import invalid, too_large
from polyseme.serving.http.requests import check_layers, post, read_sentences
from polyseme.serving.http.responses import BINARY, binary_vectors, json_response, json_vectors
from polyseme.serving.http.schema import EmbeddingsRequest, WordsRequest
from polyseme.serving.settings import Limits
from polyseme.text.tokenizer import TokenizedSentence

router = APIRouter()


@post(router, "/v1/words", WordsRequest)
async def words(service: Service, body: WordsRequest, request: Request) -> Response:
    """Vectors of words, in the requested layers and format."""
    model = service.catalogue.find(body.model)
    check_layers(body.layers, model)
    sentences = await read_sentences(body, service)
    embedded = await service.run(model.embedding, sentences.words, request.scope["load"])
    vectors = [select_layers(array, body.layers) for array in embedded]
    preferred = request.headers.get("accept", "").split(",")[0].partition(";")[0].strip()
    form = body.format or ("float32" if preferred == BINARY else "json")
    if form == "json":
        return await json_vectors(model, sentences, vectors)
    return binary_vectors(model, sentences, vectors, form)


@post(router, "/v1/embeddings", EmbeddingsRequest)
async def embeddings(service: Service, body: EmbeddingsRequest, request: Request) -> Response:
    """One vector per text, of unit length: the average of all layers and words."""
    model = service.catalogue.find(body.model)
    dim = model.encoder.dim
    if body.dimensions not in (None, dim):
        raise invalid(f"the vectors of {model.id} have {dim} dimensions; leave dimensions out", ["dimensions"])
    if len(body.input) > service.limits.sentences:
        raise too_large(f"a request may have {service.limits.sentences:,} inputs, not {len(body.input):,}", ["input"])
    texts = await service.splitter.split(body.input, [["input", number] for number in range(len(body.input))])
    _check_texts(texts, service.limits)
    sentences = [sentence.words for text in texts for sentence in text]
    embedded = iter(await service.run(model.embedding, sentences, request.scope["load"]))
    vectors = [_pool([next(embedded) for _ in text]) for text in texts]
    count = sum(map(len, sentences))
    data = [
        {"object": "embedding", "index": number, "embedding": _encode(vector, body.encoding_format)}
        for number, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": count, "total_tokens": count}
    return json_response({"object": "list", "data": data, "model": model.id, "usage": usage})


def _check_texts(texts: Sequence[Sequence[TokenizedSentence]], limits: Limits) -> None:
    """Refuse a text without words, and texts that together exceed the limits, by the number of the input."""
    sentences = words = 0
    for number, text in enumerate(texts):
        if not text:
            raise invalid("there are no words in this input", ["input", number])
        sentences += len(text)
        words += sum(len(sentence.words) for sentence in text)
        if sentences > limits.sentences or words > limits.words:
            most = f"{limits.sentences:,} sentences and {limits.words:,} words"
            raise too_large(f"a request may have {most}; send several", ["input", number])


def _pool(vectors: Sequence[np.ndarray]) -> np.ndarray:
    averaged = choose(np.concatenate(vectors, axis=1), "average")
    return unit(pool(averaged, "mean"))


def _encode(vector: np.ndarray, encoding: str) -> np.ndarray | str:
    vector = np.ascontiguousarray(vector, "<f4")
    return base64.b64encode(vector.tobytes()).decode() if encoding == "base64" else vector
