"""What a model shows at first sight: a few words in several sentences, words it never saw, and what it expected.

The examples are fixed and few, so that a person can judge each; `docs/instruments.md` has the measurements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from polyseme.analysis.layer_vectors import embed_isolated, known_mask
from polyseme.corpus.neighbours import Neighbours, nearest_uses
from polyseme.corpus.senses import principal_plane
from polyseme.corpus.uses import Use, bundled_sentences, embed_uses, find_place, find_uses
from polyseme.embedding.interfaces import Embedder
from polyseme.formats.vectors.search import unit
from polyseme.lm import LanguageModel
from polyseme.plots import COLOURS, LEGEND, new_figure, tidy
from polyseme.text.tokenizer import tokenize_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# A word, a sentence of it, and others to compare it with: first the same sense, then another.
COMPARED = (
    ("put", "I put my books in the bag.", ("She put her book in my bag yesterday.",)),
    ("Paris", "They moved to Paris last year.", ("We flew to Paris in May.", "I saw Paris Hilton at the party.")),
    ("bank", "He sat on the bank of the river.", ("They fished from the muddy bank.", "The bank lent us the money.")),
    ("play", "The play opened on Broadway.", ("He wrote a play in three acts.", "They play football every weekend.")),
    ("stick", "He walked with a stick.", ("She poked the fire with a stick.", "We should stick to the plan.")),
)
ASKED = (
    ("bank", "Reeds grew thickly on the far bank of the stream."),
    ("bank", "The bank increased the interest on our loan."),
    ("play", "The Broadway play ran for years."),
    ("play", "The pitcher made a wonderful play at first base."),
    ("stick", "He picked up a stick to lean on."),
    ("stick", "She decided to stick to her first idea."),
)
UNSEEN = (
    ("cyberpolitician", "made up"),
    ("dragonologist", "made up"),
    ("goverment", "misspelt"),
    ("Febuary", "misspelt"),
)
GAP = "He sat on the ___ of the river and watched the boats."
HOLE = "___"
_ROOM = (0.4, 0.045)  # width and height of a few words, as shares of a picture


class Compared(NamedTuple):
    """A use of a word, and another one with their cosine in each layer."""

    first: Use
    second: Use
    cosines: tuple[float, ...]


class Relatives(NamedTuple):
    """A word that no list has, and the known words that are spelt and used alike."""

    word: str
    how: str
    found: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Expected:
    """What a language model expected at a gap: by the words before it, by those after it, and by both."""

    words: tuple[str, ...]
    place: int
    forward: tuple[tuple[str, float], ...]
    backward: tuple[tuple[str, float], ...]
    both: tuple[tuple[str, float], ...]


def compare(embedder: Embedder) -> list[Compared]:
    """The classic words, each in sentences of the same sense and of another."""
    uses = [(_use(word, sentence), _use(word, other)) for word, sentence, others in COMPARED for other in others]
    vectors = embed_uses(embedder, [use for pair in uses for use in pair])
    layers = np.stack([unit(vectors.vectors(layer)) for layer in range(embedder.num_layers)])
    cosines = (layers[:, ::2] * layers[:, 1::2]).sum(axis=2).T
    return [Compared(*pair, tuple(row.tolist())) for pair, row in zip(uses, cosines, strict=True)]


def nearest_in_bundle(embedder: Embedder, top: int = 1) -> list[Neighbours]:
    """For words of several senses, the uses most like one, among the sentences that ship; by the top layer."""
    sentences = bundled_sentences()
    among = {word: embed_uses(embedder, find_uses(sentences, word), "top") for word, _ in ASKED}
    return [nearest_uses(embedder, _use(word, text), among[word], "top", top) for word, text in ASKED]


def relatives(embedder: Embedder, among: Sequence[str], top: int = 4) -> list[Relatives]:
    """Words that were made up or misspelt, and the nearest of the known words, all without context."""
    words = [word for word, _ in UNSEEN]
    pool, asked = (embed_isolated(embedder, which, [0])[0] for which in (among, words))
    readable = known_mask(embedder, words, [asked])
    cosines = unit(asked) @ unit(pool).T
    found = []
    for (word, how), row, there in zip(UNSEEN, cosines, readable, strict=True):
        best = np.argsort(-row, kind="stable")[:top].tolist() if there else []
        found.append(Relatives(word, how, tuple((among[int(place)], float(row[place])) for place in best)))
    return found


def expect(model: LanguageModel, top: int = 6) -> Expected:
    """What was expected at the gap."""
    (words,) = tokenize_words(GAP)
    place = words.index(HOLE)
    return Expected(
        tuple(words),
        place,
        tuple(model.predict_next(words[:place], top)),
        tuple(model.predict_previous(words[place + 1 :], top)),
        tuple(model.substitutes(words, place, top)),
    )


def draw_uses(embedder: Embedder) -> Figure:
    """Uses of three words, each in the plane in which they differ most; the colours are a person's, not the model's."""
    labelled = labelled_uses()
    figure = new_figure(13.5, 5)
    for axes, (word, senses) in zip(figure.subplots(1, len(labelled)), labelled.items(), strict=True):
        _draw_word(axes, embedder, senses)
        tidy(axes, f"“{word}”", "", "")
        axes.set_xticks([])
        axes.set_yticks([])
        axes.legend(fontsize=9, loc="upper center", bbox_to_anchor=(0.5, 0), ncols=len(senses), **LEGEND)
    figure.suptitle(f"{embedder.name}, top layer: a point for each sentence, a colour for each sense", fontsize=12)
    return figure


def _draw_word(axes: Axes, embedder: Embedder, senses: dict[str, list[Use]]) -> None:
    uses = [use for group in senses.values() for use in group]
    points, _ = principal_plane(unit(embed_uses(embedder, uses, "top").vectors("top")))
    first = 0
    for colour, (sense, group) in zip(COLOURS, senses.items(), strict=False):
        axes.scatter(*points[first : first + len(group)].T, s=40, alpha=0.85, linewidths=0, color=colour, label=sense)
        first += len(group)
    for number in _apart(points / np.maximum(np.ptp(points, axis=0), 1e-9)):
        where = {"textcoords": "offset points", "ha": "center", "fontsize": 7, "color": "#555555"}
        axes.annotate(_around(uses[number]), points[number], (0, 6), **where)
    axes.margins(0.24, 0.1)


def _apart(points: np.ndarray) -> list[int]:
    """Points of a unit square that have room for a few words above them, one taken after the other."""
    taken: list[int] = []
    for number, point in enumerate(points):
        if not any((np.abs(points[other] - point) < _ROOM).all() for other in taken):
            taken.append(number)
    return taken


def _around(use: Use) -> str:
    """A few words that tell the use."""
    return " ".join(use.words[max(0, use.place - 2) : use.place + 4]).removesuffix(" .")


def labelled_uses() -> dict[str, dict[str, list[Use]]]:
    """Uses of words with several senses, by word and by sense as a person tells them apart."""
    found: dict[str, dict[str, list[Use]]] = {}
    text = (files("polyseme.analysis") / "demo_uses.txt").read_text("utf-8")
    for word, sense, sentence in (line.split("\t") for line in text.splitlines()):
        found.setdefault(word, {}).setdefault(sense, []).append(_use(word, sentence))
    return found


def _use(word: str, sentence: str) -> Use:
    (words,) = tokenize_words(sentence)
    return Use(tuple(words), find_place(words, word))
