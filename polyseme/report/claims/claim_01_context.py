"""Claim 1: one word, many vectors."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from polyseme.analysis.layers.geometry import GeometrySettings, geometry
from polyseme.corpus.uses import Use, bundled_sentences, embed_uses, find_place
from polyseme.embedding.similarity import unit
from polyseme.report.claim import Claim, Findings
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
    percent,
)
from polyseme.report.page.drawing import lines

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
    "put": ("in the present", "in the past"),
    "Paris": ("the city", "a person"),
    "bank": ("of a river", "for money"),
    "stick": ("a piece of wood", "to keep to something"),
}
MOST_LAYERS = 4  # that a table has room for
SAME, NEAR = 0.99999, 0.55  # a cosine above which vectors are the same; a separation that random weights do not reach


def measure_classics(subject: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """Cosines of a word's uses within a sense and across, for every layer."""
    found: Results = {}
    for word, senses in CLASSICS.items():
        sentences = [tuple(sentence.split()) for sense in senses for sentence in sense]
        uses = embed_uses(subject.encoder, [Use(words, find_place(words, word)) for words in sentences])
        rows = []
        for layer in range(subject.encoder.num_layers):
            vectors = unit(uses.vectors(layer))
            cosines = {pair: float(vectors[pair[0]] @ vectors[pair[1]]) for pair in combinations(range(4), 2)}
            within = np.mean([cosines[0, 1], cosines[2, 3]])
            rows.append([float(within), float(np.mean([cosines[pair] for pair in ((0, 2), (0, 3), (1, 2), (1, 3))]))])
        found[word] = rows
    return found


