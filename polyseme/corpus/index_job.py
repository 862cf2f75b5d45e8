"""Build an index: embed a corpus once, in parts that survive an interruption, then merge them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from polyseme.corpus.index import Origin, write_index
from polyseme.embedding.encoder import Encoder
from polyseme.embedding.job import OutputSpec, Unit, embed_into, single_sentences
from polyseme.embedding.layers import LayerChoice, needed_layers
from polyseme.embedding.parts import Parts, parts_folder
from polyseme.embedding.records import Record
from polyseme.errors import ConfigError, OutputError
from polyseme.files import check_absent


class IndexJob:
    """Builds one index: `run`, then `finish`; ``resume`` continues an interrupted run.

    Args:
        embedder: The model.
        folder: The folder of the index; unfinished parts are kept beside it.
        layer: ``all``, or the one layer to store, which takes less space.
        model: The path of the model, so that the index can load it again.
        resume: Continue an interrupted run.
        overwrite: Replace an existing index, and discard an interrupted run.
    """

    def __init__(
        self,
        embedder: Encoder,
        folder: Path,
        layer: LayerChoice = "all",
        model: str = "",
        resume: bool = False,
        overwrite: bool = False,
    ) -> None:
        _check_folder(folder, overwrite or (resume and parts_folder(folder).exists()))
        self.embedder, self.folder = embedder, folder
        numbers = needed_layers(layer, embedder.num_layers)
        if layer != "all" and len(numbers) != 1:
            raise ConfigError(f"an index stores all layers or one: give all, top or a number, not {layer!r}")
        self.origin = Origin(embedder.name, model, embedder.num_layers, embedder.dim, numbers)
        self.spec = OutputSpec("all" if layer == "all" else numbers[0], dtype="float16")
        self.parts = self._begin(resume, overwrite)

    def run(self, sentences: Iterable[list[str]]) -> Iterator[list[str]]:
        """Embed what is not embedded yet, and yield each sentence when it is done; empty ones are skipped."""
        filled = (words for words in sentences if words)
        return embed_into(self.parts, single_sentences(filled), self._embed, self.spec)

    def finish(self, watch: Callable[[Iterator[Record]], Iterator[Record]] = iter) -> None:
        """Merge the parts into an index, and remove them; ``watch`` may count the records on their way."""
        write_index(watch(self.parts.read()), self.folder, self.origin)
        self.parts.remove()

    def _begin(self, resume: bool, overwrite: bool) -> Parts:
        folder = parts_folder(self.folder)
        settings = {"model": self.embedder.fingerprint(), "made": repr(self.spec)}
        if resume:
            return Parts.resume(folder, settings)
        if overwrite and folder.is_dir():
            Parts(folder).remove()
        return Parts.create(folder, settings)

    def _embed(self, units: Iterator[Unit]) -> Iterator[list[np.ndarray]]:
        return ([vectors] for vectors in self.embedder.embed(words for (words,) in units))


def _check_folder(folder: Path, overwrite: bool) -> None:
    """Refuse to overwrite anything that exists, unless ``overwrite`` is set and it is an index."""
    check_absent(folder, overwrite)
    if folder.exists() and not (folder / "index.json").is_file():
        raise OutputError(f"{folder} exists and is not an index, so it is not replaced; choose another name")
