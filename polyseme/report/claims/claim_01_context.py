"""Claim 1: a word's vector depends on its sentence (contextual vectors, sense separation, self-similarity)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from polyseme.analysis.layers.geometry import GeometrySettings, geometry
from polyseme.corpus.uses import Use, bundled_sentences, embed_uses, find_place
from polyseme.embedding.similarity import unit
from polyseme.report.claim import Claim, Findings, not_tested
from polyseme.report.measure.meanings import MEANINGS as MEANINGS_OF_WORDS
from polyseme.report.measure.measurement import Measurement, Results, SampleSizes
from polyseme.report.measure.model_under_test import EvaluationData, ModelUnderTest
from polyseme.report.measure.separation import SEPARATION
from polyseme.report.page.content import (
    FAILED,
    Block,
    ExampleGroups,
    Figure,
    Outcome,
    Paragraph,
    PassRule,
    Table,
    Verdict,
    list_words,
    percent,
    percent_interval,
)
from polyseme.report.page.drawing import line_chart
from polyseme.report.verdicts import all_hold, interval_above, yes_or_no

# Two sentences for each of two senses.
CLASSICS: dict[str, tuple[tuple[str, str], tuple[str, str]]] = {
    "put": (
        ("I put my books in the bag every morning .", "They always put the keys on the table ."),
        ("She put her book in my bag yesterday .", "Last night he put the letter on the desk ."),
    ),
    "Paris": (
        ("Paris is the capital of France .", "We took the train from London to Paris ."),
        ("Paris Hilton was seen at the party .", "Her friend Paris wore a long dress ."),
    ),
    "bank": (
        ("He sat on the bank of the river .", "Trees grow along the bank of the stream ."),
        ("She opened an account at the bank .", "The bank lent him the money ."),
    ),
    "stick": (
        ("The dog ran after the stick .", "He broke a dry stick over his knee ."),
        ("We must stick to the plan .", "They decided to stick with the old rules ."),
    ),
}
MEANINGS: dict[str, tuple[str, str]] = {
    "put": ("present tense", "past tense"),
    "Paris": ("the city", "a person"),
    "bank": ("of a river", "for money"),
    "stick": ("a piece of wood", "to keep to something"),
}
MAX_LAYERS = 4  # that the table has room for
IDENTICAL = 0.99999  # a cosine similarity above which two vectors are the same
BEYOND_RANDOM = 0.55  # a sense separation that random weights do not reach


def measure_classics(model: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """Mean cosine similarity of a word's uses within a sense and across senses, for every layer."""
    results: Results = {}
    for word, senses in CLASSICS.items():
        sentences = [tuple(sentence.split()) for sense in senses for sentence in sense]
        uses = embed_uses(model.encoder, [Use(words, find_place(words, word)) for words in sentences])
        results[word] = []
        for layer in range(model.encoder.num_layers):
            vectors = unit(uses.vectors(layer))
            cosines = {pair: float(vectors[pair[0]] @ vectors[pair[1]]) for pair in combinations(range(4), 2)}
            within = np.mean([cosines[0, 1], cosines[2, 3]])
            across = np.mean([cosines[pair] for pair in ((0, 2), (0, 3), (1, 2), (1, 3))])
            results[word].append([float(within), float(across)])
    return results


