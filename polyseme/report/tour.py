"""How the vectors come about, drawn from the model itself; and the first thing that a reader sees."""

from __future__ import annotations

import numpy as np

from polyseme.backends.elmo.encoder import ElmoEncoder
from polyseme.backends.static import StaticEncoder
from polyseme.corpus.neighbours import nearest_uses
from polyseme.corpus.uses import Use, bundled_sentences, embed_uses, find_place, find_uses
from polyseme.embedding.similarity import unit
from polyseme.report.claim import Findings
from polyseme.report.measure.filters import AGREEING, BEGIN, DOT, END, OTHERS, firing_filters
from polyseme.report.measure.measurement import Measurement, Results, SampleSizes
from polyseme.report.measure.model_under_test import EvaluationData, ModelUnderTest
from polyseme.report.page.content import Block, ExampleSentences, Figure, Paragraph, Table, percent, sentence_of
from polyseme.report.page.drawing import strips

WORD = "bank"
SENTENCES = (
    "They had lunch on the grassy bank of the river .",
    "He borrowed the money from a bank in the city .",
)
# By which of these words one can judge which of the two meanings a bundled sentence is about.
MEANINGS = (
    {"river", "water", "canoe", "stream", "Fishermen", "canal"},
    {"account", "money", "clerk", "rates", "fee", "rob", "central"},
)
NEAREST = 3
CELLS = 64  # of a vector that are drawn
SHOWN = 2  # models that the first screen has room for


