"""Encoding of a text chunk in a worker process: tokenisation, and words to ids local to the chunk.

Imports no torch, so that worker processes start quickly.
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

BOUNDARY = "\n"  # marks the end of a sentence; no word can contain one


@dataclass(frozen=True)
class EncodeOptions:
    """Options of tokenising and encoding a text.

    Attributes:
        tokenized: One sentence per line, words separated by white space; else raw text.
        lowercase: Whether words are lowercased, after sentences and words have been found.
        max_sentence: Longest sentence in words; a longer one is split there.
    """

    tokenized: bool = False
    lowercase: bool = False
    max_sentence: int = 400


class EncodedChunk(NamedTuple):
    """A text chunk encoded as word ids.

    Attributes:
        words: The distinct words, joined by newlines; the first has id 1.
        tokens: Sentence after sentence, each with a 0 after it (uint16 where that is wide enough, else int32).
        documents: Offsets in these at which documents start (int64).
        sentences: Number of sentences.
        characters: Characters of the text, counting a line end after each unit.
        cut: Sentences that were split because they were too long.
        size: Size of the text in bytes.
        held_out: Whether it belongs to the held-out split.
    """

    words: str
    tokens: np.ndarray
    documents: np.ndarray
    sentences: int
    characters: int
    cut: int
    size: int
    held_out: bool


def encode_chunk(chunk: TextChunk, options: EncodeOptions) -> EncodedChunk:
    """Tokenise a text chunk and encode its words as ids."""
    stream: list[str] = []
    documents: list[int] = []
    sentences = cut = 0
    starts = False
    for text, text_starts in zip(chunk.texts, chunk.starts, strict=True):
        starts, first = starts or text_starts, len(stream)
        for words in split_lines(text.split("\n"), raw=not options.tokenized):
            if len(words) > options.max_sentence:
                cut += 1
            for part in _split_sentence(words, options.max_sentence):
                stream += part
                stream.append(BOUNDARY)
                sentences += 1
        if starts and len(stream) > first:  # a document without words does not count
            documents.append(first)
            starts = False
    words, tokens = assign_ids(stream, options.lowercase)
    if len(words) < 1 << 16:
        tokens = tokens.astype(np.uint16)  # halves what is sent to the main process
    characters = sum(map(len, chunk.texts)) + len(chunk.texts)
    offsets = np.array(documents, np.int64)
    return EncodedChunk("\n".join(words), tokens, offsets, sentences, characters, cut, chunk.size, chunk.held_out)


def assign_ids(stream: list[str], lowercase: bool) -> tuple[list[str], np.ndarray]:
    """Assign word ids: the distinct words in order of appearance, and the stream as ids from 1; a boundary is 0."""
    ids = _new_ids()
    tokens = np.fromiter(map(ids.__getitem__, stream), np.int32, len(stream))
    if lowercase:
        ids, cased = _new_ids(), ids
        tokens = np.fromiter((ids[word.lower()] for word in cased), np.int32, len(cased))[tokens]
    return list(islice(ids, 1, None)), tokens


def _new_ids() -> defaultdict[str, int]:
    """A dictionary that gives each new word the next id."""
    ids: defaultdict[str, int] = defaultdict()
    ids.default_factory = ids.__len__
    ids[BOUNDARY] = 0
    return ids


def _split_sentence(words: list[str], longest: int) -> Iterable[list[str]]:
    if len(words) <= longest:
        return (words,) if words else ()
    return _slices(words, longest)


def _slices(words: list[str], longest: int) -> Iterator[list[str]]:
    for start in range(0, len(words), longest):
        yield words[start : start + longest]
