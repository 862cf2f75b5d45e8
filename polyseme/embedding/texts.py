"""Text vectors: texts as people hand them in, tokenised, embedded, and pooled into one vector each."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import cast

import numpy as np

from polyseme.embedding.interfaces import Embedder
from polyseme.embedding.layers import POOLINGS, LayerChoice, choose
from polyseme.embedding.layers import pool as pool_words
from polyseme.embedding.similarity import as_vectors, cosine_matrix, unit
from polyseme.errors import ConfigError, InputError, nearest
from polyseme.text.tokenizer import tokenize_words

Text = str | Sequence[str]  # raw, or a list of words
Texts = str | Iterable[Text]


def encode_texts(embedder: Embedder, texts: Texts, *, pool: str, layers: LayerChoice, normalize: bool) -> np.ndarray:
    """One vector a text, (texts, dim), or (dim,) for a single string; see `Encoder.encode`."""
    if pool not in POOLINGS:
        raise ConfigError(f"pool must be 'mean' or 'max', not {pool!r}.{nearest(str(pool), POOLINGS)}")
    if isinstance(layers, str) and layers == "all":
        raise ConfigError("encode gives one vector a text; choose 'average', 'top', a layer's number or a mix")
    if isinstance(texts, str):
        return encode_texts(embedder, [texts], pool=pool, layers=layers, normalize=normalize)[0]
    vectors = [pool_words(choose(words, layers), pool) for words in _embed_texts(embedder, texts)]
    if not vectors:
        width = choose(np.zeros((embedder.num_layers, 0, embedder.dim), np.float32), layers).shape[-1]
        return np.zeros((0, width), np.float32)
    stacked = np.stack(vectors)
    return unit(stacked).astype(stacked.dtype) if normalize else stacked


def text_similarity(
    encode: Callable[[Texts], np.ndarray], first: Texts | np.ndarray, second: Texts | np.ndarray
) -> np.ndarray:
    """Cosine similarity (n, m) of texts, which are encoded, or of vectors, which are taken as they are."""

    def vectors_of(given: Texts | np.ndarray) -> np.ndarray:
        vectors = as_vectors(given)
        return np.atleast_2d(encode(cast("Texts", given))) if vectors is None else vectors

    return cosine_matrix(vectors_of(first), vectors_of(second))


def split_text(text: Text, number: int) -> list[list[str]]:
    """The sentences of a text: a string is tokenised, a list of words is one sentence."""
    if isinstance(text, str):
        return list(tokenize_words(text))
    if isinstance(text, Mapping | bytes) or not isinstance(text, Iterable):
        found = f"{type(text).__name__}: {text!r:.60}"
        raise InputError(
            f"text {number} should be a string or a list of words, not {found}; leave it out, or convert it with str()"
        )
    words = list(text)
    wrong = next((place for place, word in enumerate(words) if not isinstance(word, str)), None)
    if wrong is not None:
        found = f"{type(words[wrong]).__name__}: {words[wrong]!r:.60}"
        raise InputError(f"text {number}, word {wrong} should be a string, not {found}")
    return [words]


def _embed_texts(embedder: Embedder, texts: Iterable[Text]) -> Iterator[np.ndarray]:
    """Vectors (layers, words, dim) of all words of each text; its sentences are embedded one by one."""
    if isinstance(texts, Mapping | bytes) or getattr(texts, "ndim", 1) == 0 or not isinstance(texts, Iterable):
        raise InputError(f"texts should be strings or lists of words, not {type(texts).__name__}: {texts!r:.60}")
    counts: deque[int] = deque()

    def sentences() -> Iterator[list[str]]:
        for number, text in enumerate(texts):
            split = split_text(text, number)
            counts.append(max(1, len(split)))
            yield from split or [[]]

    held: list[np.ndarray] = []
    for vectors in embedder.embed(sentences()):
        held.append(vectors)
        if len(held) == counts[0]:
            yield held[0] if len(held) == 1 else np.concatenate(held, axis=1)
            counts.popleft()
            held = []