def measure_opening(subject: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """The uses of one word that are nearest to it in two sentences, and the nearest of another meaning.

    Each is told with its words, its place, its cosine and whether it has the same meaning.
    """
    encoder = subject.encoder
    among = embed_uses(encoder, find_uses(bundled_sentences(), WORD, match_case=True))
    found = []
    for sentence, meaning in zip(SENTENCES, MEANINGS, strict=True):
        ranked = [
            (each.use.words, each.use.place, each.cosine, not meaning.isdisjoint(each.use.words))
            for each in nearest_uses(encoder, _use(sentence), among, "top", len(among)).found
        ]
        first, rest = ranked[:NEAREST], ranked[NEAREST:]
        if all(same for *_, same in first):
            first += [each for each in rest if not each[-1]][:1]
        found.append(first)
    return {"uses": len(among), "nearest": found}


def measure_tour(subject: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """Spelling, filters, layers and mix of one word in two sentences."""
    encoder = subject.encoder
    uses = embed_uses(encoder, [_use(sentence) for sentence in SENTENCES])
    layers = np.stack([uses.vectors(number) for number in range(encoder.num_layers)], axis=1)  # (2, layers, dim)
    one, other = (unit(each) for each in layers)
    kept = np.linspace(0, encoder.dim - 1, min(CELLS, encoder.dim)).astype(int)
    found: Results = {
        "kind": _kind(subject),
        "dim": encoder.dim,
        "layers": encoder.num_layers,
        "parameters": sum(weight.numel() for weight in encoder.parameters()),
        "vectors": layers[:, :, kept],
        "cosines": (one * other).sum(axis=-1),
        "mix": layers.mean(axis=1)[:, kept],
        "mix_cosine": float(unit(layers[0].mean(axis=0)) @ unit(layers[1].mean(axis=0))),
    }
    if isinstance(encoder, ElmoEncoder):
        found["reads"] = len(encoder.bilm.config.directions)
        spelt = encoder.words.encode([WORD])
        if spelt.characters is not None and spelt.lengths is not None:
            found["characters"] = spelt.characters[2, : int(spelt.lengths[2])]
            found["filters"] = firing_filters(encoder, WORD)
            found["filter_count"] = encoder.bilm.config.input.num_features
    return found


OPENING = Measurement("opening", measure_opening)
TOUR = Measurement("tour", measure_tour)


def write_opening(findings: list[Findings]) -> tuple[Block, ...]:
    """What a reader who knows nothing of all this should see first."""
    blocks: list[Block] = [
        Paragraph(
            "A computer cannot work with a word as we do, so it is given numbers instead: a list of them for every "
            "word, called "
            "a *vector*. Words that mean something similar should get similar lists. For years each word had one "
            "list, the same "
            "everywhere, though “bank” is a place by the river in one sentence and a place for money in the next. In "
            "2018 a "
            "program called **ELMo** began to make a new list for each word in each sentence."
        ),
        Paragraph(
            "Much is claimed of such vectors. This page takes the claims one by one, puts each to the test on an "
            "actual *model*, which is a program that has learnt from much text to make such lists, and says what came "
            f"out, for or against. {_named([each.name for each in findings])}"
        ),
    ]
    for each in findings[:SHOWN]:
        if found := each.results.get("opening"):
            who = f"We show {each.name}" if len(findings) > 1 else "We show it"
            first, second = (f"“{sentence_of(sentence.split())}”" for sentence in SENTENCES)
            blocks += [
                Paragraph(
                    f"{who} {first} and ask: of {found['uses']} other sentences with “{WORD}”, in which is the word "
                    "most alike? 100 % would be the same vector."
                ),
                _nearest(found["nearest"][0]),
                Paragraph(f"And for {second}"),
                _nearest(found["nearest"][1]),
            ]
    return tuple(blocks)


def _named(names: list[str]) -> str:
    marked = [f"*{name}*" for name in names]
    if len(marked) == 1:
        return f"The model here is the one named {marked[0]}."
    return f"The models here are those named {', '.join(marked[:-1])} and {marked[-1]}."


def _nearest(found: list[tuple[list[str], int, float, bool]]) -> Block:
    return ExampleSentences(
        "",
        tuple(
            (tuple(words), place, f"{percent(cosine)} alike" if same else f"another meaning: {percent(cosine)} alike")
            for words, place, cosine, same in found
        ),
    )


def write_tour(findings: Findings) -> tuple[Block, ...]:
    """From letters to layers to the mix."""
    found = findings.results.get("tour")
    if not found:
        return ()
    blocks: list[Block] = [
        Paragraph(
            f"This is {found['kind']}, made up of {found['parameters']:,} numbers. Here is what it does with “{WORD}”."
        )
    ]
    if found.get("characters"):
        blocks += _spelling(found)
    blocks += _layers(found) if found["layers"] > 1 else [_one_layer(found)]
    return (*blocks, findings.rerun("tour"))


def _spelling(found: Results) -> list[Block]:
    marks = [BEGIN, *WORD, END]
    blocks: list[Block] = [
        Paragraph("## 1. It spells"),
        Paragraph(
            f"It has no list of words. It sees letters, between a mark for the beginning ({BEGIN}) and one for the "
            f"end ({END}); each is a "
            "number:"
        ),
    ]
    if len(found["characters"]) == len(marks):
        blocks.append(Table(("letter", *marks), (("number", *map(str, found["characters"])),)))
    if _filters(found):
        filters = found["filters"]
        blocks += [
            Paragraph("## 2. Filters look for pieces of words"),
            Paragraph(
                f"{found['filter_count']:,} small filters slide over the letters; each answers strongly to some "
                f"letters and weakly to others. {filters['firing']:,} of them fire in “{WORD}” more than in most "
                f"words. What they answer to is often fuzzy: in {filters['plain']:,} of these, letters in common are "
                "plain to see. The plainest are shown, with the words in which they fire most:"
            ),
            Table(
                ("letters", "fires most in"),
                tuple(
                    (each["pattern"], ", ".join(_marked(*other) for other in each["others"]))
                    for each in filters["shown"]
                ),
                f"On the left, the letters that “{WORD}” has in common with at least {AGREEING} of the {OTHERS} words; "
                f"{DOT} is any letter. In bold, where the filter fires.",
            ),
        ]
    return blocks


def _filters(found: Results) -> bool:
    return bool(found.get("filters", {}).get("shown"))


def _layers(found: Results) -> list[Block]:
    first, second = found["vectors"]
    places = ("by the river", "with the money")
    rows = [("layer 0: the spelling, the same in both", first[0])] if found["cosines"][0] > 0.99999 else []
    for number in range(len(rows), found["layers"]):
        rows += [
            (f"layer {number}: {place}", vectors[number])
            for place, vectors in zip(places, (first, second), strict=True)
        ]
    rows = rows if len(rows) <= 9 else [*rows[:3], *rows[-4:]]
    cosines = ", ".join(f"layer {number}: {percent(cosine)}" for number, cosine in enumerate(found["cosines"]))
    reading = {2: "two readers, one from the left and one from the right, go", 1: "one reader goes"}.get(
        found.get("reads", 0), "its layers go"
    )
    shown = " and ".join(f"“{sentence_of(sentence.split())}”" for sentence in SENTENCES)
    scale = float(np.quantile(np.abs([numbers for _, numbers in rows]), 0.98)) or 1.0
    return [
        Paragraph("## 3. Layers read the sentence" if _filters(found) else "## Layers read the sentence"),
        Paragraph(
            f"Then {reading} through the sentence, layer upon layer, and at each word leave a new list of "
            f"{found['dim']} numbers: what the "
            "word is, here. The strips show some of them: blue is above zero, orange below, and the stronger the "
            "colour, the farther."
        ),
        Figure(strips(rows, scale), f"“{WORD}” in {shown}"),
        Paragraph(f"How alike the two are (100 % is the same vector): {cosines}."),
        Paragraph("## 4. A mix of all layers" if _filters(found) else "## A mix of all layers"),
        Paragraph(
            "What a program takes in the end is a mix: a bit of each layer, γ · (s₀ · layer 0 + s₁ · layer 1 + …). "
            "Each task, that is, each job that the vectors are used for, such as finding names, learns the shares s "
            "and the loudness γ by itself. With even shares:"
        ),
        Figure(strips([(f"the mix: {place}", numbers) for place, numbers in zip(places, found["mix"], strict=True)])),
        Paragraph(f"The two mixes are {percent(found['mix_cosine'])} alike."),
    ]


def _one_layer(found: Results) -> Block:
    return Paragraph(
        f"It has one list of {found['dim']} numbers for a word and looks it up. In both sentences the list is "
        f"{'the same' if found['cosines'][0] > 0.99999 else 'not the same'}."
    )


def _kind(subject: ModelUnderTest) -> str:
    if isinstance(subject.encoder, ElmoEncoder):
        return "an ELMo"
    return "a table of word vectors" if isinstance(subject.encoder, StaticEncoder) else "a transformer"


def _marked(word: str, letters: str) -> str:
    """The word with the letters of a filter in bold; marks are left out."""
    inside = letters.strip(BEGIN + END)
    place = f"{BEGIN}{word}{END}".find(letters) - (not letters.startswith(BEGIN))
    if not inside or place < 0:
        return word
    return f"{word[:place]}**{inside}**{word[place + len(inside) :]}"


def _use(sentence: str) -> Use:
    words = tuple(sentence.split())
    return Use(words, find_place(words, WORD))
