"""Index of a corpus: its words and their contextual vectors on disk, memory-mapped and searchable by word.

An index is a folder:

    index.json        what is inside, from which model, and how large each file must be
    sentences.txt     one sentence a line, its words separated by one space
    ends.i8           for each sentence, the offset of the byte after its line
    owners.u4         for each word of the corpus, the number of its sentence
    places.u4         and its place in there
    layer-2.f2        and its vector, in half precision: one file for each stored layer
    words.txt         the distinct words, one a line, sorted without regard to case
    counts.i8         for each of these, how many uses it has
    uses.i8           the numbers of its uses, word after word

Numbers are little-endian, and everything but the list of distinct words is memory-mapped. Writing takes a dozen bytes
of memory for each word of the corpus; the folder is written atomically.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from polyseme.corpus.uses import Uses
from polyseme.embedding.interfaces import Embedder
from polyseme.embedding.records import Record
from polyseme.embedding.similarity import unit
from polyseme.errors import ConfigError, FormatError, InputError
from polyseme.files import atomic_folder

VERSION = 1
_SAME = 0.999  # cosine above which vectors are the same, after rounding to half precision or on another device
_CHECKED = 3  # sentences that are embedded again to check that a model is the one of the index


@dataclass(frozen=True)
class Origin:
    """The model that an index was built with.

    Attributes:
        name: Its name.
        path: Its path at that time.
        num_layers: How many layers it has.
        dim: Dimension of its vectors.
        layers: The numbers of the layers that are stored.
    """

    name: str
    path: str
    num_layers: int
    dim: int
    layers: tuple[int, ...]


def write_index(records: Iterable[Record], folder: Path, origin: Origin) -> None:
    """Write an index of sentences with their vectors: (layers, words, dim), or (words, dim) of a single layer."""
    with atomic_folder(folder) as temporary:
        numbers: dict[str, int] = {}
        ids = array("I")
        with ExitStack() as stack:
            files = _Files(temporary, origin, stack)
            for record in records:
                files.append(record)
                ids.extend(numbers.setdefault(word, len(numbers)) for word in record.words)
        if not ids:
            raise InputError("there are no words to index; the corpus is empty")
        _write_table(temporary, numbers, np.frombuffer(ids, dtype=np.uintc))
        sizes = {path.name: path.stat().st_size for path in sorted(temporary.iterdir())}
        about = {"polyseme index": VERSION, "model": asdict(origin), "files": sizes}
        (temporary / "index.json").write_text(json.dumps(about, indent=2), "utf-8")


class _Files:
    """The files of an index that grow with every sentence."""

    def __init__(self, folder: Path, origin: Origin, stack: ExitStack) -> None:
        def create(name: str) -> BinaryIO:
            return stack.enter_context((folder / name).open("wb"))

        self.text, self.ends, self.owners, self.places = map(
            create, ("sentences.txt", "ends.i8", "owners.u4", "places.u4")
        )
        self.layers = [create(_layer_name(number)) for number in origin.layers]
        self.dim, self.sentences = origin.dim, 0

    def append(self, record: Record) -> None:
        words = len(record.words)
        self.text.write(" ".join(record.words).encode("utf-8", "surrogatepass") + b"\n")
        self.ends.write(self.text.tell().to_bytes(8, "little"))
        self.owners.write(np.full(words, self.sentences, dtype="<u4").tobytes())
        self.places.write(np.arange(words, dtype="<u4").tobytes())
        vectors = record.vectors.astype("<f2", copy=False).reshape(len(self.layers), words, self.dim)
        for file, layer in zip(self.layers, vectors, strict=True):
            file.write(layer.tobytes())
        self.sentences += 1


def _write_table(folder: Path, numbers: dict[str, int], ids: np.ndarray) -> None:
    """Write the inverted index: the uses of each word, words sorted without regard to case."""
    words = sorted(numbers, key=lambda word: (word.casefold(), word))
    rank = np.empty(len(words), dtype=np.int64)
    rank[[numbers[word] for word in words]] = np.arange(len(words))
    ranks = rank[ids]
    (folder / "words.txt").write_bytes("".join(f"{word}\n" for word in words).encode("utf-8", "surrogatepass"))
    (folder / "counts.i8").write_bytes(np.bincount(ranks, minlength=len(words)).astype("<i8").data)
    (folder / "uses.i8").write_bytes(np.argsort(ranks, kind="stable").astype("<i8").data)


class Index:
    """An opened index of a corpus; opening reads nothing but the sizes of its files.

    Attributes:
        folder: Its folder.
        origin: The model that it was built with.
        uses: Every word of the corpus with its vectors, memory-mapped.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.origin = _read_origin(self.folder)
        layers = [self._map(_layer_name(number)).reshape(-1, self.origin.dim) for number in self.origin.layers]
        self.uses = Uses(
            _Sentences(self.folder / "sentences.txt", self._map("ends.i8")),
            self._map("owners.u4"),
            self._map("places.u4"),
            layers,
            self.origin.layers,
            self.origin.num_layers,
        )

    def of(self, word: str, match_case: bool = False, limit: int | None = None, seed: int = 0) -> Uses:
        """The uses of one word, their vectors in memory; of more than ``limit``, a uniform random sample."""
        found = [self._uses_of(number) for number in self._spellings(word, match_case)]
        if not found:
            raise InputError(f"{self.folder} has no use of {word!r}; try another form of the word, or index more text")
        chosen = np.sort(np.concatenate(found))
        if limit is not None and len(chosen) > limit:
            chosen = np.sort(np.random.default_rng(seed).choice(chosen, limit, replace=False))
        return self.uses.take(chosen)

    def check(self, embedder: Embedder) -> None:
        """Refuse a model other than the index's: embed the first sentences again, compare with the stored vectors."""
        mine = self.origin
        built = f"{self.folder} was built with {mine.name!r} ({_shape(mine)})"
        remedy = "use that model, or index the corpus again with this one"
        if _shape(mine) != _shape(embedder):
            raise ConfigError(f"{built}, not with {embedder.name!r} ({_shape(embedder)}); {remedy}")
        first = list(islice((words for words in self.uses.sentences if words), _CHECKED))
        given = np.concatenate(list(embedder.embed(first)), axis=1)
        for number, layer in zip(mine.layers, self.uses.layers, strict=True):
            if not _same_vectors(given[number], layer[: given.shape[1]].astype(np.float32)):
                raise ConfigError(f"{built}; {embedder.name!r} gives different vectors for its sentences; {remedy}")

    @cached_property
    def words(self) -> list[str]:
        """The distinct words, sorted without regard to case."""
        return (self.folder / "words.txt").read_bytes().decode("utf-8", "surrogatepass").split("\n")[:-1]

    @cached_property
    def _firsts(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self._map("counts.i8"))])

    def _spellings(self, word: str, match_case: bool) -> list[int]:
        folded = word.casefold()
        number, found = bisect_left(self.words, folded, key=str.casefold), []
        while number < len(self.words) and self.words[number].casefold() == folded:
            if not match_case or self.words[number] == word:
                found.append(number)
            number += 1
        return found

    def _uses_of(self, number: int) -> np.ndarray:
        first, last = self._firsts[number : number + 2]
        return np.array(self._map("uses.i8")[first:last])

    def _map(self, name: str) -> np.ndarray:
        return np.memmap(self.folder / name, f"<{name[-2:]}", "r")


