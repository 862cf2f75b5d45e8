"""The nearest uses and the nearest words, for each model among the sentences that ship with the package.

What they are searched among is embedded once, through the same queue as everybody's requests, and in small shares, so
that requests are answered meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from polyseme.backends.elmo.encoder import ElmoEncoder
from polyseme.backends.static import StaticEncoder
from polyseme.corpus.neighbours import nearest_uses
from polyseme.corpus.uses import Use, Uses, bundled_sentences, embed_all
from polyseme.embedding.layers import LayerChoice
from polyseme.embedding.similarity import unit
from polyseme.errors import InputError
from polyseme.serving.engine.batcher import Batcher, Engine
from polyseme.serving.engine.catalogue import ServedModel

_COMMON = 5000  # words of a vocabulary that are compared, the commonest
_BOUNDARIES = 2


@dataclass
class _Known:
    """An embedder of sentences that were embedded before."""

    name: str
    num_layers: int
    dim: int
    vectors: dict[tuple[str, ...], np.ndarray]

    def embed(self, sentences: Iterable[Sequence[str]]) -> Iterator[np.ndarray]:
        """Look them up."""
        return (self.vectors[tuple(words)] for words in sentences)


@dataclass(frozen=True)
class _Among:
    """What is searched."""

    uses: Uses
    words: list[str]
    units: np.ndarray  # (words, dim) of the layer that knows no context


class Neighbours:
    """The search for one model."""

    def __init__(self, model: ServedModel, batcher: Batcher) -> None:
        self.model, self._batcher = model, batcher
        self._among: asyncio.Task[_Among] | None = None

    def prepare(self) -> asyncio.Task[_Among]:
        """Begin to embed what is searched; once, or again if it failed."""
        if self._among is None or (self._among.done() and (self._among.cancelled() or self._among.exception())):
            self._among = asyncio.create_task(self._embed())
        return self._among

    async def find(self, words: list[str], position: int, layer: LayerChoice, top: int) -> dict[str, Any]:
        """Uses most like one, and words most like its word where no context is known."""
        among = await asyncio.shield(self.prepare())
        (vectors,) = await self._batcher.run(self.model.engine, [words], [len(words) + _BOUNDARIES])
        use = Use(tuple(words), position)
        contextual = await asyncio.to_thread(self._nearest_uses, use, vectors, among.uses, layer, top)
        return {"word": use.word, "contextual": contextual, "static": await self._nearest_words(use.word, among, top)}

    def _known(self, sentences: Sequence[Sequence[str]], vectors: Sequence[np.ndarray]) -> _Known:
        encoder = self.model.encoder
        return _Known(
            encoder.name, encoder.num_layers, encoder.dim, dict(zip(map(tuple, sentences), vectors, strict=True))
        )

    def _nearest_uses(
        self, use: Use, vectors: np.ndarray, among: Uses, layer: LayerChoice, top: int
    ) -> list[dict[str, Any]]:
        try:
            found = nearest_uses(self._known([use.words], [vectors]), use, among, layer, top).found
        except InputError:  # a vector of zeros is like nothing
            return []
        return [
            {"sentence": list(each.use.words), "position": each.use.place, "similarity": each.cosine} for each in found
        ]

    async def _nearest_words(self, word: str, among: _Among, top: int) -> list[dict[str, Any]]:
        if isinstance(self.model.encoder, StaticEncoder):
            (found,) = await self._batcher.run(self._table, [(word, top)], [1])
            return [{"word": each.word, "similarity": each.cosine} for each in found]
        (vector,) = await self._batcher.run(self._alone, [word], [1])
        cosines = among.units @ unit(vector)
        best = (number for number in np.argsort(-cosines, kind="stable") if among.words[number] != word)
        return [{"word": among.words[n], "similarity": float(cosines[n])} for n in islice(best, top)]

    async def _embed(self) -> _Among:
        sentences = bundled_sentences()
        vectors = await self._batcher.run(
            self.model.engine, sentences, [len(words) + _BOUNDARIES for words in sentences]
        )
        uses = await asyncio.to_thread(embed_all, self._known(sentences, vectors), sentences)
        words = list(dict.fromkeys([*_common(self.model), *(word for sentence in sentences for word in sentence)]))
        if isinstance(self.model.encoder, StaticEncoder):  # it has its own
            return _Among(uses, [], np.zeros((0, 0)))
        alone = await self._batcher.run(self._alone, words, [1] * len(words))
        return _Among(uses, words, unit(np.stack(alone)))

    @cached_property
    def _alone(self) -> Engine:
        """Words to their vectors (dim,) where no context is known."""
        encoder = self.model.encoder
        if isinstance(encoder, ElmoEncoder):
            return Engine(self.model.id, lambda words: list(encoder.embed_words(words)))
        return Engine(self.model.id, lambda words: [array[0, 0] for array in encoder.embed([word] for word in words)])

    @cached_property
    def _table(self) -> Engine:
        """Words and how many neighbours they want, to these."""
        encoder = self.model.encoder
        assert isinstance(encoder, StaticEncoder)
        return Engine(
            self.model.id, lambda asked: [encoder.nearest(word, top) if word in encoder else [] for word, top in asked]
        )


def _common(model: ServedModel) -> list[str]:
    """The commonest words that the language model knows, where there is one."""
    if model.language_model is None:
        return []
    vocabulary = model.language_model.vocabulary
    special = {vocabulary.bos, vocabulary.eos, vocabulary.unk}
    return [word for word in islice(vocabulary, _COMMON) if word not in special]
