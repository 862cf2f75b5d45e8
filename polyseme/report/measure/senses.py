"""Word-sense disambiguation (WSD) by the nearest sense vector, layer by layer."""

from __future__ import annotations

from itertools import islice

import numpy as np

from polyseme.analysis.senses.sense_tagged import find_sets, read_inventory, read_tagged
from polyseme.analysis.senses.wsd import SenseVectors, embed_tags
from polyseme.report.measure.measurement import Measurement, Results, SampleSizes
from polyseme.report.measure.model_under_test import EvaluationData, ModelUnderTest
from polyseme.report.measure.statistics import pairwise_sign_tests, sign_test

SEMCOR, TESTS, INVENTORY = "wsd/semcor.jsonl.xz", "wsd/raganato", "wsd/wordnet-3.0-index.sense.xz"


def measure_senses(model: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """F1 on all WSD test sets together, as `polyseme wsd` gives it, and p-values of the layers' differences."""
    encoder, inventory = model.encoder, read_inventory(data[INVENTORY])
    sentences = [each for path in find_sets([data[TESTS]]).values() for each in read_tagged(path)]
    tags = [tag for sentence in sentences for tag in sentence.tags]
    senses = SenseVectors({tag.lemma for tag in tags})
    senses.learn(encoder, islice(read_tagged(data[SEMCOR]), sizes.semcor), inventory)
    correct, first, examples = [], [], []
    owners = [sentence for sentence in sentences for _ in sentence.tags]
    for (tag, vectors), sentence in zip(embed_tags(encoder, sentences), owners, strict=True):
        usual = inventory.first_sense(tag.lemma)
        predictions = senses.nearest(tag.lemma, vectors) or [usual] * len(vectors)
        correct.append([prediction in tag.keys for prediction in predictions])
        first.append(usual in tag.keys)
        if len(examples) < 5 and correct[-1][-1] and not first[-1] and len(sentence.words) < 22:
            examples.append({"words": sentence.words, "place": tag.first, "sense": predictions[-1], "usual": usual})
    by_layer = {str(layer): each for layer, each in enumerate(np.array(correct).T)}
    return {
        "limit": sizes.semcor,
        "instances": len(tags),
        "tagged": senses.tagged,
        "first_sense": float(np.mean(first)),
        "f1": {layer: float(each.mean()) for layer, each in by_layer.items()},
        "p": pairwise_sign_tests(by_layer),
        "p_first": {layer: sign_test(each, np.array(first)) for layer, each in by_layer.items()},
        "examples": examples,
    }


SENSES = Measurement("senses", measure_senses, (SEMCOR, TESTS, INVENTORY), ("semcor",), extra=True)
