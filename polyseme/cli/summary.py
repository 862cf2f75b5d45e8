"""Summaries of embedding jobs: what is in the file that was written, how fast it went, what the model misread."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from polyseme.cli.output import plural
from polyseme.cli.progress import note

if TYPE_CHECKING:
    from polyseme.embedding.encoder import Encoder
    from polyseme.embedding.records import Record

_SHAPES = {1: "a vector of {} dimensions per sentence", 2: "a vector of {} dimensions per word"}


class FileContents:
    """Counts the sentences and words of an output file as it is written, and notes the shape of the vectors."""

    def __init__(self) -> None:
        self.sentences = self.words = 0
        self._shape: tuple[int, ...] = ()
        self._dtype = ""

    def count(self, records: Iterable[Record]) -> Iterator[Record]:
        """The same records, counted on their way to the file."""
        for record in records:
            self.sentences += 1
            self.words += len(record.words)
            self._shape, self._dtype = record.vectors.shape, str(record.vectors.dtype)
            yield record

    def __str__(self) -> str:
        counts = f"{plural(self.sentences, 'sentence')}, {plural(self.words, 'word')}"
        if not self._shape:
            return counts
        layers = f"{plural(self._shape[0], 'layer')} of {{}} dimensions per word"
        return f"{counts}, {_SHAPES.get(len(self._shape), layers).format(self._shape[-1])}, {self._dtype}"


class EmbedStatistics:
    """Speed of an embedding run, and the words that the model could not read in full."""

    def __init__(self, encoder: Encoder, already: int) -> None:
        self._encoder, self._already = encoder, already
        self._words = 0
        self._misread: Counter[str] = Counter()
        self._started = time.monotonic()
        self._seconds = 0.0

    def watch(self, embedded: Iterable[list[str]]) -> None:
        """Run the job to its end, counting the sentences that it gives."""
        for words in embedded:
            self._words += len(words)
            self._misread.update(self._encoder.misread(words))
        self._seconds = max(time.monotonic() - self._started, 1e-9)

    def report(self) -> None:
        """Print speed, sentences of an earlier run, and words that were cropped or unknown."""
        earlier = f"; {plural(self._already, 'sentence')} came from an earlier run" if self._already else ""
        note(f"embedded {plural(self._words, 'word')}, {self._words / self._seconds:,.0f} words/s{earlier}")
        for what, count in self._misread.items():
            if count:
                note(f"{count:,} words were {what}")
