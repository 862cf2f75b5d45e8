"""Claim 1: a word's vector depends on its sentence (contextual vectors, sense separation, self-similarity)."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from polyseme.analysis.layers.geometry import GeometrySettings, geometry
from polyseme.corpus.uses import Use, bundled_sentences, embed_uses, find_place
from polyseme.embedding.similarity import unit
from polyseme.report.claim import Claim, Findings, not_tested
from polyseme.report.measure.measurement import Measurement, Results, SampleSizes
from polyseme.report.measure.model_under_test import EvaluationData, ModelUnderTest
from polyseme.report.measure.separation import SEPARATION
from polyseme.report.page.content import (
    FAILED,
    HELD,
    Block,
    ExampleGroups,
    Figure,
    Paragraph,
    PassRule,
    Table,
    Verdict,
    list_words,
    percent,
    percent_interval,
)
from polyseme.report.page.drawing import line_chart

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
    """The claim holds if the top layer's vectors change with the sentence and separate senses."""
    classics, separation = findings.results.get("classics"), findings.results.get("separation")
    if not classics:
        return not_tested(findings, ["classics"], (findings.rerun(1),))
    table = np.array(list(classics.values()))  # (words, layers, within and across)
    fixed = bool((table[:, 0] > IDENTICAL).all())
    changes = bool(table.shape[1] > 1 and (table[:, -1, 1] < IDENTICAL).all())
    blocks: list[Block] = [_rule(), *_classic_blocks(classics)]
    if table.shape[1] == 1:
        one_layer = "The model has a single layer, and it gives a word the same vector in every sentence."
        no_baseline = "The model has a single layer, so there is no context-free layer to compare with."
        return Verdict(FAILED, one_layer if fixed else no_baseline, (*blocks, findings.rerun(1)))
    separates, separation_text = _separates(table, separation)
    reason = (
        f"{'Layer 0 gives a word the same vector in every sentence' if fixed else 'Even layer 0 depends on context'}; "
        f"the vectors of the top layer {'change' if changes else 'do not change'} with the sentence. {separation_text}"
    )
    if separation:
        blocks += _separation_blocks(separation)
    else:
        blocks.append(Paragraph(f"Sense separation in SemCor was not measured. {findings.why_missing('separation')}"))
    if "geometry" in findings.results:
        blocks += _geometry_blocks(findings.results["geometry"])
    return Verdict(HELD if changes and separates else FAILED, reason, (*blocks, findings.rerun(1)))


CLASSIC = Measurement("classics", measure_classics)
GEOMETRY = Measurement("geometry", measure_geometry, sizes=("seed",))
CLAIM = Claim(
    1,
    "A word's vector depends on its sentence",
    "Older methods (word2vec, GloVe) store one vector for each word: “bank” by the river and “bank” with the money "
    "share it. A contextual model computes a new vector in every sentence. Uses of a word with the same meaning should "
    "then be more similar than uses with different meanings.",
    (CLASSIC, SEPARATION, GEOMETRY),
    judge,
)


def _rule() -> PassRule:
    return PassRule(
        "the vectors of a word in the top (last) layer differ from sentence to sentence, and they separate senses. "
        "Senses are tested in SemCor, text in which people marked the meaning of each word: we compare pairs of uses "
        "with the same sense and pairs with different senses, and count how often the same-sense pair is more similar. "
        f"The 95 % confidence interval of this share must lie above {percent(BEYOND_RANDOM)}. (Chance is 50 %; a model "
        "with random weights reaches about 52 %.) Without SemCor, same-meaning uses must be more similar for all four "
        "words below."
    )


def _separates(table: np.ndarray, separation: Results | None) -> tuple[bool, str]:
    """Whether the top layer separates senses, and a sentence about it."""
    if separation:
        mean, (low, high) = separation["mean"][-1], separation["interval"][-1]
        text = (
            f"In the top layer, the same-sense pair is more similar than the different-sense pair in {percent(mean)} "
            f"of comparisons ({percent_interval(low, high)}; chance: 50 %)."
        )
        return low > BEYOND_RANDOM, text
    right = int((table[:, -1, 0] > table[:, -1, 1]).sum())
    return right == len(table), f"For {right} of the four words, uses with the same meaning are more similar."


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
        Table(
            ("word", "layer", "same meaning", "different", "gap"),
            rows,
            "Mean cosine similarity of a word's vectors in two sentences, with the same meaning and with different "
            "meanings. A positive gap is what the claim predicts."
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
    layers = [f"{number}" for number in range(len(separation["mean"]))]
    ranked = sorted(separation["words"], key=lambda row: (-row["area"][-1], row["word"]))
    shown = [*ranked[:4], *ranked[-4:]] if len(ranked) > 8 else ranked
    means = [100 * mean for mean in separation["mean"]]
    band = [(100 * low, 100 * high) for low, high in separation["interval"]]
    return [
        Paragraph("## Senses in SemCor"),
        Figure(
            line_chart({"mean over words, %": means}, layers, "layer", (40, 80), band),
            "How often a same-sense pair of uses is more similar than a different-sense pair, over "
            f"{len(ranked)} words (50 % is chance). The band is the 95 % confidence interval.",
        ),
        Table(
            ("word", "uses of each sense", *(f"layer {name}" for name in layers)),
            tuple(
                (
                    row["word"],
                    " + ".join(str(n) for n in row["senses"].values()),
                    *(f"{100 * area:.0f}" for area in row["area"]),
                )
                for row in shown
            ),
            "The words whose senses are separated best and worst, with the number of sentences for each sense. "
            "Numbers: how often the same-sense pair is more similar, %.",
        ),
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
