"""What a worker process does with a chunk of text: words to numbers that are its own, as one array.

Imports no torch, so that a process starts in an instant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from polyseme.text.corpus import split_lines
from polyseme.training.shards.sources import TextChunk

BOUNDARY = "\n"  # stands after a sentence; no word can hold one


@dataclass(frozen=True)
class EncodeOptions:
    """How text is read.

    Attributes:
        tokenized: A sentence a line, its words apart by white space; else raw text.
        lowercase: Whether words lose their capitals, after sentences and words have been found.
        max_sentence: Words of a sentence at most; a longer one is cut there.
    """

    tokenized: bool = False
    lowercase: bool = False
    max_sentence: int = 400


class EncodedChunk(NamedTuple):
    """A chunk of text in numbers.

    Attributes:
        words: The distinct words, joined by newlines; the first has the number 1.
        tokens: Sentence after sentence, each with a 0 after it (uint16 where that is wide enough, else int32).
        documents: Where in these a document begins (int64).
        sentences: How many there are.
        characters: Of the text, a line end after each unit among them.
        cut: Sentences that were too long.
        size: Bytes of the text.
        held_out: Which part it belongs to.
    """

    words: str
    tokens: np.ndarray
    documents: np.ndarray
    sentences: int
    characters: int
    cut: int
    size: int
    held_out: bool


def encode_chunk(chunk: TextChunk, reading: EncodeOptions) -> EncodedChunk:
    """Find the words and number them."""
    stream: list[str] = []
    documents: list[int] = []
    sentences = cut = 0
    begins = False
    for text, text_begins in zip(chunk.texts, chunk.begins, strict=True):
        begins, start = begins or text_begins, len(stream)
        for words in split_lines(text.split("\n"), raw=not reading.tokenized):
            if len(words) > reading.max_sentence:
                cut += 1
            for part in _parts(words, reading.max_sentence):
                stream += part
                stream.append(BOUNDARY)
                sentences += 1
        if begins and len(stream) > start:  # a document without words is none
            documents.append(start)
            begins = False
    words, tokens = number_words(stream, reading.lowercase)
    if len(words) < 1 << 16:
        tokens = tokens.astype(np.uint16)  # half as much to send to the main process
    characters = sum(map(len, chunk.texts)) + len(chunk.texts)
    offsets = np.array(documents, np.int64)
    return EncodedChunk("\n".join(words), tokens, offsets, sentences, characters, cut, chunk.size, chunk.held_out)


def number_words(stream: list[str], lowercase: bool) -> tuple[list[str], np.ndarray]:
    """The distinct words in order of appearance, and the stream in their numbers from 1; a boundary is 0."""
    numbers = _numbers()
    tokens = np.fromiter(map(numbers.__getitem__, stream), np.int32, len(stream))
    if lowercase:
        numbers, before = _numbers(), numbers
        tokens = np.fromiter((numbers[word.lower()] for word in before), np.int32, len(before))[tokens]
    return list(islice(numbers, 1, None)), tokens


def _numbers() -> defaultdict[str, int]:
    """A table that gives each new word the next number."""
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    numbers[BOUNDARY] = 0
    return numbers


def _parts(words: list[str], longest: int) -> Iterable[list[str]]:
    if len(words) <= longest:
        return (words,) if words else ()
    return _cut(words, longest)


def _cut(words: list[str], longest: int) -> Iterator[list[str]]:
    for start in range(0, len(words), longest):
        yield words[start : start + longest]
