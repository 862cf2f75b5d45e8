"""Introduction of the report page: what word vectors are, nearest uses of one word, and a tour through the model."""

from __future__ import annotations

import numpy as np

from polyseme.backends.elmo.encoder import ElmoEncoder
from polyseme.backends.static import StaticEncoder
from polyseme.corpus.neighbours import nearest_uses
from polyseme.corpus.uses import Use, bundled_sentences, embed_uses, find_place, find_uses
from polyseme.embedding.similarity import unit
from polyseme.report.claim import Findings
from polyseme.report.measure.filters import AGREEING, ANY, BEGIN, END, OTHERS, firing_filters
from polyseme.report.measure.measurement import Measurement, Results, SampleSizes
from polyseme.report.measure.model_under_test import EvaluationData, ModelUnderTest
from polyseme.report.page.content import Block, ExampleSentences, Figure, Paragraph, Table, join_words, list_words
from polyseme.report.page.drawing import vector_strips

WORD = "bank"
SENTENCES = ("They had lunch on the grassy bank of the river .", "He borrowed the money from a bank in the city .")
# Words that show which of the two meanings a bundled sentence is about.
MEANINGS = (
    {"river", "water", "canoe", "stream", "Fishermen", "canal"},
    {"account", "money", "clerk", "rates", "fee", "rob", "central"},
)
NEAREST = 3
CELLS = 64  # numbers of a vector that are drawn
SHOWN = 2  # models for which the introduction shows nearest uses
IDENTICAL = 0.99999  # a cosine similarity above which two vectors are the same


