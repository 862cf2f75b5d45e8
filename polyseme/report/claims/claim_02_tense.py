"""Claim 2: the same spelling in the present and in the past.

A probe that learns from other verbs would learn their spelling: *walked*, *went*. So in the sentences it learns from
the verb is replaced by one that is spelt alike in both tenses; nothing but the rest of the sentence tells which it is.
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
from polyseme.report.measure.probing import Labels, embed_words, fit_and_answer, layer_views
from polyseme.report.measure.statistics import SURE, resampled, sign_test
from polyseme.report.page.content import (
    FAILED,
    HELD,
    Block,
    ExampleSentences,
    Figure,
    Paragraph,
    PassRule,
    Table,
    Verdict,
    percent,
)
from polyseme.report.page.drawing import Bar, bars
from polyseme.text.conll import CONLLU, FEATS, parse_features, read_conll

VERBS = ("put", "read", "cut", "set", "hit")
TENSES = {"Pres": "present", "Past": "past"}
FILES = tuple(f"pos-ud-ewt/en_ewt-ud-{part}.conllu.xz" for part in ("train", "dev", "test"))
SPELLING = "0"


class Verb(NamedTuple):
    """A finite verb in its sentence."""

    words: list[str]
    place: int
    tense: str


def measure_tense(subject: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """Learn tense from replaced verbs, and ask it of replaced ones in the test file and of all real uses."""
    real, others = zip(*(_read(data[name]) for name in FILES), strict=True)
    uses = [verb for part in real for verb in part]
    lot, verbs = Random(sizes.seed), cycle(VERBS)
    learnt, held_out = (
        [_replaced(verb, next(verbs)) for verb in _balanced(part, many, lot)]
        for part, many in ((others[0], sizes.verbs), (others[-1], sizes.verbs // 4))
    )
    if len({verb.tense for verb in uses}) < 2 or len({verb.tense for verb in learnt}) < 2:
        raise InputError("The files of UD-EWT hold too few finite verbs of both tenses.")
    encoder = subject.encoder
    train, *tests = (embed_words(encoder, [verb.words for verb in part]) for part in (learnt, held_out, uses))
    correct: dict[str, list[np.ndarray]] = {}
    for name, view in layer_views(encoder).items():
        answers = [
            fit_and_answer((train, _labels(learnt)), (test, _labels(part)), view)
            for test, part in zip(tests, (held_out, uses), strict=True)
        ]
        correct[name] = [
            np.array([answer == verb.tense for answer, verb in zip(filter(None, given), part, strict=True)])
            for given, part in zip(answers, (held_out, uses), strict=True)
        ]
    best = max((name for name in correct if name != SPELLING), key=lambda n: correct[n][0].mean(), default=SPELLING)
    return {
        "learnt_from": len(learnt),
        "replaced": {name: float(both[0].mean()) for name, both in correct.items()},
        "replaced_count": len(held_out),
        "p": sign_test(correct[best][0], correct[SPELLING][0]),
        "tenses": Counter(verb.tense for verb in uses),
        "real": {name: _balanced_share(both[1], uses, sizes.seed) for name, both in correct.items()},
        "best": best,
        "by_verb": _by_verb(uses, correct[best][1]),
        "examples": _examples(uses, correct[best][1]),
    }


def judge(findings: Findings) -> Verdict:
    """Held when the sentence tells the tense of real uses."""
    found = findings.results.get("tense")
    if not found:
        return not_tested(findings, ["tense"], (findings.rerun(2),))
    best, real, count = found["best"], found["real"], sum(found["tenses"].values())
    share, low, high = real[best]
    held = best != SPELLING and low > 0.5 and found["p"] < SURE and found["replaced"][best] > found["replaced"]["0"]
    reason = (
        f"By {_named(best)} the tense of {100 * share:.0f} % of the real uses is found (95 % interval: {100 * low:.0f} "
        f"to {percent(high)}), both tenses weighing the same; by the spelling alone it is {100 * real['0'][0]:.0f} %."
    )
    return Verdict(
        HELD if held else FAILED,
        reason,
        (
            PassRule(
                "the layer that does best on replaced verbs beats the spelling there (exact sign test, p below "
                f"{SURE:g}), and on the real uses its 95 % interval lies wholly above 50 %, which is guessing."
            ),
            Figure(
                bars([_bar(name, real[name]) for name in real], 100, " %", 50),
                f"Tense found on {count} real uses of {', '.join(VERBS)} in UD-EWT ({found['tenses'].get('Pres', 0)} "
                "in "
                "the present), both tenses weighing the same, with 95 % intervals; dashed: guessing. The probe learnt "
                f"from {found['learnt_from']:,} sentences in which another verb was replaced by one of these.",
            ),
            *_higher(best, real),
            Table(
                ("layer", f"replaced verbs ({found['replaced_count']})", f"real uses ({count})"),
                tuple(
                    (_named(name), f"{100 * found['replaced'][name]:.1f}", f"{100 * real[name][0]:.1f}")
                    for name in real
                ),
                "Shares of right answers, %.",
            ),
            Table(
                ("verb", "present", "found", "past", "found "),
                tuple((verb, *map(str, row)) for verb, row in found["by_verb"].items()),
                f"Real uses, by {_named(best)}.",
            ),
            ExampleSentences(
                "Some of the sentences",
                tuple((tuple(use["words"]), use["place"], use["note"]) for use in found["examples"]),
            ),
            findings.rerun(2),
        ),
    )


TENSE = Measurement("tense", measure_tense, FILES, ("verbs", "seed"))
CLAIM = Claim(
    2,
    "Even tense shows where the spelling does not judge it",
    "“I *put* my books in the bag” is now, “She *put* her book in my bag yesterday” is not, and the word is the same "
    "three letters. If a word's vector holds its sentence, a simple classifier should read the tense off it.",
    (TENSE,),
    judge,
    hint="*Put*, *read*, *cut*: in the present and in the past they are written the same.",
)


def _read(path: Path) -> tuple[list[Verb], list[Verb]]:
    """Uses of the five verbs, and other verbs that one of them can stand for: no “walks”, which would be “puts”."""
    real, others = [], []
    for sentence in read_conll(path):
        words = [row.columns[1] for row in sentence.rows]
        for place, row in enumerate(sentence.rows):
            features = parse_features(row.columns[FEATS])
            tense, lemma = features.get("Tense", ""), row.columns[CONLLU.index("lemma")]
            if row.columns[3] != "VERB" or features.get("VerbForm") != "Fin" or tense not in TENSES:
                continue
            if words[place].lower() in VERBS:
                real.append(Verb(words, place, tense))
            elif tense == "Past" or words[place].lower() == lemma.lower():
                others.append(Verb(words, place, tense))
    return real, others


def _balanced(verbs: list[Verb], many: int, lot: Random) -> list[Verb]:
    """As many of each tense, by lot."""
    by_tense = [[verb for verb in verbs if verb.tense == tense] for tense in TENSES]
    many = min(many // 2, *map(len, by_tense))
    return [verb for group in by_tense for verb in lot.sample(group, many)]


def _replaced(verb: Verb, other: str) -> Verb:
    return Verb([*verb.words[: verb.place], other, *verb.words[verb.place + 1 :]], verb.place, verb.tense)


def _labels(verbs: list[Verb]) -> Labels:
    return [[verb.tense if place == verb.place else None for place in range(len(verb.words))] for verb in verbs]


def _balanced_share(correct: np.ndarray, uses: list[Verb], seed: int) -> list[float]:
    """The mean over both tenses of the share found, and its 95 % interval."""
    groups = [correct[[verb.tense == tense for verb in uses]] for tense in TENSES]
    lot = np.random.default_rng(seed)

    def drawn(_: np.ndarray) -> float:
        return float(np.mean([group[lot.integers(len(group), size=len(group))].mean() for group in groups]))

    return [float(np.mean([group.mean() for group in groups])), *resampled(drawn, 1, seed)]


def _by_verb(uses: list[Verb], correct: np.ndarray) -> dict[str, list[int]]:
    rows = {verb: [0, 0, 0, 0] for verb in VERBS}
    for use, good in zip(uses, correct.tolist(), strict=True):
        first = 2 * int(use.tense == "Past")
        row = rows[use.words[use.place].lower()]
        row[first] += 1
        row[first + 1] += int(good)
    return rows


def _examples(uses: list[Verb], correct: np.ndarray) -> list[Results]:
    """Short sentences of both tenses, found and missed."""
    wanted = Counter({("Pres", True): 2, ("Past", True): 2, ("Pres", False): 1, ("Past", False): 1})
    found = []
    for use, good in sorted(zip(uses, correct.tolist(), strict=True), key=lambda pair: len(pair[0].words)):
        if len(use.words) > 5 and wanted[use.tense, good]:
            wanted[use.tense, good] -= 1
            note = f"{TENSES[use.tense]}, {'found' if good else 'missed'}"
            found.append({"words": use.words, "place": use.place, "note": note})
    return found


def _bar(name: str, share: list[float]) -> Bar:
    value, low, high = (100 * number for number in share)
    return Bar(_named(name), value, (low, high), 4 if name == SPELLING else 0)


def _higher(best: str, real: dict[str, list[float]]) -> list[Block]:
    """A word on layers that do better on the real uses than the one that decides."""
    higher = [name for name in real if real[name][0] > real[best][0]]
    if not higher:
        return []
    figures = " and ".join(f"{_named(name)} ({percent(real[name][0])})" for name in higher)
    return [
        Paragraph(
            f"On the real uses {figures} {'are' if len(higher) > 1 else 'is'} higher than {_named(best)}, which "
            "decides: it was chosen by the replaced verbs, before looking at the real uses, so that luck does not "
            "choose."
        )
    ]


def _named(name: str) -> str:
    return {"0": "layer 0, spelling", "joined": "all layers joined"}.get(name, f"layer {name}")
