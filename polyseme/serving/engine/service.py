"""What the server answers, request by request; nothing here knows of HTTP but the faults."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from polyseme.embedding.layers import choose, pool
from polyseme.embedding.similarity import unit
from polyseme.errors import ConfigError
from polyseme.serving.engine.admission import Admission
from polyseme.serving.engine.batcher import Batcher, Engine
from polyseme.serving.engine.catalogue import Catalogue, ServedModel
from polyseme.serving.engine.comparison import compare
from polyseme.serving.engine.metrics import Metrics
from polyseme.serving.engine.neighbours import Neighbours
from polyseme.serving.engine.prediction import prediction_engine
from polyseme.serving.http.errors import invalid, missing, too_large
from polyseme.serving.http.schema import (
    CompareAsked,
    EmbeddingsAsked,
    Layers,
    NeighboursAsked,
    PredictAsked,
    TagsAsked,
    WordsAsked,
)
from polyseme.serving.http.sentences import Read, check, check_position, one_sentence, read_sentences, split
from polyseme.serving.settings import Limits, ServeSettings
from polyseme.text.tokenizer import Sentence

_BOUNDARIES = 2
_HEAD = 100  # words that a softmax over all words costs as much as


class WordVectors(NamedTuple):
    """The answer to a request for the vectors of words."""

    model: ServedModel
    read: Read
    vectors: list[np.ndarray]  # (layers, words, dim)


class Visit:
    """One request, from its acceptance to the last byte of its answer."""

    def __init__(self) -> None:
        self.words = 0  # of its sentences
        self.cost = 0  # words that answering takes as long as


class Service:
    """All models behind one queue."""

    def __init__(self, catalogue: Catalogue, settings: ServeSettings) -> None:
        self.catalogue, self.settings, self.limits = catalogue, settings, settings.limits
        self.metrics = Metrics()
        self.admission = Admission(self.limits)
        self.batcher = Batcher(self.limits.batch_words, self.metrics)
        self.draining = False
        self.neighbours = {name: Neighbours(model, self.batcher) for name, model in catalogue.models.items()}
        self._predicting = {
            model.id: prediction_engine(model.id, model.language_model)
            for model in catalogue.models.values()
            if model.language_model
        }
        self.metrics.watch("polyseme_waiting_requests", "Requests in the queue.", lambda: self.batcher.waiting)
        self.metrics.watch("polyseme_inside_words", "Words of accepted requests.", lambda: self.admission.words)

    @property
    def ready(self) -> bool:
        """Whether requests are answered."""
        return self.batcher.alive and not self.draining

    def start(self) -> None:
        """Begin to compute, and to embed what neighbours are searched among."""
        self.batcher.start()
        for neighbours in self.neighbours.values():
            neighbours.prepare()

    def enter(self, visit: Visit, words: int, cost: int) -> None:
        """Accept a request, until `leave`."""
        self.admission.enter(cost)
        visit.words, visit.cost = words, cost

    def leave(self, visit: Visit, answered: bool) -> None:
        """The answer is sent, or will never be."""
        if visit.cost:
            self.admission.leave(visit.cost, answered)

    async def words(self, asked: WordsAsked, visit: Visit) -> WordVectors:
        """Vectors of words, in the layers asked for."""
        model = self.catalogue.find(asked.model)
        _check_layers(asked.layers, model)
        read = await read_sentences(asked, self.limits)
        vectors = await self._run(model.engine, read.sentences, visit)
        return WordVectors(model, read, [_chosen(array, asked.layers) for array in vectors])

    async def embeddings(self, asked: EmbeddingsAsked, visit: Visit) -> dict[str, Any]:
        """One vector of unit length a text: the average of all layers and words."""
        model = self.catalogue.find(asked.model)
        if asked.dimensions not in (None, model.encoder.dim):
            raise invalid(
                f"the vectors of {model.id} have {model.encoder.dim} dimensions, and no others", ["dimensions"]
            )
        if len(asked.input) > self.limits.sentences:
            raise too_large(f"a request may have {self.limits.sentences:,} inputs, not {len(asked.input):,}", ["input"])
        texts = [await split(text, self.limits, ["input", number]) for number, text in enumerate(asked.input)]
        _check_inputs(texts, self.limits)
        sentences = [sentence.words for text in texts for sentence in text]
        vectors = iter(await self._run(model.engine, sentences, visit))
        pooled = [_pooled([next(vectors) for _ in text]) for text in texts]
        words = sum(map(len, sentences))
        return {
            "object": "list",
            "data": [
                {"object": "embedding", "index": number, "embedding": _encoded(vector, asked.encoding_format)}
                for number, vector in enumerate(pooled)
            ],
            "model": model.id,
            "usage": {"prompt_tokens": words, "total_tokens": words},
        }

    async def find_neighbours(self, asked: NeighboursAsked, visit: Visit) -> dict[str, Any]:
        """Uses and words most like one."""
        model = self.catalogue.find(asked.model)
        _check_layers(asked.layer, model, "layer")
        words = await one_sentence(asked.sentence, self.limits)
        check_position(asked.position, words)
        self.enter(visit, len(words), len(words) + _BOUNDARIES)
        return await self.neighbours[model.id].find(words, asked.position, asked.layer, asked.top)

    async def compare(self, asked: CompareAsked, visit: Visit) -> dict[str, Any]:
        """Words in several sentences side by side."""
        model = self.catalogue.find(asked.model)
        _check_layers(asked.layer, model, "layer")
        if not 2 <= len(asked.sentences) <= 64:
            raise invalid(f"2 to 64 sentences can be compared, not {len(asked.sentences)}", ["sentences"])
        sentences = [
            await one_sentence(sentence, self.limits, ["sentences", number])
            for number, sentence in enumerate(asked.sentences)
        ]
        check(sentences, self.limits, ["sentences"])
        places = _places(asked, sentences)
        vectors = await self._run(model.engine, sentences, visit)
        uses = [array[:, place] for array, place in zip(vectors, places, strict=True)]
        return {
            "uses": [{"words": words, "position": place} for words, place in zip(sentences, places, strict=True)],
            "layers": compare(uses, asked.layer),
        }

    async def predict(self, asked: PredictAsked, visit: Visit) -> dict[str, Any]:
        """What the language model expected at a place."""
        model = self.catalogue.find(asked.model)
        if model.id not in self._predicting:
            raise missing(f"{model.id} has no language model, so it predicts no words", ["model"])
        words = await one_sentence(asked.sentence, self.limits)
        check_position(asked.position, words)
        cost = len(words) + _HEAD
        self.enter(visit, len(words), cost)
        (found,) = await self.batcher.run(self._predicting[model.id], [(words, asked.position, asked.top)], [cost])
        return found

    async def tag(self, asked: TagsAsked, visit: Visit) -> dict[str, Any]:
        """Labels of words."""
        if self.catalogue.tag_engine is None:
            raise missing("no tagger was given to this server: polyseme serve --tagger FOLDER")
        read = await read_sentences(asked, self.limits)
        labels = await self._run(self.catalogue.tag_engine, read.sentences, visit)
        return {
            "sentences": [
                {"words": words, "labels": labels[number], **spans_of(read, number)}
                for number, words in enumerate(read.sentences)
            ]
        }

    async def _run(self, engine: Engine, sentences: list[list[str]], visit: Visit) -> list[Any]:
        sizes = [len(words) + _BOUNDARIES for words in sentences]
        self.enter(visit, sum(map(len, sentences)), sum(sizes))
        return await self.batcher.run(engine, sentences, sizes)


def spans_of(read: Read, number: int) -> dict[str, Any]:
    """Where the words of a sentence stand in the text, if there was one."""
    return {} if read.spans is None else {"spans": read.spans[number]}


def _check_layers(layers: Layers, model: ServedModel, field: str = "layers") -> None:
    """Refuse layers that a model does not have, before anything is computed."""
    try:
        _chosen(np.zeros((model.encoder.num_layers, 0, 1), np.float32), layers)
    except ConfigError as error:
        raise invalid(str(error), [field]) from None


def _chosen(vectors: np.ndarray, layers: Layers) -> np.ndarray:
    """Layers (chosen, words, dim)."""
    if isinstance(layers, tuple):
        return np.stack([choose(vectors, number) for number in layers])
    chosen = choose(vectors, layers)
    return chosen if layers == "all" else chosen[None]


def _check_inputs(texts: Sequence[Sequence[Sentence]], limits: Limits) -> None:
    """Refuse an input without words, and what is too much together, by the input's number."""
    sentences = words = 0
    for number, text in enumerate(texts):
        if not text:
            raise invalid("there are no words in this input", ["input", number])
        sentences += len(text)
        words += sum(len(sentence.words) for sentence in text)
        if sentences > limits.sentences or words > limits.words:
            most = f"{limits.sentences:,} sentences and {limits.words:,} words"
            raise too_large(f"a request may have {most}; send several", ["input", number])