def measure_geometry(subject: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """Self-similarity by layer over the sentences that ship with the package."""
    result = geometry(subject.encoder, bundled_sentences(), GeometrySettings(min_uses=5, seed=sizes.seed))
    words = [word for word in result.words if word.word.isalpha()]
    return {
        "sentences": result.sentences,
        "uses": result.uses,
        "layers": [[row.self_similarity.raw, row.self_similarity.baseline] for row in result.layers],
        "most": [[word.word, word.uses, word.self_similarity[-1]] for word in words[:5]],
        "least": [[word.word, word.uses, word.self_similarity[-1]] for word in words[-5:]],
    }


def judge(findings: Findings) -> Verdict:
    """Held when context changes vectors, the static one stays, and senses are set apart."""
    classics, separation = findings.results.get("classics"), findings.results.get("separation")
    if not classics:
        return Verdict("not tested here", findings.why_missing("classics"), (findings.rerun(1),))
    table = np.array(list(classics.values()))  # (words, layers, within and across)
    fixed, moved = bool((table[:, 0] > SAME).all()), bool(table.shape[1] > 1 and (table[:, -1, 1] < SAME).all())
    if table.shape[1] == 1:
        return Verdict(
            FAILED,
            "It has one layer, and that gives a word the same vector in every sentence."
            if fixed
            else "It has one layer only, so there is no context-free one to compare with.",
            (_rule(), *_classic_blocks(classics), findings.rerun(1)),
        )
    apart, why = _apart(table, separation)
    reason = (
        f"{'Layer 0 gives a word the same vector wherever it stands' if fixed else 'Even layer 0 knows the sentence'}, "
        f"{'and the layers above do not' if moved else 'and so do the layers above'}. {why}"
    )
    held = moved and apart
    blocks: list[Block] = [_rule(), *_classic_blocks(classics)]
    if separation:
        blocks += _separation_blocks(separation)
    else:
        blocks.append(Paragraph(f"Senses in SemCor were not looked at. {findings.why_missing('separation')}"))
    if "geometry" in findings.results:
        blocks += _geometry_blocks(findings.results["geometry"])
    return Verdict(HELD if held else FAILED, reason, (*blocks, findings.rerun(1)))


CLASSIC = Measurement("classics", measure_classics)
GEOMETRY = Measurement("geometry", measure_geometry, sizes=("seed",))
CLAIM = Claim(
    1,
    "A word's vector depends on its sentence",
    "Older methods (word2vec, GloVe) store one list of numbers for each word: “bank” by the river and “bank” with the "
    "money share it. A contextual model makes a new one for every sentence, and uses with the same meaning should end "
    "up "
    "closer together than uses with different meanings.",
    (CLASSIC, SEPARATION, GEOMETRY),
    judge,
)


def _rule() -> PassRule:
    return PassRule(
        "a word's vectors in the top layer, the last one, differ from sentence to sentence; and in SemCor, texts in "
        "which people marked what each word means, pairs of uses with the same sense are nearer than pairs with "
        "different senses: the 95 % interval of the share (the range that luck in the choice of words leaves open) "
        f"lies above {percent(NEAR)} in the top layer. 50 % is chance; random weights reach about 52 %. Without "
        "SemCor, the four words below must all agree."
    )


def _apart(table: np.ndarray, separation: Results | None) -> tuple[bool, str]:
    """Whether senses are set apart, and a sentence on it."""
    if separation:
        mean, (low, high) = separation["mean"][-1], separation["interval"][-1]
        text = (
            f"In the top layer, {percent(mean)} of comparisons between a same-sense and a different-sense pair go the "
            f"right way (95 % interval: {100 * low:.0f} to {percent(high)}; chance is 50 %)."
        )
        return low > NEAR, text
    nearer = int((table[:, -1, 0] > table[:, -1, 1]).sum())
    text = f"For {nearer} of the four words, uses with one meaning are nearer than across meanings."
    return nearer == len(table), text


def _classic_blocks(classics: dict[str, Any]) -> list[Block]:
    count = len(next(iter(classics.values())))
    fixed = count > 1 and all(value > SAME for layers in classics.values() for value in layers[0])
    shown = list(range(int(fixed), count))
    shown = shown if len(shown) <= MOST_LAYERS else [shown[0], shown[len(shown) // 2], shown[-1]]
    rows = tuple(
        (word if layer == shown[0] else "", str(layer), *_compared(*layers[layer]))
        for word, layers in classics.items()
        for layer in shown
    )
    return [
        Table(
            ("word", "layer", "one meaning", "two meanings", "gap"),
            rows,
            "How alike a word's vectors are, in per cent (100 is the same vector), in two sentences with one meaning "
            "and in two with two meanings; a gap above zero is the right way."
            f"{' In layer 0, the spelling, all are the same.' if fixed else ''}",
        ),
        Paragraph(_ways(classics)),
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


def _compared(within: float, across: float) -> tuple[str, str, str]:
    one, two = round(100 * within), round(100 * across)
    return str(one), str(two), f"{one - two:+d}".replace("-", "−")


def _ways(classics: dict[str, Any]) -> str:
    """For which words the top layer goes the right way, and for which it does not."""
    right = [f"*{word}*" for word, layers in classics.items() if layers[-1][0] > layers[-1][1]]
    wrong = [f"*{word}*" for word, layers in classics.items() if layers[-1][0] <= layers[-1][1]]
    if not wrong:
        return "In the top layer all the words go the right way: uses with one meaning are more alike than with two."
    good = f"{_listed(right)} {'go' if len(right) > 1 else 'goes'} the right way, and " if right else ""
    return (
        f"In the top layer {good}{_listed(wrong)} {'go' if len(wrong) > 1 else 'goes'} the wrong way: uses with two "
        "meanings are at least as alike as those with one."
    )


def _listed(words: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _separation_blocks(separation: Results) -> list[Block]:
    layers = [f"{number}" for number in range(len(separation["mean"]))]
    ranked = sorted(separation["words"], key=lambda row: (-row["area"][-1], row["word"]))
    chosen = [*ranked[:4], *ranked[-4:]] if len(ranked) > 8 else ranked
    means, band = ([100 * mean for mean in separation["mean"]], [(100 * a, 100 * b) for a, b in separation["interval"]])
    return [
        Paragraph("## Senses in SemCor"),
        Figure(
            lines({"mean, %": means}, layers, "layer", (40, 80), band),
            f"How often a pair of uses with one sense is nearer than a pair with two, over {len(ranked)} words of one "
            "spelling (50 % is chance); the band is the 95 % interval.",
        ),
        Table(
            ("word", "uses of each sense", *(f"layer {name}" for name in layers)),
            tuple(
                (
                    row["word"],
                    " + ".join(str(n) for n in row["senses"].values()),
                    *(f"{100 * area:.0f}" for area in row["area"]),
                )
                for row in chosen
            ),
            "The words that are told apart best, and those that are worst: how many sentences there are of each sense, "
            "and how often a pair goes the right way, in per cent.",
        ),
        ExampleGroups(
            "The word that is told apart best, in two sentences of each sense", _by_sense(separation["examples"])
        ),
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
        "the same word in two sentences, %": [100 * row[0] for row in found["layers"]],
        "two random words, %": [100 * row[1] for row in found["layers"]],
    }
    most, least = (
        ", ".join(f"*{word}* {percent(value)}" for word, _, value in found[which]) for which in ("most", "least")
    )
    return [
        Paragraph("## How much the sentence changes a vector"),
        Figure(
            lines(series, layers, "layer", (min(0.0, *map(min, series.values())), 100.0)),
            f"How alike they are on average, over {found['uses']:,} uses in the {found['sentences']} sentences that "
            "ship with polyseme.",
        ),
        Paragraph(
            f"Words whose vectors change most in the top layer, with how alike their uses are: {most}. Least: {least}."
        ),
    ]
