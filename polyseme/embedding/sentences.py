"""Sentences as people hand them in: lists of words, or a sentence about what is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from polyseme.errors import InputError

BOUNDARIES = 2  # words that open and close a sentence


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


def size(words: Sequence[str]) -> int:
    """Words that a model reads for a sentence, the boundaries among them."""
    return len(words) + BOUNDARIES