def _pooled(vectors: Sequence[np.ndarray]) -> np.ndarray:
    joined = choose(np.concatenate(vectors, axis=1), "average")
    return unit(pool(joined, "mean"))


def _encoded(vector: np.ndarray, how: str) -> np.ndarray | str:
    vector = np.ascontiguousarray(vector, "<f4")
    return base64.b64encode(vector.tobytes()).decode() if how == "base64" else vector


def _places(asked: CompareAsked, sentences: list[list[str]]) -> list[int]:
    """Which word of each sentence is compared."""
    if (asked.positions is None) == (asked.word is None):
        raise invalid("give positions or word, one of the two")
    if asked.positions is None:
        return [_find(str(asked.word), words, number) for number, words in enumerate(sentences)]
    if len(asked.positions) != len(sentences):
        raise invalid(f"{len(sentences)} sentences need as many positions, not {len(asked.positions)}", ["positions"])
    for number, (place, words) in enumerate(zip(asked.positions, sentences, strict=True)):
        check_position(place, words, ["positions", number])
    return asked.positions


def _find(word: str, words: list[str], number: int) -> int:
    """The first place where a word stands, with its capitals if it stands there so."""
    if word in words:
        return words.index(word)
    folded = [other.casefold() for other in words]
    if word.casefold() not in folded:
        raise invalid(f"the word does not stand in sentence {number}", ["sentences", number])
    return folded.index(word.casefold())
