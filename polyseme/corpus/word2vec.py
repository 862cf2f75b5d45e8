"""Train word2vec on your own text, through gensim, to compare static and contextual vectors on equal data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from polyseme.errors import ConfigError, InputError, require

LONGEST = 10_000  # words of a sentence that gensim reads; it silently drops the rest

ProgressCallback = Callable[[int, int], None]  # epoch, 0 while counting words; sentences so far


@dataclass(frozen=True)
class Word2VecSettings:
    """Settings of word2vec training. One worker gives the same vectors for the same text and seed; more, nearly so.

    Attributes:
        dim: Dimension of the vectors.
        window: Context words on each side.
        epochs: Passes over the text.
        min_count: How often a word must occur.
        skip_gram: Predict the context from the word, slower but better for rare words; else CBOW.
        negative: Negative samples for each word.
        seed: Seed of the random number generator.
        workers: Threads.
    """

    dim: int = 100
    window: int = 5
    epochs: int = 5
    min_count: int = 5
    skip_gram: bool = False
    negative: int = 5
    seed: int = 1
    workers: int = 1

    def __post_init__(self) -> None:
        for name in ("dim", "window", "epochs", "min_count", "negative", "workers"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be 1 or more, not {getattr(self, name)}")
        if not 0 <= self.seed < 1 << 32:
            raise ConfigError(f"the seed must be between 0 and {(1 << 32) - 1:,}, not {self.seed}")


@dataclass(frozen=True, eq=False)
class Word2Vec:
    """The trained word2vec vectors.

    Attributes:
        words: The most frequent first.
        counts: How often each word occurs.
        vectors: Their vectors (words, dim).
    """

    words: list[str]
    counts: list[int]
    vectors: np.ndarray


def fit_word2vec(
    sentences: Iterable[Sequence[str]], settings: Word2VecSettings | None = None, report: ProgressCallback | None = None
) -> Word2Vec:
    """Train word2vec on sentences, which are read once to count words and then once an epoch.

    Args:
        sentences: Lists of words; an iterable that can be read several times.
        settings: Dimension, window, epochs and so on.
        report: Called every thousand sentences with the progress.
    """
    settings = settings or Word2VecSettings()
    if iter(sentences) is sentences:
        raise InputError("the sentences are read several times, but this iterator can be read only once; give a list")
    gensim = require("gensim.models", "static")
    text = _Text(sentences, report)
    model = gensim.Word2Vec(
        vector_size=settings.dim,
        window=settings.window,
        min_count=settings.min_count,
        sg=int(settings.skip_gram),
        negative=settings.negative,
        seed=settings.seed,
        workers=settings.workers,
    )
    model.build_vocab(text)
    text.check()
    if not len(model.wv):
        raise InputError(f"no word of the text occurs {settings.min_count} times; give more text, or a lower min_count")
    model.train(text, total_examples=model.corpus_count, epochs=settings.epochs)
    text.check()
    words = list(model.wv.index_to_key)
    return Word2Vec(words, [model.wv.get_vecattr(word, "count") for word in words], model.wv.vectors)


class _Text:
    """Sentences for gensim, long ones split, with progress.

    gensim reads in a thread of its own and waits for ever if that thread fails: so an error ends the reading, and
    `check` raises it.
    """

    def __init__(self, sentences: Iterable[Sequence[str]], report: ProgressCallback | None) -> None:
        self._sentences, self._report = sentences, report
        self._epoch = -1
        self._error: Exception | None = None

    def __iter__(self) -> Iterator[Sequence[str]]:
        self._epoch += 1
        try:
            for number, words in enumerate(self._sentences):
                if self._report and number % 1000 == 0:
                    self._report(self._epoch, number)
                yield from (words[first : first + LONGEST] for first in range(0, len(words), LONGEST))
        except Exception as error:
            self._error = error

    def check(self) -> None:
        if self._error is not None:
            raise self._error
