"""Sentences as people hand them in: lists of words, or a sentence about what is wrong."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized

import numpy as np

from polyseme.errors import InputError
from polyseme.text.word_encoder import BOUNDARIES


def check_sentences(sentences: Iterable[Sequence[str]]) -> Iterator[list[str]]:
    """Lists of words, or a sentence about what is wrong."""
    if isinstance(sentences, str):
        raise InputError(_bare_string("there came", sentences))
    if not isinstance(sentences, Iterable):
        raise InputError(f"sentences should be lists of words, not {type(sentences).__name__}")
    return (_check_sentence(words, number) for number, words in enumerate(sentences))


def _check_sentence(words: Sequence[str], number: int) -> list[str]:
    if isinstance(words, str):
        raise InputError(_bare_string(f"sentence {number} is", words))
    try:
        checked = list(words)
    except TypeError:
        raise InputError(f"sentence {number} should be a list of words, not {type(words).__name__}") from None
    try:
        "".join(checked)  # the quickest test for nothing but strings
    except TypeError:
        place, word = next((place, word) for place, word in enumerate(checked) if not isinstance(word, str))
        raise InputError(
            f"sentence {number}, word {place} should be a string, not {type(word).__name__}: {word!r:.60}"
        ) from None
    return checked


class Numbered(list[np.ndarray]):
    """Sentences as numbers of distinct words. The words themselves are there once."""

    words: list[str]


def numbered_windows(sentences: Iterable[Sequence[str]], limit: int) -> Iterator[Numbered]:
    """Cut a stream into windows of about so many words, and number their words while they are at hand.

    It is for those who are in a hurry: a word is looked at once, and none is kept but the distinct ones.
    """
    stream = enumerate(sentences if not isinstance(sentences, str) else check_sentences(sentences))
    first, window, total = 0, Numbered(), 0
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    for position, words in stream:
        window.append(_number(words, position, numbers))
        total += size(window[-1])
        if total >= limit:
            yield _checked(window, numbers, first)
            first, window, total = position + 1, Numbered(), 0
            numbers.clear()
    if window:
        yield _checked(window, numbers, first)


def _number(words: Sequence[str], position: int, numbers: defaultdict[str, int]) -> np.ndarray:
    if type(words) not in (list, tuple):
        words = _check_sentence(words, position)
    try:
        return np.fromiter(map(numbers.__getitem__, words), np.int64, len(words))
    except TypeError:  # something that is no word and cannot even be looked up
        _check_sentence(words, position)
        raise


def _checked(window: Numbered, numbers: Mapping[str, int], first: int) -> Numbered:
    window.words = list(numbers)
    wrong = [number for number, word in enumerate(window.words) if not isinstance(word, str)]
    if wrong:
        row, place = next((row, at[0]) for row, ids in enumerate(window) if len(at := np.flatnonzero(ids == wrong[0])))
        _check_sentence([*[""] * int(place), window.words[wrong[0]]], first + row)
    return window


def _bare_string(what: str, text: str) -> str:
    return (
        f"{what} a bare string, {text!r:.60}, where a list of words belongs; split it, or use embed_text for raw text"
    )


def size(words: Sized) -> int:
    """Words that a model reads for a sentence, the boundaries among them."""
    return len(words) + BOUNDARIES
