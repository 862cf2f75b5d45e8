"""Sense separation in SemCor: are uses of a word in one sense closer to each other than to uses in another sense?"""

from __future__ import annotations

from collections import defaultdict
from itertools import islice

import numpy as np

from polyseme.analysis.senses.sense_tagged import read_tagged
from polyseme.corpus.uses import Use, embed_uses
from polyseme.embedding.similarity import unit
from polyseme.errors import InputError
from polyseme.report.measure.measurement import Measurement, Results, SampleSizes
from polyseme.report.measure.model_under_test import EvaluationData, ModelUnderTest
from polyseme.report.measure.statistics import bootstrap_interval

SEMCOR = "wsd/semcor.jsonl.xz"
MIN_USES, MAX_USES = 5, 15  # of a sense
MAX_SENSES = 3  # of a word, the most frequent
MIN_WORDS = 10  # for a confidence interval over words

Senses = dict[str, list[Use]]


def measure_separation(model: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """AUC of cosine similarity for each word: how often a same-sense pair of uses beats a different-sense pair.

    0.5 is chance, 1 is always. A word is one spelling with one part of speech, so that neither inflection nor case can
    help; its uses come from different sentences.
    """
    chosen = _choose(_read(data, sizes), sizes)
    rows = []
    for (word, pos), senses in chosen.items():
        labels = np.repeat(np.arange(len(senses)), [len(uses) for uses in senses.values()])
        uses = embed_uses(model.encoder, [use for each in senses.values() for use in each])
        aucs = [cosine_auc(uses.vectors(layer), labels) for layer in range(model.encoder.num_layers)]
        rows.append({"word": word, "pos": pos, "senses": {key: len(of) for key, of in senses.items()}, "area": aucs})
    table = np.array([row["area"] for row in rows])
    best = max(rows, key=lambda row: row["area"][-1])
    examples = [
        {"words": use.words, "place": use.place, "sense": key}
        for key, uses in chosen[best["word"], best["pos"]].items()
        for use in sorted(uses, key=lambda use: len(use.words))[:2]
    ]
    return {
        "words": rows,
        "mean": table.mean(axis=0),
        "interval": [
            bootstrap_interval(lambda drawn, layer=layer: float(layer[drawn].mean()), len(rows), sizes.seed)
            for layer in table.T
        ],
        "examples": examples,
    }


SEPARATION = Measurement("separation", measure_separation, (SEMCOR,), ("semcor", "ambiguous", "seed"), extra=True)


def _read(data: EvaluationData, sizes: SampleSizes) -> dict[tuple[str, str], dict[str, dict[tuple[str, ...], Use]]]:
    """Uses of each spelling by sense, at most one from a sentence."""
    found: defaultdict[tuple[str, str], defaultdict[str, dict[tuple[str, ...], Use]]]
    found = defaultdict(lambda: defaultdict(dict))
    for sentence in islice(read_tagged(data[SEMCOR]), sizes.semcor):
        for tag in sentence.tags:
            if tag.last == tag.first + 1 and len(tag.keys) == 1 and sentence.words[tag.first].islower():
                word = sentence.words[tag.first], tag.lemma[1]
                found[word][tag.keys[0]].setdefault(sentence.words, Use(sentence.words, tag.first))
    return {word: dict(senses) for word, senses in found.items()}


def _choose(
    found: dict[tuple[str, str], dict[str, dict[tuple[str, ...], Use]]], sizes: SampleSizes
) -> dict[tuple[str, str], Senses]:
    """A random sample of the words with at least two frequent senses."""
    frequent = {}
    for word, senses in sorted(found.items()):
        ranked = sorted(senses.items(), key=lambda item: (-len(item[1]), item[0]))[:MAX_SENSES]
        kept = {key: list(uses.values())[:MAX_USES] for key, uses in ranked if len(uses) >= MIN_USES}
        if len(kept) > 1:
            frequent[word] = kept
    if len(frequent) < MIN_WORDS:
        raise InputError(
            f"SemCor's sentences contain {len(frequent)} words with two senses of at least {MIN_USES} uses each; "
            f"{MIN_WORDS} are needed, so use a larger part of SemCor"
        )
    drawn = np.random.default_rng(sizes.seed).permutation(len(frequent))[: sizes.ambiguous]
    names = list(frequent)
    return {names[number]: frequent[names[number]] for number in sorted(drawn.tolist())}


def cosine_auc(vectors: np.ndarray, labels: np.ndarray) -> float:
    """Area under the ROC curve of cosine similarity as a test for "same sense"; ties count half."""
    cosines = unit(vectors) @ unit(vectors).T
    upper = np.triu_indices(len(labels), k=1)
    values, same = cosines[upper].round(5), (labels[:, None] == labels)[upper]
    order, counts = np.unique(values, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[np.searchsorted(order, values)]
    wins = ranks[same].sum() - same.sum() * (same.sum() + 1) / 2
    return float(wins / (same.sum() * (~same).sum()))
