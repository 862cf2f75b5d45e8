"""Preparation of token shards from raw text: in parallel, in bounded memory, written atomically.

The main process reads, decompresses and splits the text into chunks; worker processes tokenise and encode them; the
main process maps the word ids of a chunk to those of the shard, with one look-up per distinct word and none per token.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

from polyseme.errors import ConfigError, FormatError, InputError, OutputError
from polyseme.files import atomic_folder
from polyseme.parallel import map_processes, number_of_workers
from polyseme.text.corpus import Paths
from polyseme.training.shards.encode import EncodedChunk, EncodeOptions, encode_chunk
from polyseme.training.shards.sources import (
    HeldOutRule,
    TextChunk,
    TextSources,
    TextUnit,
    choose_rule,
    cut_units,
    gather_chunks,
    read_lines,
    take_sample,
)
from polyseme.training.shards.store import INDEX, LAYOUT, VOCABULARY, Shards
from polyseme.training.shards.writer import ShardWriter, WordCounts

UNITS = ("auto", "documents", "lines")
_SHARD_FILES = re.compile(rf"{INDEX}|{VOCABULARY}|(?:held-out-)?\d{{5,}}\.(?:tokens|words|documents)")


@dataclass(frozen=True)
class PrepareSettings:
    """Settings of text preparation: tokenisation, the held-out split, the size of shards.

    Attributes:
        tokenized: One sentence per line, words separated by white space; else raw text. Blank lines separate documents.
        lowercase: Whether words are lowercased.
        max_sentence: Longest sentence in words; a longer one is split there, and nothing is dropped.
        held_out: Fraction of the text that is not trained on; 0 for none; None chooses 1/256 or, for less than
            20 million characters, enough for about 20,000 words, but at most 1/20.
        held_out_unit: Unit of the held-out split: ``documents``, ``lines`` (runs of up to 20 lines), or ``auto``, which
            chooses lines where there are too few documents.
        held_out_from: Files to evaluate on, instead of a fraction of the text.
        shard_tokens: Most tokens in a shard.
        max_types: Most distinct words that are counted at a time; beyond it the rarest are dropped.
    """

    tokenized: bool = False
    lowercase: bool = False
    max_sentence: int = 400
    held_out: float | None = None
    held_out_unit: str = "auto"
    held_out_from: tuple[str, ...] = ()
    shard_tokens: int = 1 << 24
    max_types: int = 4_000_000

    def __post_init__(self) -> None:
        if self.held_out is not None and not 0 <= self.held_out < 1:
            raise ConfigError(f"held_out must be a fraction of the text, from 0 to less than 1; got {self.held_out}")
        if self.held_out is not None and self.held_out_from:
            raise ConfigError(
                "held_out takes a fraction of the text and held_out_from takes other files; give only one of them"
            )
        if self.held_out_unit not in UNITS:
            raise ConfigError(f"held_out_unit must be one of {', '.join(UNITS)}; got {self.held_out_unit!r}")
        if self.max_sentence < 1 or self.max_types < 4:
            raise ConfigError("max_sentence must be at least 1, and max_types at least 4")
        if not self.max_sentence < self.shard_tokens < 1 << 31:
            raise ConfigError(
                f"shard_tokens must be larger than max_sentence ({self.max_sentence}) and less than 2^31; "
                f"got {self.shard_tokens}"
            )


@dataclass(frozen=True)
class PrepareProgress:
    """Progress of the text preparation.

    Attributes:
        bytes_read: Bytes of text read, after decompression.
        bytes_total: Bytes of the whole text, or None where it is unknown (compressed files, standard input).
        tokens: Words and sentence ends so far.
        sentences: Sentences so far.
        seconds: Seconds since the start.
        finished: Whether the folder is complete.
        reused: Whether it existed before, made from the same text with the same settings.
    """

    bytes_read: int
    bytes_total: int | None
    tokens: int
    sentences: int
    seconds: float
    finished: bool = False
    reused: bool = False

    @property
    def megabytes_per_second(self) -> float:
        """Reading speed in megabytes of text per second."""
        return self.bytes_read / 1e6 / max(self.seconds, 1e-9)


def prepare(
    paths: Paths,
    folder: str | PathLike[str],
    settings: PrepareSettings | None = None,
    workers: int | None = None,
) -> Iterator[PrepareProgress]:
    """Prepare shards from text, yielding progress; the last item has ``finished`` set.

    A folder that was made from the same files (by path, size and time) with the same settings is reused; standard input
    is always read again.

    Args:
        paths: Files, folders, patterns, or ``-`` for standard input.
        folder: Output folder; existing shards in it are replaced, anything else is refused.
        settings: Settings of the preparation.
        workers: Worker processes; 1 starts none. [one per core]
    """
    settings, place = settings or PrepareSettings(), Path(folder).absolute()
    sources = TextSources.find(paths, settings.held_out_from, place)
    made_from = {
        "settings": {**asdict(settings), "held_out_from": list(settings.held_out_from)},
        "inputs": sources.identities(),
    }
    started = time.monotonic()
    if found := _find_reusable(place, made_from, sources):
        yield _report(found, started)
        return
    work = _Preparation(settings, sources)
    with atomic_folder(place) as unfinished:
        writers = _Writers(unfinished, settings)
        for encoded in work.run(workers):
            writers.add(encoded)
            yield writers.report(sources.bytes_total, started)
        if not writers.training.tokens:
            names = ", ".join(map(str, sources.training[:3]))
            raise InputError(f"there are no words to train on in {names}; give more text, or lower held_out")
        writers.close({**made_from, "rule": asdict(work.rule)})
    yield replace(writers.report(sources.bytes_total, started), finished=True)


class _Preparation:
    """The chunks of a text, split into training and held-out text."""

    def __init__(self, settings: PrepareSettings, sources: TextSources) -> None:
        self.settings, self.sources = settings, sources
        self.rule = HeldOutRule()

    def run(self, workers: int | None) -> Iterator[EncodedChunk]:
        options = EncodeOptions(self.settings.tokenized, self.settings.lowercase, self.settings.max_sentence)
        count = number_of_workers(workers, self.sources.size)
        return map_processes(partial(encode_chunk, options=options), self._chunks(), count)

    def _chunks(self) -> Iterator[TextChunk]:
        yield from gather_chunks(self._training_units())
        held_out = cut_units(read_lines(self.sources.held_out), HeldOutRule())
        yield from gather_chunks(unit._replace(held_out=True) for unit in held_out)

    def _training_units(self) -> Iterator[TextUnit]:
        lines, settings = read_lines(self.sources.training), self.settings
        if not settings.held_out_from and settings.held_out != 0:
            sample = take_sample(lines)
            raw = not settings.tokenized
            self.rule = choose_rule(sample, raw, self.sources.size or 0, settings.held_out, settings.held_out_unit)
            lines = chain(sample, lines)
        return cut_units(lines, self.rule)


class _Writers:
    """Writers of the training and the held-out split."""

    def __init__(self, folder: Path, settings: PrepareSettings) -> None:
        self._folder = folder
        self._counts = WordCounts(settings.max_types)
        self.training = ShardWriter(folder, "", settings.shard_tokens, self._counts)
        self.held_out = ShardWriter(folder, "held-out-", settings.shard_tokens)
        self._bytes = self._cut = 0

    def add(self, encoded: EncodedChunk) -> None:
        (self.held_out if encoded.held_out else self.training).add(encoded)
        self._bytes += encoded.size
        self._cut += encoded.cut

    def report(self, bytes_total: int | None, started: float) -> PrepareProgress:
        tokens, sentences = (
            getattr(self.training, what) + getattr(self.held_out, what) for what in ("tokens", "sentences")
        )
        return PrepareProgress(self._bytes, bytes_total, tokens, sentences, time.monotonic() - started)

    def close(self, made_from: dict[str, Any]) -> None:
        self.training.close()
        self.held_out.close()
        vocabulary = "".join(f"{word}\t{count}\n" for word, count in self._counts.most_common()).encode()
        (self._folder / VOCABULARY).write_bytes(vocabulary)
        index = {
            "polyseme shards": LAYOUT,
            **made_from,
            "training": self.training.summary(),
            "held_out": self.held_out.summary(),
            "bytes": self._bytes,
            "sentences_cut": self._cut,
            "types": len(self._counts.counts),
            "count_error": self._counts.error,
            "vocabulary_bytes": len(vocabulary),
        }
        (self._folder / INDEX).write_text(json.dumps(index, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _find_reusable(folder: Path, made_from: dict[str, Any], sources: TextSources) -> Shards | None:
    """Open shards that can be reused; a folder that holds anything else is refused."""
    if not folder.exists():
        return None
    if not folder.is_dir() or not all(_SHARD_FILES.fullmatch(path.name) for path in folder.iterdir()):
        raise OutputError(
            f"{folder} contains files that are not shards, so it is not overwritten; choose another folder"
        )
    try:
        shards = Shards.open(folder)
    except FormatError:
        return None
    same = all(shards.index.get(key) == value for key, value in made_from.items())
    return shards if same and not sources.read_once else None


def _report(shards: Shards, started: float) -> PrepareProgress:
    size = int(shards.index["bytes"])
    tokens = shards.training.tokens + shards.held_out.tokens
    sentences = shards.training.sentences + shards.held_out.sentences
    return PrepareProgress(size, size, tokens, sentences, time.monotonic() - started, finished=True, reused=True)
