"""How the vectors come about, drawn from the model itself; and the first thing that a reader sees."""

from __future__ import annotations

import numpy as np

from polyseme.analysis.neighbours import nearest_uses
from polyseme.analysis.report.content import Block, Findings, Part, Picture, Quotes, Table, Text
from polyseme.analysis.report.drawing import strips
from polyseme.analysis.report.filters import BEGIN, END, firing_filters
from polyseme.analysis.report.sizes import Sizes
from polyseme.analysis.report.store import Found
from polyseme.analysis.report.subject import Data, Subject
from polyseme.analysis.uses import Use, bundled_sentences, embed_uses, find_place, find_uses
from polyseme.backends.elmo import ElmoEncoder
from polyseme.backends.static import StaticEncoder
from polyseme.formats.vectors.search import unit

WORD = "bank"
SENTENCES = (
    "They had lunch on the grassy bank of the river .",
    "He borrowed the money from a bank in the city .",
)
CELLS = 64  # of a vector that are drawn
SHOWN = 2  # models that the first screen has room for


def measure_opening(subject: Subject, data: Data, sizes: Sizes) -> Found:
    """The uses of one word that are nearest to it in two sentences."""
    encoder = subject.encoder
    among = embed_uses(encoder, find_uses(bundled_sentences(), WORD, match_case=True))
    found = []
    for sentence in SENTENCES:
        use = _use(sentence)
        nearest = nearest_uses(encoder, use, among, "top", 3)
        found.append([[each.use.words, each.use.place, each.cosine] for each in nearest.found])
    return {"uses": len(among), "nearest": found}


