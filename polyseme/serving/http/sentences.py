"""Sentences out of requests, within limits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from polyseme.serving.http.errors import Place, invalid, too_large
from polyseme.serving.http.schema import TextOrSentences
from polyseme.serving.settings import Limits
from polyseme.text.tokenizer import Sentence, tokenize

_LONG = 20_000  # characters that are split in another thread, so that nobody waits for it


class Read(NamedTuple):
    """Sentences, and where their words stand if they were raw text."""

    sentences: list[list[str]]
    spans: list[list[tuple[int, int]]] | None


async def read_sentences(asked: TextOrSentences, limits: Limits) -> Read:
    """What a request holds."""
    asked.check_one()
    if asked.text is not None:
        found = await split(asked.text, limits, ["text"])
        return Read([sentence.words for sentence in found], [sentence.spans for sentence in found])
    sentences = asked.sentences or []
    check(sentences, limits, ["sentences"])
    return Read(sentences, None)


async def split(text: str, limits: Limits, where: Place) -> list[Sentence]:
    """Raw text as sentences."""
    if len(text) < _LONG:
        return _split(text, limits, where)
    return await asyncio.to_thread(_split, text, limits, where)


async def one_sentence(sentence: str | list[str], limits: Limits, where: Place = ("sentence",)) -> list[str]:
    """One sentence as words, be it raw text that looks like several."""
    if isinstance(sentence, str):
        sentence = [word for part in await split(sentence, limits, where) for word in part.words]
    check_words(sentence, limits, where)
    if not sentence:
        raise invalid("there are no words in this sentence", where)
    return sentence


def check(sentences: Sequence[Sequence[str]], limits: Limits, where: Place) -> None:
    """Refuse what is too much, by its place."""
    if len(sentences) > limits.sentences:
        raise too_large(f"a request may have {limits.sentences:,} sentences, not {len(sentences):,}", where)
    total = 0
    for number, words in enumerate(sentences):
        check_words(words, limits, [*where, number])
        total += len(words)
        if total > limits.words:
            raise too_large(f"a request may have {limits.words:,} words; send several", [*where, number])


def check_words(words: Sequence[str], limits: Limits, where: Place) -> None:
    """Refuse a sentence that is too long, or has a word that is."""
    if len(words) > limits.sentence_words:
        raise too_large(f"a sentence may have {limits.sentence_words:,} words, not {len(words):,}", where)
    if words and max(map(len, words)) > limits.word_characters:
        place = next(place for place, word in enumerate(words) if len(word) > limits.word_characters)
        raise too_large(f"a word may have {limits.word_characters:,} characters", [*where, place])


def check_position(position: int, words: Sequence[str], where: Place = ("position",)) -> None:
    """Refuse a place outside of a sentence."""
    if position >= len(words):
        raise invalid(f"position should be 0 to {len(words) - 1} in this sentence of {len(words)} words", where)


def _split(text: str, limits: Limits, where: Place) -> list[Sentence]:
    found: list[Sentence] = []
    total = 0
    for sentence in tokenize(text):
        check_words(sentence.words, limits, where)
        total += len(sentence.words)
        if total > limits.words or len(found) >= limits.sentences:
            raise too_large(
                f"a request may have {limits.sentences:,} sentences and {limits.words:,} words; send several", where
            )
        found.append(sentence)
    return found
