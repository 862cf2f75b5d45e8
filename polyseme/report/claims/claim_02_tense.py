"""Claim 2: the vector shows a tense that the spelling hides (*put*, *read*, *cut*, *set*, *hit*).

A probe that learned from other verbs would learn their spelling: *walked*, *went*. So in the training sentences the
verb is replaced by one that is spelled the same in both tenses, and only the rest of the sentence shows the tense.
"""

from __future__ import annotations

from collections import Counter
from itertools import cycle
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np

from polyseme.errors import InputError
from polyseme.report.claim import Claim, Findings, not_tested
from polyseme.report.measure.measurement import Measurement, Results, SampleSizes
from polyseme.report.measure.model_under_test import EvaluationData, ModelUnderTest
from polyseme.report.measure.probing import WordLabels, embed_words, fit_and_predict, layer_views
from polyseme.report.measure.statistics import SIGNIFICANCE, bootstrap_interval, sign_test
from polyseme.report.page.content import (
    Block,
    ExampleSentences,
    Figure,
    Paragraph,
    PassRule,
    Table,
    Verdict,
    list_words,
    percent,
    percent_interval,
)
from polyseme.report.page.drawing import Bar, bar_chart
from polyseme.report.verdicts import all_hold, interval_above, sign_test_says, yes_or_no
from polyseme.text.conll import CONLLU, FEATS, parse_features, read_conll

VERBS = ("put", "read", "cut", "set", "hit")
TENSES = {"Pres": "present", "Past": "past"}
FILES = tuple(f"pos-ud-ewt/en_ewt-ud-{part}.conllu.xz" for part in ("train", "dev", "test"))
SPELLING = "0"


class VerbUse(NamedTuple):
    """A finite verb in its sentence, and its tense."""

    words: list[str]
    place: int
    tense: str


