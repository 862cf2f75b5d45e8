"""Static word vectors as an encoder: GloVe, word2vec, fastText or distilled; one vector a word in any context."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.embedding.batching import check_sentences
from polyseme.embedding.encoder import Encoder, hash_weights
from polyseme.embedding.interfaces import EmbedSettings
from polyseme.embedding.similarity import search
from polyseme.errors import ConfigError, FormatError, InputError, nearest
from polyseme.formats.vectors import open_vectors, recognise
from polyseme.formats.vectors.table import VectorTable

Unknown = Literal["zero", "mean"]
_KEPT = 1 << 15  # words whose rows are remembered
_NAMES = (".vec", ".glove", ".txt")  # a file called so is meant to be vectors, whatever is wrong with it


class NearestWord(NamedTuple):
    """A nearest neighbour: a word, and the cosine similarity of its vector with the query."""

    word: str
    cosine: float


@dataclass(frozen=True)
class Coverage:
    """Vocabulary coverage: how many words were found, and how."""

    exact: int = 0
    lowered: int = 0  # found in lower case only
    unknown: int = 0

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(self.exact + other.exact, self.lowered + other.lowered, self.unknown + other.unknown)


class StaticBatch(NamedTuple):
    """A batch of sentences, as indices of distinct words."""

    places: Tensor  # (B, T)
    mask: Tensor  # (B, T)
    rows: Tensor  # (V,) of the distinct words; the row after the last is that of unknown ones
    vectors: Tensor | None  # (V, D) theirs, where vectors are not the encoder's own parameters

    def to(self, device: torch.device | str) -> StaticBatch:
        """The same batch on another device."""
        return StaticBatch(*(None if part is None else part.to(device) for part in self))  # pyright: ignore


class StaticEncoder(Encoder):
    """One layer: the vector of each word, by itself. A word that is not there is looked for in lower case.

    Vectors are mapped from a file, not held in memory, and nothing trains them; with ``trainable`` they are copied into
    memory as a parameter of the module, with one row more, for unknown words.

    Args:
        table: The vectors.
        settings: How to embed. There are no boundary words, and workers would be slower than one process.
        name: What people call the vectors.
        unknown: The vector of a word that is not there in lower case either: ``zero``, or the ``mean`` of all.
        trainable: Let a task change the vectors.

    Attributes:
        coverage: Words embedded so far, by how they were found.
    """

    unknown_vector: Tensor

    def __init__(
        self,
        table: VectorTable,
        settings: EmbedSettings | None = None,
        name: str = "static",
        unknown: Unknown = "zero",
        trainable: bool = False,
    ) -> None:
        super().__init__()
        if unknown not in get_args(Unknown):
            near = nearest(str(unknown), get_args(Unknown))
            raise ConfigError(f"unknown must be 'zero' or 'mean', not {unknown!r}.{near}")
        settings = settings or EmbedSettings()
        if settings.boundaries:
            raise ConfigError(f"{name} has one vector a word and no boundary words; leave boundaries out")
        self.table, self.name, self.unknown = table, name, unknown
        self.settings = replace(settings, workers=1)
        self.dim, self.num_layers = table.dim, 1
        self.coverage = Coverage()
        unknown_vector = torch.from_numpy(
            np.array(table.mean) if unknown == "mean" else np.zeros(table.dim, np.float32)
        )
        self.register_buffer("unknown_vector", unknown_vector, persistent=False)
        self.weight = nn.Parameter(torch.cat([_copy(table), self.unknown_vector[None]])) if trainable else None
        self._known: dict[str, int] = {}
        self._lock = threading.Lock()

    @property
    def device(self) -> torch.device:
        """The device that vectors are computed on."""
        return self.unknown_vector.device

    @property
    def num_words(self) -> int:
        """Size of the vocabulary: words that have a vector."""
        return len(self.table)

    def __contains__(self, word: str) -> bool:
        """Whether a word has a vector of its own, be it in lower case."""
        return int(self.rows([word])[0]) < self.num_words

    def collate(self, sentences: Sequence[Sequence[str]]) -> StaticBatch:
        """Look up distinct words once; with frozen vectors, the batch carries theirs along."""
        distinct: dict[str, int] = {}
        numbers = [[distinct.setdefault(word, len(distinct)) for word in words] for words in check_sentences(sentences)]
        words = list(distinct)
        rows = self.rows(words)
        every = [number for row in numbers for number in row]
        found = self._coverage(words, rows, np.bincount(every, minlength=len(words)))
        with self._lock:
            self.coverage += found
        lengths = np.array([len(row) for row in numbers], dtype=np.int64)
        mask = np.arange(lengths.max(initial=0)) < lengths[:, None]
        places = np.zeros(mask.shape, dtype=np.int64)
        places[mask] = every
        vectors = None if self.weight is not None else torch.from_numpy(self._take(rows))
        return StaticBatch(torch.from_numpy(places), torch.from_numpy(mask), torch.from_numpy(rows), vectors)

    def forward(self, batch: StaticBatch) -> tuple[Tensor, Tensor]:
        """The one layer (B, 1, T, D), zero where there is no word, and the mask (B, T)."""
        if self.weight is not None:
            table = F.embedding(batch.rows, self.weight)
        else:
            assert batch.vectors is not None
            table = batch.vectors.to(self.unknown_vector.dtype)
        if not len(table):  # no words at all
            table = self.unknown_vector[None]
        vectors = F.embedding(batch.places, table) * batch.mask[..., None]
        return vectors[:, None], batch.mask

    def rows(self, words: Sequence[str]) -> np.ndarray:
        """The row of each word in the table, and `num_words` for an unknown one."""
        missing = [word for word in words if word not in self._known]
        found = dict(zip(missing, self._find(missing).tolist(), strict=True)) if missing else {}
        rows = [found[word] if word in found else self._known[word] for word in words]
        if len(self._known) + len(found) <= _KEPT:
            self._known.update(found)
        return np.array(rows, dtype=np.int64)

    def word_vectors(self, words: Iterable[str]) -> np.ndarray:
        """Vectors (words, dim) of any words; those that are not there get what the setting ``unknown`` says."""
        if isinstance(words, str):
            raise InputError(f"word_vectors takes a list of words, not the bare string {words!r:.60}")
        return self._take(self.rows(list(words)))

    embed_words = word_vectors  # the name that ELMo's context-free vectors have

    def nearest(self, what: str | np.ndarray, top: int = 10, without: Iterable[str] = ()) -> list[NearestWord]:
        """The words whose vectors have the largest cosine with that of a word, or with any vector.

        Args:
            what: A word, which is not its own neighbour, or a vector.
            top: How many.
            without: Words to pass over.
        """
        passed = list(without)
        if isinstance(what, str):
            if what not in self:
                raise InputError(f"{what!r} is not among the {self.num_words:,} words of {self.name}")
            what, passed = self.word_vectors([what])[0], [*passed, what]
        return self.nearest_to(np.asarray(what)[None], top, [passed])[0]

    def nearest_to(
        self, vectors: np.ndarray, top: int = 10, without: Sequence[Sequence[str]] | None = None
    ) -> list[list[NearestWord]]:
        """The same for many vectors (N, dim) in one pass over all words, each with its own words to pass over."""
        if vectors.ndim != 2 or vectors.shape[1] != self.dim:
            raise InputError(f"vectors should be of shape (N, {self.dim}), not {vectors.shape}")
        if top < 1:
            raise ConfigError(f"the number of neighbours must be 1 or more, not {top}")
        passed = [self.rows(words) for words in without or [()] * len(vectors)]
        weight = self.weight
        blocks = self.table.blocks if weight is None else lambda: [(0, _array(weight[:-1]))]
        found = search(blocks, vectors, top, passed)
        return [[NearestWord(self.table.word(row), cosine) for row, cosine in best] for best in found]

    def requires_grad_(self, requires_grad: bool = True) -> StaticEncoder:
        """Set whether vectors train; refused for frozen ones, where it would silently do nothing."""
        if requires_grad and self.weight is None:
            raise ConfigError(f"the vectors of {self.name} are mapped from a file; to train them, load trainable=True")
        return super().requires_grad_(requires_grad)  # pyright: ignore[reportReturnType]

    def misread(self, words: Sequence[str]) -> Counter[str]:
        """Words of a sentence that are not in the table, by what happens to them."""
        found = self._coverage(words, self.rows(words), np.ones(len(words), dtype=np.int64))
        what = "zeros" if self.unknown == "zero" else "the mean of all vectors"
        return Counter({"found in lower case only": found.lowered, f"unknown, and are {what}": found.unknown})

    def describe(self) -> dict[str, str | int]:
        """Facts about the vectors for people, by name."""
        about = self.table.about
        known = {name: int(about[name]) for name in ("duplicates", "replaced") if int(about[name])}
        names = {"duplicates": "words that came twice", "replaced": "words that were not UTF-8"}
        return {
            "format": about["format"],
            "words": self.num_words,
            "layers of vectors": 1,
            "dimensions": self.dim,
            **{names[name]: count for name, count in known.items()},
            "kept in": str(self.table.path) if self.table.path else "memory",
        }

    def fingerprint(self) -> str:
        """A SHA-256 of words and vectors: two encoders with the same one give the same vectors."""
        digest = hashlib.sha256(f"static {self.table.about['digest']} {self.unknown}".encode())
        hash_weights(digest, self.state_dict())
        return digest.hexdigest()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None, "_known": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({**state, "_lock": threading.Lock()})

    def _find(self, words: Sequence[str]) -> np.ndarray:
        rows = self.table.find(words)
        unknown = np.flatnonzero(rows < 0)
        if unknown.size:
            rows[unknown] = self.table.find([words[int(number)].lower() for number in unknown])
        rows[rows < 0] = self.num_words
        return rows

    def _take(self, rows: np.ndarray) -> np.ndarray:
        """Vectors by row, as a copy in memory."""
        if self.weight is not None:
            return _array(self.weight[torch.from_numpy(rows).to(self.device)])
        known = rows < self.num_words
        vectors = np.empty((len(rows), self.dim), dtype=np.float32)
        vectors[known] = self.table.take(rows[known])
        vectors[~known] = _array(self.unknown_vector)
        return vectors

    def _coverage(self, words: Sequence[str], rows: np.ndarray, counts: np.ndarray) -> Coverage:
        unknown = rows == self.num_words
        capital = [number for number, word in enumerate(words) if word != word.lower() and not unknown[number]]
        lowered = sum(int(counts[number]) for number in capital if self.table.word(rows[number]) != words[number])
        missing = int(counts[unknown].sum())
        return Coverage(int(counts.sum()) - lowered - missing, lowered, missing)


def is_static(path: str | Path) -> bool:
    """Whether a file holds static vectors, or is meant to by its name."""
    place = Path(path).expanduser()
    if not place.is_file():
        return False
    if {*place.suffixes} & {*_NAMES, ".npy"}:
        return True
    try:
        recognise(place)
    except FormatError:
        return False
    return True


def open_static(
    path: str | Path,
    settings: EmbedSettings | None = None,
    unknown: Unknown = "zero",
    trainable: bool = False,
    vocabulary: str | Path | None = None,
    cache: str | Path | bool = True,
) -> StaticEncoder:
    """Open a file of vectors as an encoder; the arguments are those of `StaticEncoder` and `open_vectors`."""
    table = open_vectors(path, vocabulary, cache)
    return StaticEncoder(table, settings, Path(path).name, unknown, trainable)


def _copy(table: VectorTable) -> Tensor:
    return torch.from_numpy(np.array(table.vectors))


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().float().cpu().numpy()
