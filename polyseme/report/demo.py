"""The examples of ``polyseme demo``: ambiguous words in context, out-of-vocabulary words, and cloze predictions.

They are fixed and few, so that a person can judge each; `docs/instruments.md` has the measurements.
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
from polyseme.embedding.similarity import unit
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
QUERIES = (
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
_TEXT_SIZE = (0.4, 0.045)  # width and height of a few words, as shares of the plot


class Compared(NamedTuple):
    """Two uses of a word, and their cosine similarity in each layer."""

    first: Use
    second: Use
    cosines: tuple[float, ...]


class Relatives(NamedTuple):
    """An out-of-vocabulary word, and its nearest neighbours among known words."""

    word: str
    how: str
    found: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Expected:
    """Cloze predictions at a gap: from the words before it, from those after it, and from both."""

    words: tuple[str, ...]
    place: int
    forward: tuple[tuple[str, float], ...]
    backward: tuple[tuple[str, float], ...]
    both: tuple[tuple[str, float], ...]


def compare(embedder: Embedder) -> list[Compared]:
    """Cosine similarity of the classic ambiguous words, in sentences of the same sense and of another."""
    uses = [(_use(word, sentence), _use(word, other)) for word, sentence, others in COMPARED for other in others]
    vectors = embed_uses(embedder, [use for pair in uses for use in pair])
    layers = np.stack([unit(vectors.vectors(layer)) for layer in range(embedder.num_layers)])
    cosines = (layers[:, ::2] * layers[:, 1::2]).sum(axis=2).T
    return [Compared(*pair, tuple(row.tolist())) for pair, row in zip(uses, cosines, strict=True)]


def nearest_in_bundle(embedder: Embedder, top: int = 1) -> list[Neighbours]:
    """Nearest neighbours of ambiguous words in context, among the bundled sentences, by the top layer."""
    sentences = bundled_sentences()
    among = {word: embed_uses(embedder, find_uses(sentences, word), "top") for word, _ in QUERIES}
    return [nearest_uses(embedder, _use(word, text), among[word], "top", top) for word, text in QUERIES]


def relatives(embedder: Embedder, among: Sequence[str], top: int = 4) -> list[Relatives]:
    """Nearest known words of made-up and misspelt words, all without context, by layer 0."""
    words = [word for word, _ in UNSEEN]
    pool, queries = (embed_isolated(embedder, which, [0])[0] for which in (among, words))
    readable = known_mask(embedder, words, [queries])
    cosines = unit(queries) @ unit(pool).T
    found = []
    for (word, how), row, known in zip(UNSEEN, cosines, readable, strict=True):
        best = np.argsort(-row, kind="stable")[:top].tolist() if known else []
        found.append(Relatives(word, how, tuple((among[int(place)], float(row[place])) for place in best)))
    return found


def expect(model: LanguageModel, top: int = 6) -> Expected:
    """Predict the word at the gap of the example sentence, in both directions and together."""
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
    """Plot uses of three words on their first two principal components, coloured by hand-labelled sense."""
    labelled = labelled_uses()
    figure = new_figure(13.5, 5)
    for axes, (word, senses) in zip(figure.subplots(1, len(labelled)), labelled.items(), strict=True):
        _draw_word(axes, embedder, senses)
        tidy(axes, f"“{word}”", "", "")
        axes.set_xticks([])
        axes.set_yticks([])
        axes.legend(fontsize=9, loc="upper center", bbox_to_anchor=(0.5, 0), ncols=len(senses), **LEGEND)
    figure.suptitle(f"{embedder.name}, top layer: each point is a sentence, each colour a sense", fontsize=12)
    return figure


def _draw_word(axes: Axes, embedder: Embedder, senses: dict[str, list[Use]]) -> None:
    uses = [use for group in senses.values() for use in group]
    points, _ = principal_plane(unit(embed_uses(embedder, uses, "top").vectors("top")))
    first = 0
    for colour, (sense, group) in zip(COLOURS, senses.items(), strict=False):
        axes.scatter(*points[first : first + len(group)].T, s=40, alpha=0.85, linewidths=0, color=colour, label=sense)
        first += len(group)
    for number in _without_overlap(points / np.maximum(np.ptp(points, axis=0), 1e-9)):
        where = {"textcoords": "offset points", "ha": "center", "fontsize": 7, "color": "#555555"}
        axes.annotate(_snippet(uses[number]), points[number], (0, 6), **where)
    axes.margins(0.24, 0.1)


def _without_overlap(points: np.ndarray) -> list[int]:
    """Points of a unit square whose labels do not overlap, chosen greedily."""
    taken: list[int] = []
    for number, point in enumerate(points):
        if not any((np.abs(points[other] - point) < _TEXT_SIZE).all() for other in taken):
            taken.append(number)
    return taken


def _snippet(use: Use) -> str:
    """The words around a use, as its label in the plot."""
    return " ".join(use.words[max(0, use.place - 2) : use.place + 4]).removesuffix(" .")


def labelled_uses() -> dict[str, dict[str, list[Use]]]:
    """Hand-labelled uses of ambiguous words, by word and by sense."""
    found: dict[str, dict[str, list[Use]]] = {}
    text = (files("polyseme.report") / "demo_uses.txt").read_text("utf-8")
    for word, sense, sentence in (line.split("\t") for line in text.splitlines()):
        found.setdefault(word, {}).setdefault(sense, []).append(_use(word, sentence))
    return found


def _use(word: str, sentence: str) -> Use:
    (words,) = tokenize_words(sentence)
    return Use(tuple(words), find_place(words, word))