def measure_geometry(model: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """Self-similarity of words by layer over the sentences that are bundled with the package."""
    result = geometry(model.encoder, bundled_sentences(), GeometrySettings(min_uses=5, seed=sizes.seed))
    words = [word for word in result.words if word.word.isalpha()]
    return {
        "sentences": result.sentences,
        "uses": result.uses,
        "layers": [[row.self_similarity.raw, row.self_similarity.baseline] for row in result.layers],
        "most": [[word.word, word.uses, word.self_similarity[-1]] for word in words[:5]],
        "least": [[word.word, word.uses, word.self_similarity[-1]] for word in words[-5:]],
    }


def judge(findings: Findings) -> Verdict:
    """The claim holds if the top layer's vectors change with the sentence and separate meanings."""
    classics, meanings = findings.results.get("classics"), findings.results.get("meanings")
    if not classics or not meanings:
        return not_tested(findings, ["classics", "meanings"], (findings.rerun(1),))
    separation = findings.results.get("separation")
    table = np.array(list(classics.values()))  # (words, layers, within and across)
    fixed = bool((table[:, 0] > IDENTICAL).all())
    changes = bool((table[:, -1, 1] < IDENTICAL).all())
    if table.shape[1] == 1 and fixed:
        reason = "The model has a single layer, and it gives a word the same vector in every sentence."
        return Verdict(FAILED, reason, (_rule(), findings.rerun(1)))
    tests = [found for found in (meanings, separation) if found]
    outcomes: list[Outcome] = [interval_above(BEYOND_RANDOM, *found["interval"][-1]) for found in tests]
    reason = f"{_changes_text(fixed, changes)} {_meanings_text(meanings)}"
    if separation:
        reason += f" In SemCor, it is {percent(separation['mean'][-1])} ({_interval(separation)})."
    blocks: list[Block] = [_rule(), *_meaning_blocks(meanings)]
    blocks += _separation_blocks(separation) if separation else []
    blocks += _classic_blocks(classics)
    if "geometry" in findings.results:
        blocks += _geometry_blocks(findings.results["geometry"])
    return Verdict(all_hold([yes_or_no(changes), *outcomes]), reason, (*blocks, findings.rerun(1)))


CLASSIC = Measurement("classics", measure_classics)
GEOMETRY = Measurement("geometry", measure_geometry, sizes=("seed",))
CLAIM = Claim(
    1,
    "A word's vector depends on its sentence",
    "Older methods (word2vec, GloVe) store one vector for each word: “bank” by the river and “bank” with the money "
    "share it. A contextual model computes a new vector in every sentence. Uses of a word with the same meaning should "
    "then be more similar than uses with different meanings.",
    (CLASSIC, MEANINGS_OF_WORDS, SEPARATION, GEOMETRY),
    judge,
)


def _rule() -> PassRule:
    return PassRule(
        "the vectors of a word in the top (last) layer differ from sentence to sentence, and they separate meanings. "
        "Of a word with two meanings we take a pair of uses with the same meaning and a pair with different meanings, "
        "and count how often the first pair is more similar. The 95 % interval of this share, over all words, must lie "
        f"above {percent(BEYOND_RANDOM)}. (Chance is 50 %; random weights reach about 52 %.) If SemCor is given with "
        "`--data`, the same must hold for the dictionary senses of its words."
    )


def _changes_text(fixed: bool, changes: bool) -> str:
    first = "Layer 0 gives a word the same vector in every sentence" if fixed else "Even layer 0 depends on context"
    return f"{first}; the vectors of the top layer {'change' if changes else 'do not change'} with the sentence."


def _meanings_text(found: Results) -> str:
    return (
        f"In the top layer, the pair with the same meaning is more similar in {percent(found['mean'][-1])} of "
        f"comparisons, over {len(found['words'])} words ({_interval(found)}; chance: 50 %)."
    )


def _interval(found: Results) -> str:
    return percent_interval(*found["interval"][-1])


def _meaning_blocks(found: Results) -> list[Block]:
    best, worst = found["examples"]
    top = found["accuracy"][str(len(found["mean"]) - 1)]
    return [
        Paragraph("## Words with two meanings"),
        _area_chart(found, f"{len(found['words'])} words with two unrelated meanings"),
        Paragraph(
            f"The words are nouns such as *bank*, *bat* and *crane*, with {found['sentences']} sentences in all. Words "
            "and sentences were written before any vector was computed; none was dropped afterwards. Put differently: "
            f"in the top layer, {percent(top)} of the uses are more similar to the other uses of their own meaning "
            "than to those of the other one."
        ),
        _area_table(found, lambda row: ", ".join(row["meanings"]), "meanings"),
        ExampleGroups(f"The best separated word, *{best['word']}*", _example_groups(best)),
        ExampleGroups(f"The worst separated word, *{worst['word']}*", _example_groups(worst)),
    ]


def _example_groups(example: Results) -> tuple[tuple[str, tuple[tuple[tuple[str, ...], int, str], ...]], ...]:
    return tuple(
        (f"**{example['word']}**, {meaning}", tuple((tuple(words), place, "") for words, place in uses))
        for meaning, uses in example["meanings"].items()
    )


def _area_chart(found: Results, what: str) -> Figure:
    layers = [f"{number}" for number in range(len(found["mean"]))]
    means = [100 * mean for mean in found["mean"]]
    band = [(100 * low, 100 * high) for low, high in found["interval"]]
    low, high = (40, 80) if max(end for _, end in band) <= 80 else (40, 100)
    return Figure(
        line_chart({"mean over words, %": means}, layers, "layer", (low, high), band),
        f"How often a pair of uses with the same meaning is more similar than a pair with different meanings, for "
        f"{what} (50 % is chance). The band is the 95 % interval.",
    )


def _area_table(found: Results, describe: Callable[[Results], str], column: str) -> Table:
    ranked = sorted(found["words"], key=lambda row: (-row["area"][-1], row["word"]))
    shown = [*ranked[:4], *ranked[-4:]] if len(ranked) > 8 else ranked
    return Table(
        ("word", column, "%"),
        tuple((row["word"], describe(row), f"{100 * row['area'][-1]:.0f}") for row in shown),
        "The words whose meanings are separated best and worst: how often the pair with the same meaning is more "
        "similar in the top layer.",
    )


def _classic_blocks(classics: dict[str, Any]) -> list[Block]:
    count = len(next(iter(classics.values())))
    fixed = count > 1 and all(value > IDENTICAL for layers in classics.values() for value in layers[0])
    layers = list(range(int(fixed), count))
    layers = layers if len(layers) <= MAX_LAYERS else [layers[0], layers[len(layers) // 2], layers[-1]]
    rows = tuple(
        (word if layer == layers[0] else "", str(layer), *_cosine_cells(*by_layer[layer]))
        for word, by_layer in classics.items()
        for layer in layers
    )
    return [
        Paragraph("## Four classic examples"),
        Table(
            ("word", "layer", "same", "different", "gap"),
            rows,
            "Mean cosine similarity of a word's vectors in two sentences, with the same meaning and with different "
            "meanings. A positive gap is what the claim predicts; four words are too few to decide."
            f"{' Layer 0 (spelling only) is left out: its vectors are always the same.' if fixed else ''}",
        ),
        Paragraph(_directions(classics)),
        ExampleGroups(
            "The sentences",
            tuple(
                (
                    f"**{word}**, {meaning}",
                    tuple((words := tuple(sentence.split()), find_place(words, word), "") for sentence in sense),
                )
                for word, senses in CLASSICS.items()
                for meaning, sense in zip(MEANINGS[word], senses, strict=True)
            ),
        ),
    ]


def _cosine_cells(within: float, across: float) -> tuple[str, str, str]:
    within, across = round(within, 2), round(across, 2)
    return f"{within:.2f}", f"{across:.2f}", f"{within - across:+.2f}".replace("-", "−")


def _directions(classics: dict[str, Any]) -> str:
    """For which words the top layer's similarities go the way that the claim predicts, and for which they do not."""
    right = [f"*{word}*" for word, layers in classics.items() if layers[-1][0] > layers[-1][1]]
    wrong = [f"*{word}*" for word, layers in classics.items() if layers[-1][0] <= layers[-1][1]]
    if not wrong:
        return "In the top layer, uses with the same meaning are more similar for all four words."
    if not right:
        return "In the top layer, uses with the same meaning are not more similar for any of the four words."
    return (
        f"In the top layer, uses with the same meaning are more similar for {list_words(right)}, and not for "
        f"{list_words(wrong)}."
    )


def _separation_blocks(separation: Results) -> list[Block]:
    return [
        Paragraph("## Dictionary senses in SemCor"),
        Paragraph("A harder test: published text in which people marked each word with a sense of a large dictionary."),
        _area_chart(separation, f"{len(separation['words'])} words of SemCor"),
        _area_table(separation, lambda row: " + ".join(map(str, row["senses"].values())), "uses of each sense"),
        ExampleGroups("The best separated word, two sentences of each sense", _by_sense(separation["examples"])),
    ]


def _by_sense(examples: list[Results]) -> tuple[tuple[str, tuple[tuple[tuple[str, ...], int, str], ...]], ...]:
    senses = dict.fromkeys(each["sense"] for each in examples)
    return tuple(
        (
            f"**{next(each['words'][each['place']] for each in examples if each['sense'] == sense)}**, sense {number}",
            tuple((tuple(each["words"]), each["place"], "") for each in examples if each["sense"] == sense),
        )
        for number, sense in enumerate(senses, start=1)
    )


def _geometry_blocks(found: Results) -> list[Block]:
    layers = [str(number) for number in range(len(found["layers"]))]
    series = {
        "the same word in two sentences": [row[0] for row in found["layers"]],
        "two random words": [row[1] for row in found["layers"]],
    }
    most, least = (", ".join(f"*{word}* {value:.2f}" for word, _, value in found[which]) for which in ("most", "least"))
    return [
        Paragraph("## How much the sentence changes a vector"),
        Figure(
            line_chart(series, layers, "layer", (min(0.0, *map(min, series.values())), 1.0)),
            f"Mean cosine similarity over {found['uses']:,} uses of words in the {found['sentences']} sentences that "
            "are bundled with polyseme.",
        ),
        Paragraph(
            "Words whose vectors change most between sentences in the top layer, with the mean cosine similarity of "
            f"their uses: {most}. Words that change least: {least}."
        ),
    ]
