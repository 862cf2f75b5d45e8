"""Embedding strategies of a biLM: what native kernels, GPU tensors and plain torch have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from polyseme.backends.elmo.word_table import WordTable
from polyseme.embedding.batching import Wait, check_sentences, compute_in_order, sentence_size, window_words, windows
from polyseme.embedding.interfaces import EmbedSettings, EmbedStrategy
from polyseme.errors import InputError

Sentences = Sequence[Sequence[str]]  # a document


class ElmoStrategy(EmbedStrategy):
    """How a biLM embeds on one kind of hardware: sentences, documents, and words without context."""

    table: WordTable  # words encoded so far

    @abstractmethod
    def start_documents(self, documents: list[Sentences], settings: EmbedSettings) -> Wait[np.ndarray]:
        """Start a batch of documents: arrays (layers, words, dim), boundary words included, state carried on."""

    @abstractmethod
    def embed_words(self, words: Sequence[str]) -> np.ndarray:
        """Context-free vectors (words, dim) in float32: layer 0."""

    def embed_documents(self, documents: Iterable[Sentences], settings: EmbedSettings) -> Iterator[list[np.ndarray]]:
        """Arrays (layers, words, dim) of each document's sentences, in order, while documents come."""
        checked = (_check_document(document, number) for number, document in enumerate(documents))
        budget = self.word_budget(settings)
        start = partial(_start_cut, self.start_documents, settings)
        for window in windows(checked, _document_size, window_words(budget)):
            yield from compute_in_order(window, _document_size, budget, start)


def _start_cut(
    start: Callable[..., Wait[np.ndarray]], settings: EmbedSettings, documents: list[Sentences]
) -> Wait[list[np.ndarray]]:
    """Start documents; the arrays that come are cut into those of sentences."""
    wait = start(documents, settings)

    def finish() -> list[list[np.ndarray]]:
        vectors = []
        for array, document in zip(wait(), documents, strict=True):
            ends = np.cumsum([0, *map(sentence_size, document)])
            vectors.append([cut_sentence(array[:, begin:end], settings) for begin, end in pairwise(ends)])
        return vectors

    return finish


def cut_sentence(vectors: np.ndarray, settings: EmbedSettings) -> np.ndarray:
    """A copy of a sentence's vectors, with its boundary words or, by default, without."""
    return np.array(vectors if settings.boundaries else vectors[:, 1:-1])


def _check_document(document: Sentences, number: int) -> list[list[str]]:
    if isinstance(document, str):
        raise InputError(f"document {number} is a bare string where a list of sentences, each a list of words, belongs")
    return list(check_sentences(document))


def _document_size(document: Sentences) -> int:
    return sum(map(sentence_size, document))
