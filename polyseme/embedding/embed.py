"""One way of embedding for every encoder: streaming, order kept, memory constant."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch

from polyseme.embedding.batching import WINDOW, compute_in_order, windows
from polyseme.embedding.interfaces import Encoder, Piece
from polyseme.embedding.processes import Pool
from polyseme.errors import InputError
from polyseme.text.tokenizer import Sentence, tokenize

BOUNDARIES = 2  # words that open and close a sentence


def embed(encoder: Encoder, sentences: Iterable[Sequence[str]]) -> Iterator[np.ndarray]:
    """See `Encoder.embed`."""
    spans = windows(check_sentences(sentences), _size, WINDOW * encoder.settings.word_budget)
    if encoder.settings.workers == 1:
        return (vectors for window in spans for vectors in embed_window(encoder, window))
    return Pool(encoder, embed_window, encoder.settings.workers).map(spans)


def embed_text(encoder: Encoder, text: str) -> Iterator[Piece]:
    """See `Encoder.embed_text`."""
    if not isinstance(text, str):
        raise InputError(f"embed_text takes one string of raw text, not {type(text).__name__}; embed takes word lists")
    read: deque[Sentence] = deque()

    def sentences() -> Iterator[list[str]]:
        for sentence in tokenize(text):
            read.append(sentence)
            yield sentence.words

    return (Piece(*read.popleft(), vectors) for vectors in embed(encoder, sentences()))


def embed_window(encoder: Encoder, window: list[list[str]]) -> list[np.ndarray]:
    """The vectors of some sentences, computed in batches of like length."""
    return compute_in_order(window, _size, encoder.settings.word_budget, lambda batch: embed_batch(encoder, batch))


@torch.inference_mode()
def embed_batch(encoder: Encoder, sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
    """The vectors of some sentences in one pass."""
    training = encoder.training
    encoder.eval()
    try:
        layers, mask = encoder(encoder.collate(sentences).to(encoder.device))
    finally:
        encoder.train(training)
    array = layers.to(getattr(torch, encoder.settings.dtype)).cpu().numpy()
    lengths = mask.sum(dim=1).tolist()
    return [np.array(array[row, :, :length]) for row, length in enumerate(lengths)]


def check_sentences(sentences: Iterable[Sequence[str]]) -> Iterator[list[str]]:
    """Lists of words, or a sentence about what is wrong."""
    if isinstance(sentences, str):
        raise InputError(_bare_string("there came", sentences))
    return (_check_sentence(words, number) for number, words in enumerate(sentences))


def _check_sentence(words: Sequence[str], number: int) -> list[str]:
    if isinstance(words, str):
        raise InputError(_bare_string(f"sentence {number} is", words))
    try:
        checked = list(words)
    except TypeError:
        raise InputError(f"sentence {number} should be a list of words, not {type(words).__name__}") from None
    for place, word in enumerate(checked):
        if not isinstance(word, str):
            raise InputError(
                f"sentence {number}, word {place} should be a string, not {type(word).__name__}: {word!r:.60}"
            )
    return checked


def _bare_string(what: str, text: str) -> str:
    return (
        f"{what} a bare string, {text!r:.60}, where a list of words belongs; split it, or use embed_text for raw text"
    )


def _size(words: Sequence[str]) -> int:
    return len(words) + BOUNDARIES
