"""Claim 3: no word is out of vocabulary (OOV), since a character-based model embeds any spelling."""

from __future__ import annotations

from collections import Counter

from polyseme.analysis.words.spelling import SpellingAnswer, SpellingSettings, known_words, spelling
from polyseme.errors import PolysemeError
from polyseme.report.claim import Claim, Findings, not_tested
from polyseme.report.measure.language_model import WIKITEXT
from polyseme.report.measure.measurement import Measurement, Results, SampleSizes
from polyseme.report.measure.model_under_test import EvaluationData, ModelUnderTest
from polyseme.report.page.content import Block, Command, Figure, PassRule, Table, Verdict, percent
from polyseme.report.page.drawing import Bar, bar_chart
from polyseme.report.verdicts import all_hold, interval_above
from polyseme.text.corpus import open_text

KINDS = {"forms": "word forms", "misspellings": "misspellings"}
OWN, TEXT = "model", "wikitext"
WORD_LISTS = {OWN: "the model's own word list", TEXT: "WikiText-103's validation text"}
ENOUGH = 0.5
SHOWN = 5


def measure_unseen(model: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """Derived words (word forms, misspellings), and whether their base word is among the ten nearest words."""
    words, source = _word_list(model, data)
    result = spelling(model.encoder, words, settings=SpellingSettings(count=sizes.misspelt, seed=sizes.seed))
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
    """The claim holds if most derived words are close to the word they come from."""
    found = findings.results.get("unseen")
    if not found:
        return not_tested(findings, ["unseen"], (findings.rerun(3),))
    by_cosine = [score for score in found["scores"] if score["metric"] == "cosine"]
    parts = [f"{percent(score['share'])} of {score['count']} {KINDS[score['kind']]}" for score in by_cosine]
    reason = f"The base word is among the {found['nearest']} nearest words for {' and '.join(parts)}."
    outcome = all_hold(interval_above(ENOUGH, *score["interval"]) for score in by_cosine)
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
            f"for word forms and for misspellings, the base word is among the {found['nearest']} nearest of "
            f"{found['among']:,} frequent words in more than half of the cases (the 95 % interval lies "
            "above 50 %), by cosine similarity in layer 0."
        ),
        Figure(
            bar_chart(rows, 100, " %", 50),
            "How often the base word is found, with 95 % intervals, among the most frequent words of "
            f"{WORD_LISTS[found['words']]}. *Whitened*: with the vectors rescaled so that all directions have the same "
            "variance.",
        ),
        *map(_table, by_cosine),
    ]
    rerun = findings.rerun(3)
    if found["words"] == OWN:
        rerun = Command(f"polyseme spelling {findings.model} --count {max(score['count'] for score in by_cosine)}")
    return Verdict(outcome, reason, (*blocks, rerun))


UNSEEN = Measurement("unseen", measure_unseen, sizes=("misspelt", "seed"), head=True, uses=(WIKITEXT,))
CLAIM = Claim(
    3,
    "No word is out of vocabulary",
    "A table of word vectors has nothing for a word that is not in it. This kind of model reads letters, so it "
    "computes a vector for any word, even for one that it has never seen. Are these vectors any good? We derive new "
    "words by rule, such as *haziness* (a word form) or *hazuy* (a misspelling) from *hazy*, and look for the base "
    "word among their nearest neighbours.",
    (UNSEEN,),
    judge,
    hint="New and misspelled words get useful vectors, too.",
)


def _word_list(model: ModelUnderTest, data: EvaluationData) -> tuple[list[str], str]:
    """The model's own words, most frequent first, or those of WikiText if the model has no list."""
    try:
        return known_words(model.path, model.encoder), OWN
    except PolysemeError:
        with open_text(data[WIKITEXT]) as lines:
            counts = Counter(word for line in lines for word in line.split())
        return [word for word, _ in counts.most_common() if word.isalpha()], TEXT


def _example(answer: SpellingAnswer) -> list[object]:
    return [answer.made.word, answer.made.base, list(answer.nearest[:4]), answer.rank]


def _table(score: Results) -> Table:
    rows = tuple((made, base, ", ".join(nearest[:3]), str(rank)) for made, base, nearest, rank in score["examples"])
    return Table(
        ("derived", "base", "nearest words", "rank"),
        rows,
        f"The first {len(rows)} {KINDS[score['kind']]}. Rank: the base word's place among the neighbours.",
    )
