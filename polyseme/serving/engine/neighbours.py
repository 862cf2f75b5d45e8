"""Nearest-neighbour search: the uses and words most similar to a word in its sentence, by cosine.

The searched uses are those of the sentences that ship with the package. They are embedded once, in the background,
through the same queue as the requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Any

import numpy as np

from polyseme.backends.elmo.encoder import ElmoEncoder
from polyseme.backends.static import StaticEncoder
from polyseme.corpus.neighbours import nearest_uses
from polyseme.corpus.uses import Use, Uses, bundled_sentences, embed_all
from polyseme.embedding.batching import sentence_size
from polyseme.embedding.layers import LayerChoice
from polyseme.embedding.similarity import unit
from polyseme.errors import InputError
from polyseme.serving.engine.batcher import Batcher, BatchFunction
from polyseme.serving.engine.catalogue import ServedModel

_COMMON_WORDS = 5000  # of the vocabulary that are compared, the most frequent


@dataclass
class _Precomputed:
    """An embedder that looks up vectors computed before."""

    name: str
    num_layers: int
    dim: int
    vectors: dict[tuple[str, ...], np.ndarray]

    def embed(self, sentences: Iterable[Sequence[str]]) -> Iterator[np.ndarray]:
        """Look up the vectors of each sentence."""
        return (self.vectors[tuple(words)] for words in sentences)


@dataclass(frozen=True)
class _Index:
    """The uses and words that are searched, with their vectors."""

    uses: Uses
    words: list[str]
    units: np.ndarray  # (words, dim) of the context-free layer, of length one


class NeighbourSearch:
    """Nearest-neighbour search with the vectors of one model."""

    def __init__(self, model: ServedModel, batcher: Batcher) -> None:
        self.model, self._batcher = model, batcher
        self._index: asyncio.Task[_Index] | None = None

    def prepare(self) -> asyncio.Task[_Index]:
        """Start to build the index: once, or again if it failed."""
        if self._index is None or (self._index.done() and (self._index.cancelled() or self._index.exception())):
            self._index = asyncio.create_task(self._build_index())
        return self._index

    async def find(self, words: list[str], position: int, layer: LayerChoice, top: int) -> dict[str, Any]:
        """The uses most similar to one in context, and the words most similar to its word without context."""
        index = await asyncio.shield(self.prepare())
        (vectors,) = await self._batcher.run(self.model.embedding, [words], [sentence_size(words)])
        use = Use(tuple(words), position)
        contextual = await asyncio.to_thread(self._nearest_uses, use, vectors, index.uses, layer, top)
        return {"word": use.word, "contextual": contextual, "static": await self._nearest_words(use.word, index, top)}

    def _precomputed(self, sentences: Sequence[Sequence[str]], vectors: Sequence[np.ndarray]) -> _Precomputed:
        encoder = self.model.encoder
        return _Precomputed(
            encoder.name, encoder.num_layers, encoder.dim, dict(zip(map(tuple, sentences), vectors, strict=True))
        )

    def _nearest_uses(
        self, use: Use, vectors: np.ndarray, uses: Uses, layer: LayerChoice, top: int
    ) -> list[dict[str, Any]]:
        try:
            found = nearest_uses(self._precomputed([use.words], [vectors]), use, uses, layer, top).found
        except InputError:  # a vector of zeros is similar to nothing
            return []
        return [
            {"sentence": list(each.use.words), "position": each.use.place, "similarity": each.cosine} for each in found
        ]

    async def _nearest_words(self, word: str, index: _Index, top: int) -> list[dict[str, Any]]:
        if isinstance(self.model.encoder, StaticEncoder):
            (found,) = await self._batcher.run(self._table_lookup, [(word, top)], [1])
            return [{"word": each.word, "similarity": each.cosine} for each in found]
        (vector,) = await self._batcher.run(self._without_context, [word], [1])
        cosines = index.units @ unit(vector)
        best = (row for row in np.argsort(-cosines, kind="stable") if index.words[row] != word)
        return [{"word": index.words[row], "similarity": float(cosines[row])} for row in islice(best, top)]

    async def _build_index(self) -> _Index:
        sentences = bundled_sentences()
        vectors = await self._batcher.run(
            self.model.embedding, sentences, [sentence_size(words) for words in sentences]
        )
        uses = await asyncio.to_thread(embed_all, self._precomputed(sentences, vectors), sentences)
        if isinstance(self.model.encoder, StaticEncoder):  # it has a table of its own
            return _Index(uses, [], np.zeros((0, 0)))
        words = list(dict.fromkeys([*_common_words(self.model), *chain.from_iterable(sentences)]))
        vectors = await self._batcher.run(self._without_context, words, [1] * len(words))
        return _Index(uses, words, unit(np.stack(vectors)))

    @cached_property
    def _without_context(self) -> BatchFunction:
        """The function from words to their context-free vectors (dim,)."""
        encoder = self.model.encoder
        if isinstance(encoder, ElmoEncoder):
            return BatchFunction(self.model.id, lambda words: list(encoder.embed_words(words)))
        return BatchFunction(
            self.model.id, lambda words: [one[0, 0] for one in encoder.embed([word] for word in words)]
        )

    @cached_property
    def _table_lookup(self) -> BatchFunction:
        """The function from (word, top) to the nearest words in a table of static vectors."""
        encoder = self.model.encoder
        assert isinstance(encoder, StaticEncoder)
        return BatchFunction(
            self.model.id, lambda pairs: [encoder.nearest(word, top) if word in encoder else [] for word, top in pairs]
        )


def _common_words(model: ServedModel) -> list[str]:
    """The most frequent words of the language model's vocabulary; none without a language model."""
    if model.language_model is None:
        return []
    vocabulary = model.language_model.vocabulary
    special = {vocabulary.bos, vocabulary.eos, vocabulary.unk}
    return [word for word in islice(vocabulary, _COMMON_WORDS) if word not in special]
