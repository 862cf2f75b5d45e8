"""Claim 3: no word is out of vocabulary."""

from __future__ import annotations

from collections import Counter

from polyseme.analysis.words.spelling import SpellingAnswer, SpellingSettings, known_words, spelling
from polyseme.errors import PolysemeError
from polyseme.report.claim import Claim, Findings, not_tested
from polyseme.report.measure.language_model import WIKITEXT
from polyseme.report.measure.measurement import Measurement, Results, SampleSizes
from polyseme.report.measure.model_under_test import EvaluationData, ModelUnderTest
from polyseme.report.page.content import FAILED, HELD, Block, Command, Figure, PassRule, Table, Verdict
from polyseme.report.page.drawing import Bar, bars
from polyseme.text.corpus import open_text

KINDS = {"forms": "inflections", "misspellings": "misspellings"}
ENOUGH = 0.5
SHOWN = 5


def measure_unseen(subject: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """Words made by rule, and whether the word that they were made of is among the ten nearest."""
    words, source = _words(subject, data)
    settings = SpellingSettings(count=sizes.misspelt, seed=sizes.seed)
    result = spelling(subject.encoder, words, settings=settings)
    return {
        "among": result.among,
        "words": source,
        "nearest": result.nearest,
        "scores": [
            {
                "kind": score.kind,
                "metric": score.metric,
                "count": score.count,
                "share": score.share,
                "interval": [score.low, score.high],
                "examples": [_example(answer) for answer in score.answers if answer.nearest][:SHOWN],
                "rules": [[rule.rule, rule.count, rule.found] for rule in score.rules],
            }
            for score in result.scores
        ],
    }


def judge(findings: Findings) -> Verdict:
    """Held when most made words are traced back."""
    found = findings.results.get("unseen")
    if not found:
        return not_tested(findings, ["unseen"], (findings.rerun(3),))
    plain = [score for score in found["scores"] if score["metric"] == "cosine"]
    reason = " ".join(
        f"Of {score['count']} {KINDS[score['kind']]}, {100 * score['share']:.0f} % lead back to their word."
        for score in plain
    )
    held = all(score["interval"][0] > ENOUGH for score in plain)
    rows = [
        Bar(
            f"{KINDS[score['kind']]}{'' if score['metric'] == 'cosine' else ', whitened'}",
            100 * score["share"],
            (100 * score["interval"][0], 100 * score["interval"][1]),
            0 if score["metric"] == "cosine" else 2,
        )
        for score in found["scores"]
    ]
    blocks: list[Block] = [
        PassRule(
            f"for inflections and for misspellings alike, the word they were made of is among the {found['nearest']} "
            f"nearest of {found['among']:,} common words in more than half the cases (lower end of the 95 % "
            "interval), by "
            "plain cosine of layer 0."
        ),
        Figure(
            bars(rows, 100, " %", 50),
            f"Shares traced back, with 95 % intervals, among {found['words']}. *Whitened*: after every direction of "
            "the "
            "vectors was given the same weight.",
        ),
    ]
    blocks += [_table(score) for score in plain]
    again = findings.rerun(3)
    if found["words"] == OWN:
        limit = f" --count {max(score['count'] for score in plain)}"
        again = Command(f"polyseme spelling {findings.model}{limit}")
    return Verdict(HELD if held else FAILED, reason, (*blocks, again))


UNSEEN = Measurement("unseen", measure_unseen, sizes=("misspelt", "seed"), head=True, uses=(WIKITEXT,))
CLAIM = Claim(
    3,
    "No word is out of vocabulary",
    "A table of word vectors is silent about a word that is not in it. This kind of model reads letters, so it has "
    "numbers for "
    "any word, even one that nobody ever wrote. Do they make sense? Here new words are made by rule, as *haziness* or "
    "*hazuy* "
    "are made of *hazy*, and the word they came from should be nearby.",
    (UNSEEN,),
    judge,
    hint="Every word gets a vector that makes sense, also a new or a misspelt one.",
)
OWN = "the commonest words that the model itself lists"


def _words(subject: ModelUnderTest, data: EvaluationData) -> tuple[list[str], str]:
    """The model's own words, the commonest first; of a model that has no list, those of WikiText's valid set."""
    try:
        return known_words(subject.place, subject.encoder), OWN
    except PolysemeError:
        with open_text(data[WIKITEXT]) as lines:
            counts = Counter(word for line in lines for word in line.split())
        words = [word for word, _ in counts.most_common() if word.isalpha()]
        return words, "the commonest words of WikiText-103's valid set"


def _example(answer: SpellingAnswer) -> list[object]:
    return [answer.made.word, answer.made.base, list(answer.nearest[:4]), answer.rank]


def _table(score: dict) -> Table:
    rows = tuple((made, base, ", ".join(nearest), str(rank)) for made, base, nearest, rank in score["examples"])
    return Table(
        ("made", "of", "nearest", "place of the right one"), rows, f"The first {len(rows)} {KINDS[score['kind']]}."
    )
