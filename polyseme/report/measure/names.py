"""Named entities in web text by a linear probe: F1 by layer, by direction and by choice of layers."""

from __future__ import annotations

from itertools import islice

import numpy as np

from polyseme.report.measure.measurement import Measurement, Results, SampleSizes
from polyseme.report.measure.model_under_test import EvaluationData, ModelUnderTest
from polyseme.report.measure.probing import (
    WordLabels,
    direction_views,
    embed_words,
    fit_and_predict,
    layer_views,
    strategy_views,
    words_and_labels,
)
from polyseme.report.measure.statistics import bootstrap_interval
from polyseme.tasks.tagging.schemes import read_spans
from polyseme.text.conll import read_labelled

WNUT = "ner-wnut17/wnut17train.conll", "ner-wnut17/emerging.test.annotated"
UNER = "ner-uner/en_ewt-ud-dev.iob2", "ner-uner/en_ewt-ud-test.iob2"


def measure_names(model: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """F1 of whole names for every choice of features, and bootstrap intervals of the differences over sentences."""
    encoder = model.encoder
    files = name_files(data)
    train, test = (words_and_labels(list(islice(read_labelled(data[name]), sizes.named))) for name in files)
    known, unseen = (embed_words(encoder, words) for words, _ in (train, test))
    views = {**layer_views(encoder), **direction_views(encoder), **strategy_views(encoder)}
    gold = test[1]
    counts = {
        name: count_names(fit_and_predict((known, train[1]), (unseen, gold), view), gold)
        for name, view in views.items()
    }
    names = list(counts)
    return {
        "set": "WNUT-17" if files == WNUT else "Universal NER",
        "train": len(train[0]),
        "test": len(gold),
        "names": int(next(iter(counts.values()))[:, 2].sum()),
        "f1": {name: f1(each) for name, each in counts.items()},
        "difference": {
            f"{one} {other}": bootstrap_interval(
                lambda drawn, a=counts[one], b=counts[other]: f1(a[drawn]) - f1(b[drawn]), len(gold), sizes.seed
            )
            for place, one in enumerate(names)
            for other in names[place + 1 :]
        },
    }


NAMES = Measurement("names", measure_names, sizes=("named", "seed"), uses=("ner-wnut17", "ner-uner"))


def name_files(data: EvaluationData) -> tuple[str, str]:
    """The files to train and to test on: WNUT-17 if the data folder has it, else the bundled Universal NER."""
    return WNUT if "ner-wnut17" in data else UNER


def count_names(predictions: list[str | None], gold: WordLabels) -> np.ndarray:
    """Correct, predicted and gold names in each sentence, (sentences, 3)."""
    rows, rest = [], iter(predictions)
    for labels in gold:
        predicted = {*read_spans([next(rest) or "O" for _ in labels])}
        expected = {*read_spans([label or "O" for label in labels])}
        rows.append((len(predicted & expected), len(predicted), len(expected)))
    return np.array(rows)


def f1(counts: np.ndarray) -> float:
    """F1 of counts of correct, predicted and expected items, summed over sentences (sentences, 3)."""
    correct, predicted, expected = counts.sum(axis=0).tolist()
    return 2 * correct / max(1, predicted + expected)
