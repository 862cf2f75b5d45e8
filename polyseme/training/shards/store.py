"""Token shards on disk: the prepared text, opened here and written by `polyseme.training.shards.prepare`.

    index.json         what it was made from, and what there is
    vocabulary.tsv     word, tab, count: words of the training split, most frequent first, ties in alphabetical order
    00000.tokens       int32, little-endian: sentence after sentence, each with a 0 after it
    00000.words        the shard's own words in UTF-8, one per line; the first has id 1 and is the most frequent
    00000.documents    int64, little-endian: offsets in the tokens at which documents start
    held-out-00000.*   the same for the held-out split

Word ids are local to a shard, so a vocabulary of any size can be applied later, through a table of the shard's words.
A document may continue in the next shard, a sentence never does. One word per line is safe because no word contains
white space of any kind: both raw and tokenised text are split there.
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

LAYOUT = 1  # version of the file format
INDEX, VOCABULARY = "index.json", "vocabulary.tsv"
AGAIN = "prepare the text again"


class Shard(NamedTuple):
    """One shard of tokens, memory-mapped.

    Attributes:
        tokens: Word ids, with a 0 after each sentence; memory-mapped, read-only.
        words: The word of each id; that of 0 is the empty string, which is no word.
        documents: Offsets at which documents start. The first tokens may belong to one from the shard before.
    """

    tokens: np.ndarray
    words: list[str]
    documents: np.ndarray


@dataclass(frozen=True)
class SplitSize:
    """Size of the training or the held-out split; tokens are words and sentence ends."""

    tokens: int
    sentences: int
    documents: int
    characters: int
    shards: tuple[ShardSize, ...]

    @classmethod
    def from_index(cls, values: Mapping[str, Any]) -> SplitSize:
        """Read the size of a split from the index, as `ShardWriter.summary` wrote it."""
        return cls(**{**values, "shards": tuple(ShardSize(**shard) for shard in values["shards"])})


class Shards:
    """A folder of shards; ``len(shards)`` and ``shards[number]`` are those of the training split.

    Attributes:
        folder: Folder of the files.
        training: Size of the training split.
        held_out: Size of the held-out split.
        index: The contents of ``index.json``.
    """

    def __init__(self, folder: Path, index: Mapping[str, Any]) -> None:
        self.folder, self.index = folder, index
        self.training, self.held_out = (SplitSize.from_index(index[split]) for split in ("training", "held_out"))

    @classmethod
    def open(cls, folder: str | PathLike[str]) -> Shards:
        """Open a folder of shards, and check that all files are complete."""
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
        """Tokens (words and sentence ends) of the training split."""
        return self.training.tokens

    @property
    def num_words(self) -> int:
        """Running words of the training split."""
        return self.training.tokens - self.training.sentences

    @property
    def num_sentences(self) -> int:
        """Number of sentences of the training split."""
        return self.training.sentences

    @property
    def num_documents(self) -> int:
        """Number of documents of the training split."""
        return self.training.documents

    def held_out_documents(self, limit_tokens: int | None = None) -> Iterator[list[list[str]]]:
        """Held-out documents as sentences of words, up to a number of tokens, sentence ends included."""
        document: list[list[str]] = []
        left = self.held_out.tokens if limit_tokens is None else limit_tokens
        for starts, words in self._held_out_sentences():
            left -= len(words) + 1
            if left < 0:
                break
            if starts and document:
                yield document
                document = []
            document.append(words)
        if document:
            yield document

    def vocabulary(self, max_size: int | None = None, min_count: int = 1) -> tuple[Vocabulary, np.ndarray]:
        """Vocabulary of the most frequent words of the training split, and their frequencies (int64).

        The boundaries ``<S>`` and ``</S>`` occur once per sentence; ``<UNK>`` stands for every word that is left out.

        Args:
            max_size: Largest size, including the three special words.
            min_count: Lowest frequency of a word.
        """
        if max_size is not None and max_size < 4:
            raise InputError(f"a vocabulary needs at least 4 words, three of them special; got {max_size}")
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
        """Words of the training split with their frequencies, most frequent first."""
        path = self.folder / VOCABULARY
        with path.open(encoding="utf-8", newline="\n") as lines:
            for line in lines:
                word, _, count = line.rstrip("\n").rpartition("\t")
                if not word or not count.isdecimal():
                    raise FormatError(f"{path} is damaged: {line[:40]!r} is not a word with its count; {AGAIN}")
                yield word, int(count)

    def _all(self) -> tuple[ShardSize, ...]:
        return (*self.training.shards, *self.held_out.shards)

    def _held_out_sentences(self) -> Iterator[tuple[bool, list[str]]]:
        """Held-out sentences, and whether a document starts with each."""
        for size in self.held_out.shards:
            tokens, words, documents = _load(self.folder, size)
            document_starts = set(documents.tolist())
            start = 0
            for end in np.flatnonzero(tokens == 0).tolist():
                yield start in document_starts, [words[number] for number in tokens[start:end].tolist()]
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
        raise FormatError(f"{path} is not an index of shards that this version reads (layout {LAYOUT}); {AGAIN}")
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
        raise FormatError(f"{stem}.tokens is damaged: it has ids without words; {AGAIN}")
    return Shard(tokens, ["", *words], documents)
