"""Whether uses of a word in one sense are nearer to each other than to its uses in another sense, in SemCor."""

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
from polyseme.report.measure.statistics import resampled

SEMCOR = "wsd/semcor.jsonl.xz"
LEAST, MOST = 5, 15  # uses of a sense
SENSES = 3  # of a word, the most frequent
WORDS = 10  # without which an interval over words says nothing

Senses = dict[str, list[Use]]


def measure_separation(subject: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """For each word, how often a pair of uses in one sense is nearer than a pair in two: 0.5 is chance, 1 is always.

    A word is one spelling with one part of speech, so that neither inflection nor case can help; its uses are from
    sentences that differ.
    """
    chosen = _choose(_read(data, sizes), sizes)
    rows = []
    for (word, pos), senses in chosen.items():
        labels = np.repeat(np.arange(len(senses)), [len(uses) for uses in senses.values()])
        uses = embed_uses(subject.encoder, [use for each in senses.values() for use in each])
        areas = [_area(uses.vectors(layer), labels) for layer in range(subject.encoder.num_layers)]
        rows.append({"word": word, "pos": pos, "senses": {key: len(of) for key, of in senses.items()}, "area": areas})
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
            resampled(lambda drawn, layer=layer: float(layer[drawn].mean()), len(rows), sizes.seed) for layer in table.T
        ],
        "examples": examples,
    }


SEPARATION = Measurement("separation", measure_separation, (SEMCOR,), ("semcor", "ambiguous", "seed"))


def _read(data: EvaluationData, sizes: SampleSizes) -> dict[tuple[str, str], dict[str, dict[tuple[str, ...], Use]]]:
    """The uses of each spelling by sense, one a sentence."""
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
    """Words with two senses that are used often enough, by lot."""
    often = {}
    for word, senses in sorted(found.items()):
        ranked = sorted(senses.items(), key=lambda item: (-len(item[1]), item[0]))[:SENSES]
        kept = {key: list(uses.values())[:MOST] for key, uses in ranked if len(uses) >= LEAST}
        if len(kept) > 1:
            often[word] = kept
    if len(often) < WORDS:
        raise InputError(
            f"SemCor's sentences hold {len(often)} words with two senses of {LEAST} uses each; it takes {WORDS}, so "
            "give "
            "more of it"
        )
    drawn = np.random.default_rng(sizes.seed).permutation(len(often))[: sizes.ambiguous]
    names = list(often)
    return {names[number]: often[names[number]] for number in sorted(drawn.tolist())}


def _area(vectors: np.ndarray, labels: np.ndarray) -> float:
    """The share of comparisons that a pair of one sense wins; ties are half a win."""
    cosines = unit(vectors) @ unit(vectors).T
    upper = np.triu_indices(len(labels), k=1)
    values, same = cosines[upper].round(5), (labels[:, None] == labels)[upper]
    order, counts = np.unique(values, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[np.searchsorted(order, values)]
    wins = ranks[same].sum() - same.sum() * (same.sum() + 1) / 2
    return float(wins / (same.sum() * (~same).sum()))