def measure_tour(subject: Subject, data: Data, sizes: Sizes) -> Found:
    """Spelling, filters, layers and mix of one word in two sentences."""
    encoder = subject.encoder
    uses = embed_uses(encoder, [_use(sentence) for sentence in SENTENCES])
    layers = np.stack([uses.vectors(number) for number in range(encoder.num_layers)], axis=1)  # (2, layers, dim)
    one, other = (unit(each) for each in layers)
    kept = np.linspace(0, encoder.dim - 1, min(CELLS, encoder.dim)).astype(int)
    found: Found = {
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


OPENING = Part("opening", measure_opening)
TOUR = Part("tour", measure_tour)


def tell_opening(findings: list[Findings]) -> tuple[Block, ...]:
    """What a reader who knows nothing of all this should see first."""
    blocks: list[Block] = [
        Text(
            "A computer cannot work with a word as we do, so it is given numbers instead: a list of them for every "
            "word, called "
            "a *vector*. Words that mean something similar should get similar lists. For years each word had one "
            "list, the same "
            "everywhere, though “bank” is a place by the river in one sentence and a place for money in the next. In "
            "2018 a "
            "program called **ELMo** began to make a new list for each word in each sentence."
        ),
        Text(
            "Much is claimed of such vectors. This page takes the claims one by one, puts each to the test on an "
            "actual model, "
            "and says what came out, for or against."
        ),
    ]
    for each in findings[:SHOWN]:
        if found := each.found.get("opening"):
            named = f"{each.name}: w" if len(findings) > 1 else "W"
            for number, (sentence, nearest) in enumerate(zip(SENTENCES, found["nearest"], strict=True)):
                said = (
                    f"{named}e show it “{sentence.replace(' .', '.')}”"
                    if not number
                    else f"And for “{sentence.replace(' .', '.')}”"
                )
                ask = (
                    f" and ask: of {found['uses']} other sentences with “{WORD}”, in which is the word most alike?"
                    if not number
                    else ""
                )
                lines = tuple((tuple(words), place, f"{100 * cosine:.0f} % alike") for words, place, cosine in nearest)
                blocks.append(Quotes(f"{said}{ask}", lines))
    return tuple(blocks)


def tell_tour(findings: Findings) -> tuple[Block, ...]:
    """From letters to layers to the mix."""
    found = findings.found.get("tour")
    if not found:
        return ()
    blocks: list[Block] = [
        Text(
            f"This is {found['kind']}, made up of {found['parameters']:,} numbers. Here is what it does with “{WORD}”."
        )
    ]
    if found.get("characters"):
        blocks += _spelling(found)
    blocks += _layers(found) if found["layers"] > 1 else [_one_layer(found)]
    return (*blocks, findings.again("tour"))


def _spelling(found: Found) -> list[Block]:
    marks = [BEGIN, *WORD, END]
    blocks: list[Block] = [
        Text("## 1. It spells"),
        Text(
            f"It has no list of words. It sees letters, between a mark for the beginning ({BEGIN}) and one for the "
            f"end ({END}); each is a "
            "number:"
        ),
    ]
    if len(found["characters"]) == len(marks):
        blocks.append(Table(("letter", *marks), (("number", *map(str, found["characters"])),)))
    if found.get("filters"):
        blocks += [
            Text("## 2. Filters look for pieces of words"),
            Text(
                f"{found['filter_count']:,} small filters slide over the letters. Each has learnt to look out for "
                "some pattern, and fires "
                f"where it finds it. These fire in “{WORD}” more than in most words, and so they do in the words "
                "beside them:"
            ),
            Table(
                ("piece", f"fires in “{WORD}” and in"),
                tuple(
                    (each["letters"], ", ".join(_marked(*other) for other in each["others"]))
                    for each in found["filters"]
                ),
                "In bold, the letters where it fires.",
            ),
        ]
    return blocks


def _layers(found: Found) -> list[Block]:
    first, second = found["vectors"]
    places = ("by the river", "with the money")
    rows = [("layer 0: the spelling, the same in both", first[0])] if found["cosines"][0] > 0.99999 else []
    for number in range(len(rows), found["layers"]):
        rows += [
            (f"layer {number}: {place}", vectors[number])
            for place, vectors in zip(places, (first, second), strict=True)
        ]
    rows = rows if len(rows) <= 9 else [*rows[:3], *rows[-4:]]
    cosines = ", ".join(f"layer {number} {cosine:.2f}" for number, cosine in enumerate(found["cosines"]))
    reading = {2: "two readers, one from the left and one from the right,", 1: "one reader"}.get(
        found.get("reads", 0), "its layers"
    )
    scale = float(np.quantile(np.abs([numbers for _, numbers in rows]), 0.98)) or 1.0
    return [
        Text("## 3. Layers read the sentence" if found.get("filters") else "## Layers read the sentence"),
        Text(
            f"Then {reading} go through the sentence, layer upon layer, and at each word leave a new list of "
            f"{found['dim']} numbers: what the "
            "word is, here. The strips show some of them; one colour is above zero, the other below, and the stronger "
            "the farther."
        ),
        Picture(strips(rows, scale), f"“{WORD}” in “{SENTENCES[0]}” and “{SENTENCES[1]}”"),
        Text(f"How alike the two are (1 is the same): {cosines}."),
        Text("## 4. A mix of all layers" if found.get("filters") else "## A mix of all layers"),
        Text(
            "What a program takes in the end is a mix: a bit of each layer, γ · (s₀ · layer 0 + s₁ · layer 1 + …). A "
            "task learns the shares s "
            "and the loudness γ by itself (claim 5). With even shares:"
        ),
        Picture(strips([(f"the mix: {place}", numbers) for place, numbers in zip(places, found["mix"], strict=True)])),
        Text(f"Alike: {found['mix_cosine']:.2f}."),
    ]


def _one_layer(found: Found) -> Block:
    return Text(
        f"It has one list of {found['dim']} numbers for a word and looks it up. In both sentences the list is "
        f"{'the same' if found['cosines'][0] > 0.99999 else 'not the same'}."
    )


def _kind(subject: Subject) -> str:
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
