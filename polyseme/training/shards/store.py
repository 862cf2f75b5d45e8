"""Text made ready for training: token shards in a folder, opened here and made by `polyseme.training.shards.prepare`.

    index.json         what it was made from, and what there is
    vocabulary.tsv     word, tab, count: the words of the training part, the commonest first, ties in alphabetical order
    00000.tokens       int32, little-endian: sentence after sentence, each with a 0 after it
    00000.words        the shard's own words in UTF-8, one a line; the first has the number 1, and is the commonest here
    00000.documents    int64, little-endian: where in the tokens a document begins
    held-out-00000.*   the same for the part that is never trained on

Numbers of words belong to one shard, so a vocabulary of any kind and size can be laid over them: a table of a shard's
words does it. A document may go on in the next shard, a sentence never does. One word a line is safe because no word
holds white space of any kind: both ways of reading text cut there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from polyseme.errors import FormatError, InputError
from polyseme.text.vocabulary import BOS, EOS, RESERVED, UNK, Vocabulary
from polyseme.training.shards.writer import ShardSize

LAYOUT = 1  # the number of this way of laying things out
INDEX, VOCABULARY = "index.json", "vocabulary.tsv"
AGAIN = "prepare the text again"


class Shard(NamedTuple):
    """A stretch of text.

    Attributes:
        tokens: Numbers of words, 0 after each sentence; mapped into memory, read-only.
        words: The word of each number; that of 0 is the empty string, which is no word.
        documents: Where documents begin. The first tokens may belong to one that began in the shard before.
    """

    tokens: np.ndarray
    words: list[str]
    documents: np.ndarray


@dataclass(frozen=True)
class SplitSize:
    """The training text or the held-out one: how much there is, words and sentence ends together being tokens."""

    tokens: int
    sentences: int
    documents: int
    characters: int
    shards: tuple[ShardSize, ...]

    @classmethod
    def from_index(cls, values: Mapping[str, Any]) -> SplitSize:
        """As `ShardWriter.summary` wrote it."""
        return cls(**{**values, "shards": tuple(ShardSize(**shard) for shard in values["shards"])})


class Shards:
    """A folder of shards. Its length, and what it gives by number, are the training part's.

    Attributes:
        folder: Where they are.
        training: How much there is to train on.
        held_out: How much there is to measure with.
        index: Everything the index says.
    """

    def __init__(self, folder: Path, index: Mapping[str, Any]) -> None:
        self.folder, self.index = folder, index
        self.training, self.held_out = (SplitSize.from_index(index[part]) for part in ("training", "held_out"))

    @classmethod
    def open(cls, folder: str | PathLike[str]) -> Shards:
        """Open a folder and check that all of it is there."""
        place = Path(folder)
        index = _read_index(place)
        try:
            shards = cls(place, index)
            sizes = {f"{each.name}{suffix}": size for each in shards._all() for suffix, size in _bytes_of(each).items()}
            sizes[VOCABULARY] = int(index["vocabulary_bytes"])
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"{place / INDEX} is damaged ({error!r}); {AGAIN}") from error
        for name, size in sizes.items():
            _check_size(place / name, size)
        return shards

    def __len__(self) -> int:
        return len(self.training.shards)

    def __getitem__(self, number: int) -> Shard:
        return _load(self.folder, self.training.shards[number])

    @property
    def num_tokens(self) -> int:
        """Words and sentence ends of the training part."""
        return self.training.tokens

    @property
    def num_words(self) -> int:
        """Running words of the training part."""
        return self.training.tokens - self.training.sentences

    @property
    def num_sentences(self) -> int:
        """Sentences of the training part."""
        return self.training.sentences

    @property
    def num_documents(self) -> int:
        """Documents of the training part."""
        return self.training.documents

    @property
    def characters(self) -> int:
        """Characters of the training part, with line ends but without blank lines."""
        return self.training.characters

    @property
    def held_out_characters(self) -> int:
        """Characters of the held-out part, counted likewise."""
        return self.held_out.characters

    def held_out_documents(self, limit_tokens: int | None = None) -> Iterator[list[list[str]]]:
        """Documents of the held-out part, as sentences of words; no more than so many tokens, sentence ends counted."""
        document: list[list[str]] = []
        left = self.held_out.tokens if limit_tokens is None else limit_tokens
        for begins, words in self._held_out_sentences():
            left -= len(words) + 1
            if left < 0:
                break
            if begins and document:
                yield document
                document = []
            document.append(words)
        if document:
            yield document

    def vocabulary(self, max_size: int | None = None, min_count: int = 1) -> tuple[Vocabulary, np.ndarray]:
        """The commonest words of the training part, and how often each occurs (int64).

        The boundaries ``<S>`` and ``</S>`` occur once a sentence; ``<UNK>`` stands for every word that is not taken.

        Args:
            max_size: How many words at most, the three special ones among them.
            min_count: How often a word must occur.
        """
        if max_size is not None and max_size < 4:
            raise InputError(f"a vocabulary needs room for three special words and one more, so 4; not {max_size}")
        words, counts = [BOS, EOS, UNK], [self.num_sentences, self.num_sentences, 0]
        for word, count in self.word_counts():
            if count < min_count or (max_size is not None and len(words) >= max_size):
                break
            if word not in RESERVED:
                words.append(word)
                counts.append(count)
        counts[2] = self.num_words - sum(counts[3:])
        return Vocabulary(words), np.array(counts, np.int64)

    def word_counts(self) -> Iterator[tuple[str, int]]:
        """Words of the training part and how often they occur, the commonest first."""
        path = self.folder / VOCABULARY
        with path.open(encoding="utf-8", newline="\n") as lines:
            for line in lines:
                word, _, count = line.rstrip("\n").rpartition("\t")
                if not word or not count.isdecimal():
                    raise FormatError(f"{path} is damaged: {line[:40]!r} is no word with its count; {AGAIN}")
                yield word, int(count)

    def _all(self) -> tuple[ShardSize, ...]:
        return (*self.training.shards, *self.held_out.shards)

    def _held_out_sentences(self) -> Iterator[tuple[bool, list[str]]]:
        """Sentences, and whether a document begins with each."""
        for size in self.held_out.shards:
            tokens, words, documents = _load(self.folder, size)
            beginnings = set(documents.tolist())
            start = 0
            for end in np.flatnonzero(tokens == 0).tolist():
                yield start in beginnings, [words[number] for number in tokens[start:end].tolist()]
                start = end + 1


def _bytes_of(shard: ShardSize) -> dict[str, int]:
    return {".tokens": 4 * shard.tokens, ".words": shard.word_bytes, ".documents": 8 * shard.documents}


def _read_index(folder: Path) -> dict[str, Any]:
    path = folder / INDEX
    try:
        index = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise FormatError(f"{folder} holds no shards: there is no {INDEX} in it; prepare the text first") from error
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path} is not JSON: {error}") from error
    if not isinstance(index, dict) or index.get("polyseme shards") != LAYOUT:
        raise FormatError(f"{path} is no index of shards that this version reads (layout {LAYOUT}); {AGAIN}")
    return index


def _check_size(path: Path, expected: int) -> None:
    try:
        size = path.stat().st_size
    except OSError as error:
        raise FormatError(f"{path} is missing or cannot be read: {error.strerror}; {AGAIN}") from error
    if size != expected:
        raise FormatError(f"{path} should have {expected:,} bytes, not {size:,}; {AGAIN}")


def _load(folder: Path, size: ShardSize) -> Shard:
    stem = folder / size.name
    try:
        tokens = np.memmap(stem.with_suffix(".tokens"), np.dtype("<i4"), "r")
        words = stem.with_suffix(".words").read_bytes().decode().split("\n")
        documents = np.fromfile(stem.with_suffix(".documents"), np.dtype("<i8"))
    except (OSError, ValueError) as error:
        raise FormatError(f"{stem}.* cannot be read: {error}; {AGAIN}") from error
    if len(words) != size.words + 1 or words.pop() or len(tokens) != size.tokens or tokens[-1] != 0:
        raise FormatError(f"{stem}.* are damaged; {AGAIN}")
    if tokens.min() < 0 or tokens.max() > size.words:
        raise FormatError(f"{stem}.tokens is damaged: it has numbers without words; {AGAIN}")
    return Shard(tokens, ["", *words], documents)
