"""Names in noisy text (WNUT-17), by a linear probe: F1 of whole names, by layer, direction and choice of layers."""

from __future__ import annotations

from itertools import islice

import numpy as np

from polyseme.report.measure.measurement import Measurement, Results, SampleSizes
from polyseme.report.measure.model_under_test import EvaluationData, ModelUnderTest
from polyseme.report.measure.probing import (
    Labels,
    columns,
    direction_views,
    embed_words,
    fit_and_answer,
    layer_views,
    strategy_views,
)
from polyseme.report.measure.statistics import resampled
from polyseme.tasks.tagging.schemes import read_spans
from polyseme.text.conll import read_labelled

TRAIN, TEST = "ner-wnut17/wnut17train.conll", "ner-wnut17/emerging.test.annotated"


def measure_names(subject: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """F1 for every view, and the 95 % intervals of differences, over sentences drawn again."""
    encoder = subject.encoder
    known, asked = (list(islice(read_labelled(data[name]), sizes.named)) for name in (TRAIN, TEST))
    train, test = (embed_words(encoder, columns(part)[0]) for part in (known, asked))
    views = {**layer_views(encoder), **direction_views(encoder), **strategy_views(encoder)}
    gold = columns(asked)[1]
    counts = {
        name: _counts(fit_and_answer((train, columns(known)[1]), (test, gold), view), gold)
        for name, view in views.items()
    }
    names = list(counts)
    return {
        "train": len(known),
        "test": len(asked),
        "names": int(next(iter(counts.values()))[:, 2].sum()),
        "f1": {name: _f1(each) for name, each in counts.items()},
        "difference": {
            f"{one} {other}": resampled(
                lambda drawn, a=counts[one], b=counts[other]: _f1(a[drawn]) - _f1(b[drawn]), len(asked), sizes.seed
            )
            for place, one in enumerate(names)
            for other in names[place + 1 :]
        },
    }


NAMES = Measurement("names", measure_names, (TRAIN, TEST), ("named", "seed"))


def _counts(answers: list[str | None], gold: Labels) -> np.ndarray:
    """For each sentence, names that are right, that were given, and that are there."""
    rows, rest = [], iter(answers)
    for labels in gold:
        given = {*read_spans([next(rest) or "O" for _ in labels])}
        there = {*read_spans([label or "O" for label in labels])}
        rows.append((len(given & there), len(given), len(there)))
    return np.array(rows)


def _f1(counts: np.ndarray) -> float:
    right, given, there = counts.sum(axis=0).tolist()
    return 2 * right / max(1, given + there)
