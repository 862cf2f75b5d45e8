"""Whether the same sentence always gets the same vectors: the largest differences over ways of embedding it.

Sentences are embedded once as a reference and then in other ways: again, in another order, alone, in batches of other
sizes, by several processes, on another device, in lower precision. What a model cannot do is not tried, and said so.
"""

from __future__ import annotations

import copy
import random
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np
import torch

from polyseme.backends.elmo.encoder import ElmoEncoder
from polyseme.backends.static import StaticEncoder
from polyseme.embedding.encoder import Encoder
from polyseme.embedding.interfaces import Embedder
from polyseme.embedding.sentences import check_sentences
from polyseme.errors import InputError
from polyseme.formats import StoredModel, native

BUDGETS = (1, 64, 4096)  # words computed at a time
# Beside plain ones, which may hide what only odd ones show.
ODD_SENTENCES = (
    (),
    ("Hello",),
    ("Straße", "日本語", "שלום", "naïve", "👩‍👩‍👧‍👦", "https://example.org/a?b=c#d"),
    ("a" * 200, "."),
    ("the",) * 40,
    ("The", "bank", "of", "the", "river", "is", "not", "the", "bank", "with", "the", "money", ",") * 9,
)

Sentences = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Check:
    """One way of embedding beside the reference.

    Attributes:
        name: What was done.
        differences: The largest absolute difference in each layer; empty when it was not tried.
        identical: Whether every number is the same to the last bit.
        reason: Why it was not tried.
    """

    name: str
    differences: tuple[float, ...]
    identical: bool
    reason: str | None = None


@dataclass(frozen=True)
class DeterminismResult:
    """How far vectors depend on what they should not depend on.

    Attributes:
        model: The model's name.
        sentences: That were embedded.
        words: In them.
        largest: The largest absolute number in each layer, to judge differences by.
        checks: One way each.
    """

    model: str
    sentences: int
    words: int
    largest: tuple[float, ...]
    checks: tuple[Check, ...]


def determinism(embedder: Embedder, sentences: Iterable[Sequence[str]], seed: int = 0) -> DeterminismResult:
    """Embed sentences in every way there is, and compare; a few hundred sentences, for all vectors are held."""
    kept = list(check_sentences(sentences))
    words = sum(map(len, kept))
    if not words:
        raise InputError("there is nothing to embed: no sentence has a word")
    reference = list(embedder.embed(kept))
    checks = [
        *_in_other_company(embedder, kept, reference, seed),
        *_with_other_settings(embedder, kept, reference),
        _on_another_device(embedder, kept, reference),
        *_in_lower_precision(embedder, kept, reference),
    ]
    largest = _over_words(np.abs(vectors) for vectors in reference)
    return DeterminismResult(embedder.name, len(kept), words, largest, tuple(checks))


def _in_other_company(
    embedder: Embedder, sentences: Sentences, reference: list[np.ndarray], seed: int
) -> Iterator[Check]:
    yield _compare("once more", embedder.embed(sentences), reference)
    shuffled = random.Random(seed).sample(range(len(sentences)), len(sentences))
    for name, order in (("reversed", list(reversed(range(len(sentences))))), ("shuffled", shuffled)):
        vectors = embedder.embed([sentences[number] for number in order])
        yield _compare(name, vectors, [reference[number] for number in order])
    alone = chain.from_iterable(embedder.embed([words]) for words in sentences)
    yield _compare("each alone", alone, reference)


def _with_other_settings(embedder: Embedder, sentences: Sentences, reference: list[np.ndarray]) -> Iterator[Check]:
    if not isinstance(embedder, Encoder):
        yield _not_tried("word budgets, workers", "this embedder has no such settings")
        return
    for budget in BUDGETS:
        changed = _changed(embedder, word_budget=budget)
        yield _compare(f"{budget:,} word{'s' * (budget > 1)} at a time", changed.embed(sentences), reference)
    if embedder.device.type != "cpu" or isinstance(embedder, StaticEncoder):
        what = "static vectors" if isinstance(embedder, StaticEncoder) else embedder.device
        yield _not_tried("2 processes", f"for {what} there is always one")
    else:
        yield _compare("2 processes", _changed(embedder, workers=2).embed(sentences), reference)


def _on_another_device(embedder: Embedder, sentences: Sentences, reference: list[np.ndarray]) -> Check:
    if not isinstance(embedder, Encoder):
        return _not_tried("another device", "this embedder has no such setting")
    other = "cpu" if embedder.device.type != "cpu" else "cuda"
    if other == "cuda" and not torch.cuda.is_available():
        return _not_tried("cuda", "there is no such device here")
    moved = _changed(copy.deepcopy(embedder).to(other), workers=1)
    return _compare(other, moved.embed(sentences), reference)


def _in_lower_precision(embedder: Embedder, sentences: Sentences, reference: list[np.ndarray]) -> Iterator[Check]:
    if isinstance(embedder, Encoder):
        yield _compare("float16 arrays", _changed(embedder, dtype="float16").embed(sentences), reference)
    if isinstance(embedder, ElmoEncoder):
        for precision in ("fp16", "int8"):
            yield _compare(f"{precision} weights", _stored_in(embedder, precision).embed(sentences), reference)


def _changed(encoder: Encoder, **settings: int | str) -> Encoder:
    """The same weights with other settings; the encoder itself is left as it is."""
    other = copy.copy(encoder)
    other.settings = replace(encoder.settings, **settings)  # pyright: ignore[reportArgumentType]
    return other


def _stored_in(encoder: ElmoEncoder, precision: native.Precision) -> ElmoEncoder:
    """What comes back when a model is stored in lower precision."""
    weights = {name: weight.cpu() for name, weight in encoder.bilm.state_dict().items()}
    with tempfile.TemporaryDirectory() as folder:
        native.save(
            StoredModel(encoder.bilm.config, weights, encoder.words, "an encoder"), Path(folder) / "model", precision
        )
        stored = native.load(Path(folder) / "model")
    return ElmoEncoder(stored.build(), encoder.words, encoder.settings, encoder.name).to(encoder.device)


def _compare(name: str, vectors: Iterable[np.ndarray], reference: Sequence[np.ndarray]) -> Check:
    pairs = list(zip(vectors, reference, strict=True))
    differences = _over_words(np.abs(one.astype(np.float32) - other) for one, other in pairs)
    return Check(name, differences, all(np.array_equal(one, other) for one, other in pairs))


def _over_words(arrays: Iterable[np.ndarray]) -> tuple[float, ...]:
    """The largest number of each layer."""
    largest = [array.max(axis=(1, 2), initial=0) for array in arrays]
    return tuple(float(number) for number in np.max(largest, axis=0))


def _not_tried(name: str, reason: str) -> Check:
    return Check(name, (), False, reason)
