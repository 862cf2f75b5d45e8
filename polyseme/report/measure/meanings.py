"""Two meanings of a word (homonyms): is a use closer to uses with the same meaning than to those with the other?

The sentences are bundled (``data/two-meanings``): nouns with two unrelated everyday meanings, six sentences for each.
Words and sentences were written down before any vector was computed, and none was taken out afterwards.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from polyseme.corpus.uses import Use, embed_uses
from polyseme.embedding.similarity import unit
from polyseme.errors import FormatError
from polyseme.report.measure.measurement import Measurement, Results, SampleSizes
from polyseme.report.measure.model_under_test import EvaluationData, ModelUnderTest
from polyseme.report.measure.separation import cosine_auc
from polyseme.report.measure.statistics import bootstrap_interval, pairwise_sign_tests
from polyseme.text.corpus import open_text
from polyseme.text.tokenizer import tokenize_words

SENTENCES = "two-meanings/sentences.txt"
Meanings = dict[str, dict[str, list[Use]]]  # by word and by meaning


def measure_meanings(model: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """AUC of cosine similarity for each word and layer, and how often the nearest meaning is the right one.

    The nearest meaning of a use is the one whose other uses have the higher mean cosine similarity (leave-one-out).
    """
    words = dict(list(read_meanings(data[SENTENCES]).items())[: sizes.homonyms])
    layers = range(model.encoder.num_layers)
    rows, right = [], []
    for word, meanings in words.items():
        labels = np.repeat(np.arange(len(meanings)), [len(uses) for uses in meanings.values()])
        uses = embed_uses(model.encoder, [use for each in meanings.values() for use in each])
        vectors = [uses.vectors(layer) for layer in layers]
        right.append(np.array([_nearest_is_right(each, labels) for each in vectors]))
        aucs = [cosine_auc(each, labels) for each in vectors]
        rows.append({"word": word, "meanings": {name: len(of) for name, of in meanings.items()}, "area": aucs})
    table = np.array([row["area"] for row in rows])
    correct = {str(layer): each for layer, each in enumerate(np.concatenate(right, axis=1))}
    ranked = sorted(rows, key=lambda row: -row["area"][-1])
    return {
        "words": rows,
        "sentences": sum(len(uses) for meanings in words.values() for uses in meanings.values()),
        "mean": table.mean(axis=0),
        "interval": [
            bootstrap_interval(lambda drawn, layer=layer: float(layer[drawn].mean()), len(rows), sizes.seed)
            for layer in table.T
        ],
        "accuracy": {layer: float(each.mean()) for layer, each in correct.items()},
        "p": pairwise_sign_tests(correct),
        "examples": [_example(words, row["word"]) for row in (ranked[0], ranked[-1])],
    }


MEANINGS = Measurement("meanings", measure_meanings, (SENTENCES,), ("homonyms", "seed"))


def read_meanings(path: Path) -> Meanings:
    """Read uses of words by word and meaning: a line ``# bank: of a river``, then a sentence on each line."""
    found: Meanings = {}
    uses: list[Use] | None = None
    word = ""
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            word, colon, meaning = line[2:].strip().partition(": ") if line.startswith("# ") else (word, "", "")
            if colon:
                uses = found.setdefault(word, {}).setdefault(meaning, [])
                continue
            words = tuple(each for sentence in tokenize_words(line) for each in sentence)
            if uses is None or words.count(word) != 1:
                raise FormatError(f"{path}, line {number}: expected a sentence with {word!r} once, got {line!r:.60}")
            uses.append(Use(words, words.index(word)))
    return found


def _nearest_is_right(vectors: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Whether each use is more similar to the other uses of its meaning, on average, than to those of any other."""
    cosines = unit(vectors) @ unit(vectors).T
    np.fill_diagonal(cosines, 0)
    groups = labels[:, None] == np.arange(labels.max() + 1)  # (uses, meanings)
    counts = groups.sum(axis=0) - groups  # a use is not counted with its own meaning
    means = cosines @ groups / np.maximum(1, counts)
    own = means[np.arange(len(labels)), labels]
    others = np.where(groups, -np.inf, means).max(axis=1)
    return own > others + 1e-5


def _example(words: Meanings, word: str) -> Results:
    return {
        "word": word,
        "meanings": {
            meaning: [[use.words, use.place] for use in sorted(uses, key=lambda use: len(use.words))[:2]]
            for meaning, uses in words[word].items()
        },
    }
