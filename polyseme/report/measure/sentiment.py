"""Sentiment of a sentence (SST-2) by logistic regression on the mean of its word vectors, layer by layer."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from polyseme.analysis.layers.logistic_regression import LinearFitSettings, LinearProblem
from polyseme.embedding.layers import pool
from polyseme.errors import FormatError
from polyseme.report.measure.measurement import Measurement, Results, SampleSizes
from polyseme.report.measure.model_under_test import EvaluationData, ModelUnderTest
from polyseme.report.measure.statistics import pairwise_sign_tests
from polyseme.text.corpus import open_text

TRAIN, TEST = "sentiment-sst/stsa.binary.train", "sentiment-sst/stsa.binary.test"

_FIT = LinearFitSettings(inverse_penalty=0.01)  # strong regularisation: few sentences, many features
RatedSentences = list[tuple[list[str], int]]


def measure_sentiment(model: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """Accuracy of a logistic regression on the mean vector of each layer."""
    train, test = (_sample(_read(data[name]), sizes.rated) for name in (TRAIN, TEST))
    known, unseen = (
        np.stack([pool(vectors, "mean") for vectors in model.encoder.embed(words for words, _ in part)], axis=1)
        for part in (train, test)
    )
    classes, truth = (np.array([label for _, label in part]) for part in (train, test))
    correct = {
        str(layer): LinearProblem(features, _FIT).fit(classes).predict(test_features) == truth
        for layer, (features, test_features) in enumerate(zip(known, unseen, strict=True))
    }
    return {
        "train": len(train),
        "test": len(test),
        "commonest": float(max(truth.mean(), 1 - truth.mean())),
        "accuracy": {layer: float(each.mean()) for layer, each in correct.items()},
        "p": pairwise_sign_tests(correct),
    }


SENTIMENT = Measurement("sentiment", measure_sentiment, (TRAIN, TEST), ("rated",), extra=True)


def _read(path: Path) -> RatedSentences:
    rows = []
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            label, *words = line.split() or [""]
            if label not in ("0", "1") or not words:
                raise FormatError(f"{path}, line {number}: expected 0 or 1 and a sentence, got {line!r:.60}")
            rows.append((words, int(label)))
    if len({label for _, label in rows}) < 2:
        raise FormatError(f"{path}: expected sentences with both labels, 0 and 1, and found only one of them")
    return rows


def _sample(rows: RatedSentences, size: int) -> RatedSentences:
    """Evenly spaced sentences of the whole file, because it may be sorted by label."""
    size = min(size, len(rows))
    return [rows[number * len(rows) // size] for number in range(size)]
