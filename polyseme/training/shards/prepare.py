"""Raw text to token shards, on all cores, in bounded memory, whole or not at all.

The main process reads, decompresses and cuts; others find and number the words of a chunk; the main process lays the
numbers of chunks over those of the shard, a look-up for each distinct word of a chunk and none for each token.
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
_OURS = re.compile(rf"{INDEX}|{VOCABULARY}|(?:held-out-)?\d{{5,}}\.(?:tokens|words|documents)")


@dataclass(frozen=True)
class PrepareSettings:
    """How text is read, what of it is held out, and how much goes into a shard.

    Attributes:
        tokenized: A sentence a line, its words apart by white space; else raw text. Blank lines part documents.
        lowercase: Whether words lose their capitals.
        max_sentence: Words of a sentence at most; a longer one is cut there, and nothing is dropped.
        held_out: The share of the text that is not trained on; 0 for none; None chooses 1/256 or, for less than
            20 million characters, as much as gives some 20,000 words, but at most 1/20.
        held_out_unit: What is held out as a whole: ``documents``, ``lines`` (stretches of up to 20), or ``auto``, which
            takes lines where there are too few documents.
        held_out_from: Files to measure with, instead of a share of the text.
        shard_tokens: Tokens of a shard at most.
        max_types: Distinct words that are counted at a time; beyond, the rarest are forgotten.
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
            raise ConfigError(f"held_out is a share of the text, so from 0 to less than 1; not {self.held_out}")
        if self.held_out is not None and self.held_out_from:
            raise ConfigError("held_out takes a share of the text and held_out_from other files; say one of them")
        if self.held_out_unit not in UNITS:
            raise ConfigError(f"held_out_unit must be one of {', '.join(UNITS)}; not {self.held_out_unit!r}")
        if self.max_sentence < 1 or self.max_types < 4:
            raise ConfigError("max_sentence must be at least 1, and max_types at least 4")
        if not self.max_sentence < self.shard_tokens < 1 << 31:
            raise ConfigError(
                f"a shard must hold a sentence of {self.max_sentence} words and its end, and fewer than 2^31 tokens; "
                f"shard_tokens is {self.shard_tokens}"
            )


@dataclass(frozen=True)
class PrepareProgress:
    """How far the preparation is.

    Attributes:
        bytes_read: Bytes of text, after decompression.
        bytes_total: Of how many, or None where nobody knows (compressed files, standard input).
        tokens: Words and sentence ends so far.
        sentences: Sentences so far.
        seconds: Since the beginning.
        finished: Whether the folder is there.
        reused: Whether it was there before, made from the same text with the same settings.
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
        """Speed."""
        return self.bytes_read / 1e6 / max(self.seconds, 1e-9)


def prepare(
    paths: Paths,
    folder: str | PathLike[str],
    settings: PrepareSettings | None = None,
    workers: int | None = None,
) -> Iterator[PrepareProgress]:
    """Make shards of text, and report now and then; the last report says that the folder is there.

    Nothing is done where the folder was made from the same files (by path, size and time) with the same settings;
    standard input is always read anew.

    Args:
        paths: Files, folders, patterns, or ``-`` for standard input.
        folder: Where to; what is in it already must be shards, and is replaced.
        settings: How.
        workers: Processes beside this one; 1 starts none. [one a core]
    """
    settings, place = settings or PrepareSettings(), Path(folder).absolute()
    inputs = TextSources.find(paths, settings.held_out_from, place)
    made_from = {
        "settings": {**asdict(settings), "held_out_from": list(settings.held_out_from)},
        "inputs": inputs.identities(),
    }
    begun = time.monotonic()
    if found := _find(place, made_from, inputs):
        yield _report(found, begun)
        return
    work = _Work(settings, inputs)
    with atomic_folder(place) as unfinished:
        writers = _Writers(unfinished, settings)
        for encoded in work.run(workers):
            writers.add(encoded)
            yield writers.report(inputs.bytes_total, begun)
        if not writers.training.tokens:
            names = ", ".join(map(str, inputs.training[:3]))
            raise InputError(f"there are no words to train on in {names}; give more text, or hold less of it out")
        writers.close({**made_from, "rule": asdict(work.rule)})
    yield replace(writers.report(inputs.bytes_total, begun), finished=True)


class _Work:
    """The chunks of a text, and the rule that parts them."""

    def __init__(self, settings: PrepareSettings, inputs: TextSources) -> None:
        self.settings, self.inputs = settings, inputs
        self.rule = HeldOutRule()

    def run(self, workers: int | None) -> Iterator[EncodedChunk]:
        reading = EncodeOptions(self.settings.tokenized, self.settings.lowercase, self.settings.max_sentence)
        count = number_of_workers(workers, self.inputs.size)
        return map_processes(partial(encode_chunk, reading=reading), self._chunks(), count)

    def _chunks(self) -> Iterator[TextChunk]:
        yield from gather_chunks(self._training_units())
        held_out = cut_units(read_lines(self.inputs.held_out), HeldOutRule())
        yield from gather_chunks(unit._replace(held_out=True) for unit in held_out)

    def _training_units(self) -> Iterator[TextUnit]:
        lines, settings = read_lines(self.inputs.training), self.settings
        if not settings.held_out_from and settings.held_out != 0:
            sample = take_sample(lines)
            raw = not settings.tokenized
            self.rule = choose_rule(sample, raw, self.inputs.size or 0, settings.held_out, settings.held_out_unit)
            lines = chain(sample, lines)
        return cut_units(lines, self.rule)


class _Writers:
    """The two parts of a folder on their way to the disk."""

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

    def report(self, bytes_total: int | None, begun: float) -> PrepareProgress:
        tokens, sentences = (
            getattr(self.training, what) + getattr(self.held_out, what) for what in ("tokens", "sentences")
        )
        return PrepareProgress(self._bytes, bytes_total, tokens, sentences, time.monotonic() - begun)

    def close(self, made_from: dict[str, Any]) -> None:
        self.training.close()
        self.held_out.close()
        vocabulary = "".join(f"{word}\t{count}\n" for word, count in self._counts.falling()).encode()
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


def _find(folder: Path, made_from: dict[str, Any], inputs: TextSources) -> Shards | None:
    """What is there already and need not be made; what is not ours is not overwritten."""
    if not folder.exists():
        return None
    if not folder.is_dir() or not all(_OURS.fullmatch(path.name) for path in folder.iterdir()):
        raise OutputError(f"{folder} holds something else than shards, so it is not overwritten; choose another name")
    try:
        shards = Shards.open(folder)
    except FormatError:
        return None
    same = all(shards.index.get(key) == value for key, value in made_from.items())
    return shards if same and not inputs.read_once else None


def _report(shards: Shards, begun: float) -> PrepareProgress:
    size = int(shards.index["bytes"])
    tokens = shards.training.tokens + shards.held_out.tokens
    sentences = shards.training.sentences + shards.held_out.sentences
    return PrepareProgress(size, size, tokens, sentences, time.monotonic() - begun, finished=True, reused=True)
