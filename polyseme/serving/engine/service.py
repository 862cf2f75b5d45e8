"""The service behind the routes: models, request queue, admission control and metrics, wired together."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyseme.embedding.batching import sentence_size
from polyseme.embedding.layers import LayerChoice, choose
from polyseme.errors import InputError
from polyseme.serving.engine.admission import Admission
from polyseme.serving.engine.batcher import Batcher, BatchFunction
from polyseme.serving.engine.catalogue import Catalogue, ServedModel
from polyseme.serving.engine.metrics import Metrics
from polyseme.serving.engine.neighbours import NeighbourSearch
from polyseme.serving.engine.splitter import Splitter
from polyseme.serving.settings import ServeSettings

Layers = LayerChoice | tuple[int, ...]  # a tuple: several layers, by number
logger = logging.getLogger("polyseme.serving")
_RETRY_SECONDS = 2.0  # between two attempts to start the tokenizer process
_SOFTMAX_COST = 100  # a softmax over the vocabulary takes as long as embedding so many words


@dataclass
class RequestLoad:
    """The load of one request, from its acceptance to the last byte of the response."""

    accepted: bool = False
    words: int = 0  # in its sentences
    cost: int = 0  # the number of words whose embedding takes as long; what admission control counts


class Service:
    """All models behind one queue, with admission control and metrics."""

    def __init__(self, catalogue: Catalogue, settings: ServeSettings) -> None:
        self.catalogue, self.settings, self.limits = catalogue, settings, settings.limits
        self.metrics = Metrics()
        self.admission = Admission(self.limits)
        self.batcher = Batcher(self.limits.batch_words, self.metrics)
        self.splitter = Splitter(self.limits)
        self.hosts = set(settings.hosts)  # names by which requests may reach the server
        self.in_flight = 0  # requests that were accepted and not yet answered
        self.draining = False
        self._preparing: asyncio.Task[None] | None = None
        self._searches = {name: NeighbourSearch(model, self.batcher) for name, model in catalogue.models.items()}
        self.metrics.watch("polyseme_waiting_requests", "Requests in the queue.", lambda: self.batcher.waiting)
        self.metrics.watch("polyseme_inside_words", "Words of accepted requests.", lambda: self.admission.words)

    @property
    def ready(self) -> bool:
        """Whether the server is prepared and accepts requests."""
        prepared = self._preparing is not None and self._preparing.done()
        return self.batcher.alive and prepared and not self.draining

    def start(self) -> asyncio.Task[None]:
        """Start the worker thread; the task returned prepares what the first requests would wait for."""
        self.batcher.start()
        self._preparing = asyncio.create_task(self._prepare())
        return self._preparing

    async def _prepare(self) -> None:
        """Build the indexes for neighbour search, and start the tokenizer process."""
        indexes = [search.prepare() for search in self._searches.values()]
        outcomes = await asyncio.gather(self._start_splitter(), *indexes, return_exceptions=True)
        for error in outcomes:
            if isinstance(error, Exception):  # it is tried again when a request needs it
                _log_failure(error)

    async def _start_splitter(self) -> None:
        """Start the tokenizer process, again and again until it answers: without it the server is not ready."""
        while True:
            try:
                return await self.splitter.start()
            except Exception as error:  # whatever it is, the next attempt may succeed
                _log_failure(error)
            await asyncio.sleep(_RETRY_SECONDS)

    async def close(self) -> None:
        """Stop the tokenizer processes, and the worker thread after its current batch."""
        if self._preparing is not None:
            self._preparing.cancel()
        await self.splitter.close()
        await asyncio.to_thread(self.batcher.close)

    def enter(self, load: RequestLoad, words: int, cost: int) -> None:
        """Admit a request until `leave`, or raise `OverloadedError`."""
        self.admission.enter(cost)
        load.words, load.cost = words, cost

    def leave(self, load: RequestLoad, answered: bool) -> None:
        """Release a request: its response is sent, or never will be."""
        self.in_flight -= load.accepted
        if load.cost:
            self.admission.leave(load.cost, answered)

    async def run(self, function: BatchFunction, sentences: list[list[str]], load: RequestLoad) -> list[Any]:
        """Admit the sentences of a request, and compute a function of each in batches with other requests."""
        sizes = [sentence_size(words) for words in sentences]
        self.enter(load, sum(map(len, sentences)), sum(sizes))
        return await self.batcher.run(function, sentences, sizes)

    async def predict(
        self, prediction: BatchFunction, words: list[str], position: int, top: int, load: RequestLoad
    ) -> dict[str, Any]:
        """Admit one sentence, and predict the likeliest words at a position of it."""
        cost = len(words) + _SOFTMAX_COST
        self.enter(load, len(words), cost)
        (predicted,) = await self.batcher.run(prediction, [(words, position, top)], [cost])
        return predicted

    async def find_neighbours(
        self, model: ServedModel, words: list[str], position: int, layer: LayerChoice, top: int, load: RequestLoad
    ) -> dict[str, Any]:
        """Admit one sentence, and find the nearest neighbours of one of its words."""
        self.enter(load, len(words), sentence_size(words))
        return await self._searches[model.id].find(words, position, layer, top)


def select_layers(vectors: np.ndarray, layers: Layers) -> np.ndarray:
    """The chosen or mixed layers of vectors (layers, words, dim), as an array (chosen, words, dim).

    Raises `InputError` if a mix overflows.
    """
    if isinstance(layers, tuple):
        return np.stack([choose(vectors, layer) for layer in layers])
    if layers == "all":
        return vectors
    with np.errstate(over="ignore", invalid="ignore"):  # it is told below
        chosen = choose(vectors, layers)
    if not (isinstance(layers, int) or np.isfinite(chosen).all()):
        raise InputError("the mix of layers is too large for the vectors; give smaller weights or a smaller gamma")
    return chosen[None]


def _log_failure(error: Exception) -> None:
    logger.error("preparation failed", extra={"fields": {"kind": type(error).__name__}})
