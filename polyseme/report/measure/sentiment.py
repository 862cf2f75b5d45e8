"""Whether a sentence is for or against, read off the mean of its words' vectors: SST-2."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from polyseme.analysis.layers.logistic_regression import LinearFitSettings, LinearProblem
from polyseme.embedding.layers import pool
from polyseme.errors import FormatError
from polyseme.report.measure.measurement import Measurement, Results, SampleSizes
from polyseme.report.measure.model_under_test import EvaluationData, ModelUnderTest
from polyseme.report.measure.statistics import sign_test
from polyseme.text.corpus import open_text

TRAIN, TEST = "sentiment-sst/stsa.binary.train", "sentiment-sst/stsa.binary.test"

_FIT = LinearFitSettings(inverse_penalty=0.01)  # few sentences, many numbers
Rated = list[tuple[list[str], int]]


def measure_sentiment(subject: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """Accuracy of a logistic regression on the mean vector of each layer."""
    train, test = (_some(_read(data[name]), sizes.rated) for name in (TRAIN, TEST))
    known, asked = (
        np.stack([pool(vectors, "mean") for vectors in subject.encoder.embed(words for words, _ in part)], axis=1)
        for part in (train, test)
    )
    classes, truth = (np.array([label for _, label in part]) for part in (train, test))
    right = [
        LinearProblem(learnt, _FIT).fit(classes).predict(given) == truth
        for learnt, given in zip(known, asked, strict=True)
    ]
    layers = range(len(right))
    return {
        "train": len(train),
        "test": len(test),
        "commonest": float(max(truth.mean(), 1 - truth.mean())),
        "accuracy": {str(layer): float(right[layer].mean()) for layer in layers},
        "p": {
            f"{one} {other}": sign_test(right[one], right[other])
            for one in layers
            for other in range(one + 1, len(right))
        },
    }


SENTIMENT = Measurement("sentiment", measure_sentiment, (TRAIN, TEST), ("rated",))


def _read(path: Path) -> Rated:
    rows = []
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            label, *words = line.split() or [""]
            if label not in ("0", "1") or not words:
                raise FormatError(f"{path}, line {number}: expected 0 or 1 and a sentence, got {line!r:.60}")
            rows.append((words, int(label)))
    if len({label for _, label in rows}) < 2:
        raise FormatError(f"{path}: expected sentences of both kinds, 0 and 1")
    return rows


def _some(rows: Rated, many: int) -> Rated:
    """So many, evenly from the whole file: its order may be by label."""
    many = min(many, len(rows))
    return [rows[number * len(rows) // many] for number in range(many)]