def measure_opening(model: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """Nearest uses of one word to its use in two sentences, and the nearest use with a different meaning.

    Each use has its words, the word's place, its cosine similarity and whether it has the same meaning.
    """
    encoder = model.encoder
    among = embed_uses(encoder, find_uses(bundled_sentences(), WORD, match_case=True))
    nearest = []
    for sentence, meaning in zip(SENTENCES, MEANINGS, strict=True):
        ranked = [
            (each.use.words, each.use.place, each.cosine, not meaning.isdisjoint(each.use.words))
            for each in nearest_uses(encoder, _use(sentence), among, "top", len(among)).found
        ]
        first, rest = ranked[:NEAREST], ranked[NEAREST:]
        if all(same for *_, same in first):
            first += [each for each in rest if not each[-1]][:1]
        nearest.append(first)
    return {"uses": len(among), "nearest": nearest}


def measure_tour(model: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """Characters, filters, layers and layer mix of one word in two sentences."""
    encoder = model.encoder
    uses = embed_uses(encoder, [_use(sentence) for sentence in SENTENCES])
    layers = np.stack([uses.vectors(number) for number in range(encoder.num_layers)], axis=1)  # (2, layers, dim)
    one, other = (unit(each) for each in layers)
    drawn = np.linspace(0, encoder.dim - 1, min(CELLS, encoder.dim)).astype(int)
    results: Results = {
        "kind": _kind(model),
        "dim": encoder.dim,
        "layers": encoder.num_layers,
        "parameters": sum(weight.numel() for weight in encoder.parameters()),
        "vectors": layers[:, :, drawn],
        "cosines": (one * other).sum(axis=-1),
        "mix": layers.mean(axis=1)[:, drawn],
        "mix_cosine": float(unit(layers[0].mean(axis=0)) @ unit(layers[1].mean(axis=0))),
    }
    if isinstance(encoder, ElmoEncoder):
        results["reads"] = len(encoder.bilm.config.directions)
        spelt = encoder.words.encode([WORD])
        if spelt.characters is not None and spelt.lengths is not None:
            results["characters"] = spelt.characters[2, : int(spelt.lengths[2])]
            results["filters"] = firing_filters(encoder, WORD)
            results["filter_count"] = encoder.bilm.config.input.num_features
    return results


OPENING = Measurement("opening", measure_opening)
TOUR = Measurement("tour", measure_tour)


def write_opening(findings: list[Findings]) -> tuple[Block, ...]:
    """The introduction of the page, for a reader who knows nothing about word vectors."""
    blocks: list[Block] = [
        Paragraph(
            "Programs work with numbers, so a language model represents every word by a list of numbers, its *vector*. "
            "Words with similar meanings should get similar vectors. For years each word had one fixed vector, "
            "although “bank” is the side of a river in one sentence and a place for money in the next. In 2018, "
            "**ELMo** started to compute a new vector for each word in each sentence: a *contextual* word vector."
        ),
        Paragraph(
            "This page tests common claims about contextual vectors, one by one, on an actual *model*: a program that "
            "has learned from a large amount of text to compute such vectors. It reports every result, for or against "
            f"the claim. {_names([each.name for each in findings])}"
        ),
    ]
    for each in findings[:SHOWN]:
        if found := each.results.get("opening"):
            model = each.name if len(findings) > 1 else "The model"
            first, second = (f"“{join_words(sentence.split())}”" for sentence in SENTENCES)
            blocks += [
                Paragraph(
                    f"An example. {model} reads {first} We compare its vector for “{WORD}” with the vectors of the "
                    f"same word in {found['uses']} other sentences. These are the most similar (cosine similarity; "
                    "1.00 means the same direction):"
                ),
                _nearest(found["nearest"][0]),
                Paragraph(f"And for {second}"),
                _nearest(found["nearest"][1]),
            ]
    return tuple(blocks)


def _names(names: list[str]) -> str:
    marked = [f"*{name}*" for name in names]
    return f"The model{'s' if len(names) > 1 else ''} tested here: {list_words(marked)}."


def _nearest(nearest: list[tuple[list[str], int, float, bool]]) -> Block:
    rows = (
        (tuple(words), place, f"{cosine:.2f}" if same else f"{cosine:.2f}, different meaning")
        for words, place, cosine, same in nearest
    )
    return ExampleSentences("", tuple(rows))


def write_tour(findings: Findings) -> tuple[Block, ...]:
    """The tour of the page: from characters through filters and layers to the layer mix."""
    found = findings.results.get("tour")
    if not found:
        return ()
    blocks: list[Block] = [
        Paragraph(
            f"This model is {found['kind']} with {found['parameters']:,} learned numbers (parameters). Here is what it "
            f"does with the word “{WORD}”."
        )
    ]
    if found.get("characters"):
        blocks += _characters(found)
    blocks += _layers(found) if found["layers"] > 1 else [_single_layer(found)]
    return (*blocks, findings.rerun("tour"))


def _characters(found: Results) -> list[Block]:
    marks = [BEGIN, *WORD, END]
    blocks: list[Block] = [
        Paragraph("## 1. It reads characters"),
        Paragraph(
            "The model has no list of words on its input side. It reads a word letter by letter, between a mark for "
            f"its start ({BEGIN}) and one for its end ({END}). Each of them has a number:"
        ),
    ]
    if len(found["characters"]) == len(marks):
        blocks.append(Table(("letter", *marks), (("number", *map(str, found["characters"])),)))
    if _has_filters(found):
        filters = found["filters"]
        blocks += [
            Paragraph("## 2. Filters respond to groups of letters"),
            Paragraph(
                f"{found['filter_count']:,} convolution filters slide over the letters; each responds strongly to some "
                f"letters and weakly to others. {filters['firing']:,} of them respond to “{WORD}” more strongly than "
                f"to most words. Most filters have no clear pattern: for {filters['plain']:,} of these, the words that "
                "they respond to visibly share letters. The clearest ones, with the words that they respond to most:"
            ),
            Table(
                ("letters", "strongest response in"),
                tuple(
                    (each["pattern"], ", ".join(_marked(*other) for other in each["others"]))
                    for each in filters["shown"]
                ),
                f"Left: the letters that “{WORD}” shares with at least {AGREEING} of the {OTHERS} words; {ANY} stands "
                "for any letter. Bold: where the filter responds.",
            ),
        ]
    return blocks


def _has_filters(found: Results) -> bool:
    return bool(found.get("filters", {}).get("shown"))


def _layers(found: Results) -> list[Block]:
    first, second = found["vectors"]
    places = ("by the river", "in the city")
    rows = [("layer 0: spelling only, the same in both", first[0])] if found["cosines"][0] > IDENTICAL else []
    for number in range(len(rows), found["layers"]):
        rows += [
            (f"layer {number}: {place}", vectors[number])
            for place, vectors in zip(places, (first, second), strict=True)
        ]
    rows = rows if len(rows) <= 9 else [*rows[:3], *rows[-4:]]
    cosines = ", ".join(f"layer {number}: {cosine:.2f}" for number, cosine in enumerate(found["cosines"]))
    readers = {2: "two networks, one from left to right and one from right to left, read", 1: "one network reads"}
    sentences = " and ".join(f"“{join_words(sentence.split())}”" for sentence in SENTENCES)
    scale = float(np.quantile(np.abs([numbers for _, numbers in rows]), 0.98)) or 1.0
    return [
        Paragraph("## 3. Layers read the sentence" if _has_filters(found) else "## Layers read the sentence"),
        Paragraph(
            f"Then {readers.get(found.get('reads', 0), 'the network reads')} the sentence in several layers, one on "
            f"top of the other. Each layer computes a new vector of {found['dim']} numbers for every word in its "
            "context. The strips show some of these numbers: blue is positive, orange is negative, and stronger "
            "colours are further from zero."
        ),
        Figure(vector_strips(rows, scale), f"“{WORD}” in {sentences}"),
        Paragraph(f"Cosine similarity of the two vectors of “{WORD}” (1.00 means the same direction): {cosines}."),
        Paragraph("## 4. A mix of all layers" if _has_filters(found) else "## A mix of all layers"),
        Paragraph(
            "Applications usually take a weighted sum of all layers: γ · (s₀ · layer 0 + s₁ · layer 1 + …). Each task, "
            "such as finding names, learns its own weights s and its own scale γ. With equal weights:"
        ),
        Figure(
            vector_strips([(f"mix: {place}", numbers) for place, numbers in zip(places, found["mix"], strict=True)])
        ),
        Paragraph(f"Cosine similarity of the two mixes: {found['mix_cosine']:.2f}."),
    ]


def _single_layer(found: Results) -> Block:
    same = "the same" if found["cosines"][0] > IDENTICAL else "different"
    return Paragraph(
        f"It has a single layer: one vector of {found['dim']} numbers for a word. The vectors of “{WORD}” in the two "
        f"sentences are {same}."
    )


def _kind(model: ModelUnderTest) -> str:
    if isinstance(model.encoder, ElmoEncoder):
        return "an ELMo model"
    return "a table of static word vectors" if isinstance(model.encoder, StaticEncoder) else "a transformer"


def _marked(word: str, letters: str) -> str:
    """A word with the letters that a filter responds to in bold; start and end marks are left out."""
    inside = letters.strip(BEGIN + END)
    place = f"{BEGIN}{word}{END}".find(letters) - (not letters.startswith(BEGIN))
    if not inside or place < 0:
        return word
    return f"{word[:place]}**{inside}**{word[place + len(inside) :]}"


def _use(sentence: str) -> Use:
    words = tuple(sentence.split())
    return Use(words, find_place(words, WORD))