def measure_tense(model: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """Train a tense probe on replaced verbs; test it on replaced verbs of the test file and on all real uses."""
    real, others = zip(*(_read(data[name]) for name in FILES), strict=True)
    uses = [use for part in real for use in part]
    rng, verbs = Random(sizes.seed), cycle(VERBS)
    training, held_out = (
        [_replace_verb(use, next(verbs)) for use in _balanced_sample(part, size, rng)]
        for part, size in ((others[0], sizes.verbs), (others[-1], sizes.verbs // 4))
    )
    if len({use.tense for use in uses}) < 2 or len({use.tense for use in training}) < 2:
        raise InputError("The UD-EWT files contain too few finite verbs of both tenses.")
    encoder = model.encoder
    train, *tests = (embed_words(encoder, [use.words for use in part]) for part in (training, held_out, uses))
    correct: dict[str, list[np.ndarray]] = {}
    for name, view in layer_views(encoder).items():
        predictions = [
            fit_and_predict((train, _labels(training)), (test, _labels(part)), view)
            for test, part in zip(tests, (held_out, uses), strict=True)
        ]
        correct[name] = [
            np.array([tense == use.tense for tense, use in zip(filter(None, given), part, strict=True)])
            for given, part in zip(predictions, (held_out, uses), strict=True)
        ]
    best = max((name for name in correct if name != SPELLING), key=lambda n: correct[n][0].mean(), default=SPELLING)
    return {
        "learnt_from": len(training),
        "replaced": {name: float(both[0].mean()) for name, both in correct.items()},
        "replaced_count": len(held_out),
        "p": sign_test(correct[best][0], correct[SPELLING][0]),
        "tenses": Counter(use.tense for use in uses),
        "real": {name: _balanced_accuracy(both[1], uses, sizes.seed) for name, both in correct.items()},
        "best": best,
        "by_verb": _by_verb(uses, correct[best][1]),
        "examples": _examples(uses, correct[best][1]),
    }


def judge(findings: Findings) -> Verdict:
    """The claim holds if the best layer predicts the tense of real uses better than chance and than the spelling."""
    found = findings.results.get("tense")
    if not found:
        return not_tested(findings, ["tense"], (findings.rerun(2),))
    best, real, count = found["best"], found["real"], sum(found["tenses"].values())
    accuracy, low, high = real[best]
    beats_spelling = sign_test_says(found["replaced"][best] > found["replaced"][SPELLING], found["p"])
    outcome = all_hold([yes_or_no(best != SPELLING), beats_spelling, interval_above(0.5, low, high)])
    reason = (
        f"With {_layer_name(best)}, the probe predicts the tense of real uses with a balanced accuracy of "
        f"{percent(accuracy)} ({percent_interval(low, high)}); with the spelling alone, {percent(real[SPELLING][0])}."
    )
    blocks: list[Block] = [
        PassRule(
            "the probe reads the tense better than chance. It learns from sentences in which another verb was replaced "
            f"by one of {list_words(VERBS)}, so that spelling is no help. The layer that does best on such sentences "
            f"of the test set must beat layer 0 there (exact sign test, p < {SIGNIFICANCE:g}), and on real uses of the "
            "five verbs the 95 % interval of its accuracy must lie above 50 %, which is chance."
        ),
        Figure(
            bar_chart([_bar(name, real[name]) for name in real], 100, " %", 50),
            f"Balanced accuracy (the mean over both tenses) on {count} real uses of {list_words(VERBS)} in UD-EWT, "
            f"{found['tenses'].get('Pres', 0)} of them in the present tense, with 95 % intervals. Dashed: "
            f"chance. The probe was trained on {found['learnt_from']:,} sentences in which another verb was replaced "
            "by one of these.",
        ),
        *_higher_layers(best, real),
        Table(
            ("layer", "replaced", "real"),
            tuple(
                (_layer_name(name), f"{100 * found['replaced'][name]:.1f}", f"{100 * real[name][0]:.1f}")
                for name in real
            ),
            f"Accuracy on {found['replaced_count']} sentences with a replaced verb, and balanced accuracy on {count} "
            "real uses, %.",
        ),
        Table(
            ("verb", "present", "correct", "past", "correct "),
            tuple((verb, *map(str, row)) for verb, row in found["by_verb"].items()),
            f"Number of real uses, and of correct predictions with {_layer_name(best)}.",
        ),
        ExampleSentences(
            "Some of the sentences",
            tuple(
                (tuple(use["words"]), use["place"], f"{use['tense']}, {'correct' if use['correct'] else 'wrong'}")
                for use in found["examples"]
            ),
        ),
    ]
    return Verdict(outcome, reason, (*blocks, findings.rerun(2)))


TENSE = Measurement("tense", measure_tense, FILES, ("verbs", "seed"))
CLAIM = Claim(
    2,
    "A vector shows the tense even if the spelling does not",
    "“I *put* my books in the bag” is about the present, “She *put* her book in my bag yesterday” about the past, and "
    "the word is spelled the same. If a word's vector contains information about its sentence, a simple classifier (a "
    "*probe*) should be able to read the tense from it.",
    (TENSE,),
    judge,
    hint="*Put*, *read*, *cut* are spelled the same in the present and in the past.",
)


def _read(path: Path) -> tuple[list[VerbUse], list[VerbUse]]:
    """Uses of the five verbs, and other verbs that one of them can replace: not “walks”, which would be “puts”."""
    real, others = [], []
    for sentence in read_conll(path):
        words = [row.columns[1] for row in sentence.rows]
        for place, row in enumerate(sentence.rows):
            features = parse_features(row.columns[FEATS])
            tense, lemma = features.get("Tense", ""), row.columns[CONLLU.index("lemma")]
            if row.columns[3] != "VERB" or features.get("VerbForm") != "Fin" or tense not in TENSES:
                continue
            if words[place].lower() in VERBS:
                real.append(VerbUse(words, place, tense))
            elif tense == "Past" or words[place].lower() == lemma.lower():
                others.append(VerbUse(words, place, tense))
    return real, others


def _balanced_sample(uses: list[VerbUse], size: int, rng: Random) -> list[VerbUse]:
    """A random sample with equally many uses of each tense."""
    by_tense = [[use for use in uses if use.tense == tense] for tense in TENSES]
    size = min(size // 2, *map(len, by_tense))
    return [use for group in by_tense for use in rng.sample(group, size)]


def _replace_verb(use: VerbUse, verb: str) -> VerbUse:
    return VerbUse([*use.words[: use.place], verb, *use.words[use.place + 1 :]], use.place, use.tense)


def _labels(uses: list[VerbUse]) -> WordLabels:
    return [[use.tense if place == use.place else None for place in range(len(use.words))] for use in uses]


def _balanced_accuracy(correct: np.ndarray, uses: list[VerbUse], seed: int) -> list[float]:
    """Balanced accuracy (mean over both tenses) and its 95 % bootstrap interval."""
    groups = [correct[[use.tense == tense for use in uses]] for tense in TENSES]
    rng = np.random.default_rng(seed)

    def resample(_: np.ndarray) -> float:
        return float(np.mean([group[rng.integers(len(group), size=len(group))].mean() for group in groups]))

    return [float(np.mean([group.mean() for group in groups])), *bootstrap_interval(resample, 1, seed)]


def _by_verb(uses: list[VerbUse], correct: np.ndarray) -> dict[str, list[int]]:
    rows = {verb: [0, 0, 0, 0] for verb in VERBS}
    for use, good in zip(uses, correct.tolist(), strict=True):
        first = 2 * int(use.tense == "Past")
        row = rows[use.words[use.place].lower()]
        row[first] += 1
        row[first + 1] += int(good)
    return rows


def _examples(uses: list[VerbUse], correct: np.ndarray) -> list[Results]:
    """Short sentences of both tenses, with correct and with wrong predictions."""
    quota = Counter({("Pres", True): 2, ("Past", True): 2, ("Pres", False): 1, ("Past", False): 1})
    examples = []
    for use, good in sorted(zip(uses, correct.tolist(), strict=True), key=lambda pair: len(pair[0].words)):
        if len(use.words) > 5 and quota[use.tense, good]:
            quota[use.tense, good] -= 1
            examples.append({"words": use.words, "place": use.place, "tense": TENSES[use.tense], "correct": good})
    return examples


def _bar(name: str, share: list[float]) -> Bar:
    value, low, high = (100 * number for number in share)
    return Bar(_layer_name(name), value, (low, high), 4 if name == SPELLING else 0)


def _higher_layers(best: str, real: dict[str, list[float]]) -> list[Block]:
    """A note on layers that do better on the real uses than the one that decides."""
    higher = [name for name in real if real[name][0] > real[best][0]]
    if not higher:
        return []
    figures = list_words([f"{_layer_name(name)} ({percent(real[name][0])})" for name in higher])
    return [
        Paragraph(
            f"On the real uses, {figures} {'do' if len(higher) > 1 else 'does'} better than {_layer_name(best)}, which "
            "decides: the layer is chosen on the replaced verbs, before looking at the real uses, so that chance does "
            "not pick the winner."
        )
    ]


def _layer_name(name: str) -> str:
    return {"0": "layer 0 (spelling)", "joined": "all layers joined"}.get(name, f"layer {name}")