class _Sentences(Sequence[list[str]]):
    """The sentences of an index on disk, by number."""

    def __init__(self, path: Path, ends: np.ndarray) -> None:
        self._bytes = np.memmap(path, np.uint8, "r")
        self._ends = ends

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, number: Any) -> Any:  # noqa: ANN401 - by number only; nobody needs slices
        if not 0 <= number < len(self):
            raise IndexError(number)
        first = int(self._ends[number - 1]) if number else 0
        line = self._bytes[first : int(self._ends[number]) - 1].tobytes().decode("utf-8", "surrogatepass")
        return line.split(" ") if line else []


def _same_vectors(given: np.ndarray, stored: np.ndarray) -> bool:
    """Whether vectors are the same up to rounding; a vector of zeros equals only another of zeros."""
    cosines = (unit(given) * unit(stored)).sum(axis=1)
    empty = ~given.any(axis=1) & ~stored.any(axis=1)
    return bool(np.all((cosines > _SAME) | empty))


def _shape(model: Embedder | Origin) -> str:
    return f"{model.num_layers} layer{'s' * (model.num_layers > 1)} of {model.dim}"


def _layer_name(number: int) -> str:
    return f"layer-{number}.f2"


def _read_origin(folder: Path) -> Origin:
    """Read the description of an index, and check that all its files are complete."""
    remedy = "build it with: polyseme index"
    try:
        about = json.loads((folder / "index.json").read_bytes())
        version, model, sizes = about["polyseme index"], about["model"], dict(about["files"])
        origin = Origin(**{**model, "layers": tuple(model["layers"])})
    except (FileNotFoundError, NotADirectoryError):
        raise FormatError(f"{folder} is not an index: it has no index.json; {remedy}") from None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise FormatError(f"{folder}/index.json cannot be read ({error}); {remedy}") from error
    if version != VERSION:
        raise FormatError(f"{folder} is an index of version {version}, this polyseme reads version {VERSION}; {remedy}")
    for name, size in sizes.items():
        found = (folder / name).stat().st_size if (folder / name).is_file() else 0
        if found != size:
            raise FormatError(
                f"{folder}/{name} has {found:,} bytes instead of {size:,}: the index is damaged; {remedy}"
            )
    return origin
