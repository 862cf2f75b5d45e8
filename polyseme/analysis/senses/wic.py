"""Word in context (WiC): does a word mean the same in two sentences?

Yes if the cosine similarity of its two vectors is above a threshold, the one with the best accuracy in training. The
sets of Pilehvar and Camacho-Collados (2019) are two files, ``X.data.txt`` and ``X.gold.txt``, one line per pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from polyseme.analysis.layer_vectors import layer_choices, layer_name
from polyseme.embedding.interfaces import Embedder
from polyseme.embedding.layers import LayerChoice, check_vectors, choose
from polyseme.embedding.similarity import unit
from polyseme.errors import FormatError, InputError
from polyseme.plots import COLOURS, FAINT, LEGEND, new_figure, tidy
from polyseme.tasks.metrics import wilson_interval
from polyseme.text.corpus import open_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class WicPair:
    """A WiC pair: a word in two sentences, its place in each from 0, and whether it means the same."""

    word: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    places: tuple[int, int]
    same: bool


@dataclass(frozen=True)
class LayerWic:
    """WiC accuracy of one layer, in training and on the test, with the threshold and the 95 % Wilson interval."""

    layer: int | str
    threshold: float
    train_accuracy: float
    accuracy: float
    low: float
    high: float


@dataclass(frozen=True)
class WicResult:
    """WiC accuracy of a model, layer by layer.

    Attributes:
        model: The model's name.
        train: Number of pairs that the thresholds were tuned on.
        test: Number of test pairs.
        chance: Accuracy of the more frequent answer.
        layers: One row per layer.
    """

    model: str
    train: int
    test: int
    chance: float
    layers: tuple[LayerWic, ...]


def read_wic(data: str | Path, gold: str | Path | None = None) -> list[WicPair]:
    """Read the pairs of a WiC set; by default the answers are beside it, with ``gold`` for ``data`` in the name."""
    data = Path(data)
    with open_text(data) as lines:
        pairs = [_pair(line, f"{data}, line {number}") for number, line in enumerate(lines, start=1) if line.strip()]
    if not pairs:
        raise InputError(f"{data} is empty; expected one pair of sentences a line")
    answers = _answers(Path(gold) if gold else _gold_file(data))
    if len(pairs) != len(answers):
        raise FormatError(f"{data} has {len(pairs):,} pairs, but its gold file has {len(answers):,} answers")
    return [WicPair(*pair, same) for pair, same in zip(pairs, answers, strict=True)]


def wic(
    embedder: Embedder, train: Sequence[WicPair], test: Sequence[WicPair], layers: LayerChoice = "all"
) -> WicResult:
    """Tune a cosine threshold for each layer in training, and measure its accuracy on the test."""
    for pairs, which in ((train, "training"), (test, "test")):
        if not pairs:
            raise InputError(f"the {which} set has no pairs; give at least one")
    choices = layer_choices(layers, embedder.num_layers)
    tuning, testing = _cosines(embedder, train, choices), _cosines(embedder, test, choices)
    truth, right = (np.array([pair.same for pair in pairs]) for pairs in (train, test))
    rows = [
        _layer(layer_name(choice), (tuning[number], truth), (testing[number], right))
        for number, choice in enumerate(choices)
    ]
    return WicResult(embedder.name, len(train), len(test), float(max(right.mean(), 1 - right.mean())), tuple(rows))


def draw_wic(result: WicResult) -> Figure:
    """Plot WiC accuracy by layer with its confidence interval, and chance."""
    figure = new_figure(6.4, 4)
    axes = figure.subplots()
    places = range(len(result.layers))
    spread = [[100 * (row.accuracy - row.low), 100 * (row.high - row.accuracy)] for row in result.layers]
    values = [100 * row.accuracy for row in result.layers]
    axes.errorbar(
        places, values, yerr=np.array(spread).T, fmt="o-", color=COLOURS[0], capsize=3, label="with 95 % interval"
    )
    axes.axhline(100 * result.chance, color=FAINT, linestyle="--", label="chance")
    axes.set_xticks(places, [str(row.layer) for row in result.layers])
    axes.legend(fontsize=9, **LEGEND)
    tidy(axes, f"{result.model}: word in context", "layer", "accuracy (%)")
    return figure


def best_threshold(cosines: np.ndarray, same: np.ndarray) -> tuple[float, float]:
    """The threshold with the best accuracy, and that accuracy; ties go to the one nearest the median cosine.

    A pair means the same if its cosine is above. Thresholds are tried half-way between neighbouring cosines, and
    beyond either end.
    """
    values = np.unique(cosines)
    tried = np.concatenate([[values[0] - 1e-6], (values[:-1] + values[1:]) / 2, [values[-1] + 1e-6]])
    yes, no = np.sort(cosines[same]), np.sort(cosines[~same])
    right = len(yes) - np.searchsorted(yes, tried, side="right") + np.searchsorted(no, tried, side="right")
    best = tried[right == right.max()]
    return float(best[np.abs(best - np.median(cosines)).argmin()]), float(right.max() / len(cosines))


def _layer(name: int | str, train: tuple[np.ndarray, np.ndarray], test: tuple[np.ndarray, np.ndarray]) -> LayerWic:
    threshold, reached = best_threshold(*train)
    cosines, same = test
    right = int(((cosines > threshold) == same).sum())
    return LayerWic(name, threshold, reached, right / len(same), *wilson_interval(right, len(same)))


def _cosines(embedder: Embedder, pairs: Sequence[WicPair], choices: Sequence[LayerChoice]) -> np.ndarray:
    """The cosine of the word's two vectors, for each layer choice and pair, rounded so that equal vectors have 1."""
    cosines = np.empty((len(choices), len(pairs)))
    vectors = embedder.embed(sentence for pair in pairs for sentence in (pair.first, pair.second))
    for number, pair in enumerate(pairs):
        words = [
            [choose(array, choice)[place] for choice in choices]
            for array, place in zip(_two(vectors, pair), pair.places, strict=True)
        ]
        cosines[:, number] = [float(unit(one) @ unit(other)) for one, other in zip(*words, strict=True)]
    return cosines.round(6)


def _two(vectors: Iterator[np.ndarray], pair: WicPair) -> tuple[np.ndarray, np.ndarray]:
    return check_vectors(next(vectors), pair.first), check_vectors(next(vectors), pair.second)


def _gold_file(data: Path) -> Path:
    if "data" not in data.name:
        raise InputError(
            f"{data} has no 'data' in its name, so its answers are not found; name the files X.data.txt and X.gold.txt"
        )
    return data.with_name("gold".join(data.name.rsplit("data", 1)))


def _answers(path: Path) -> list[bool]:
    with open_text(path) as lines:
        return [_answer(line.strip(), f"{path}, line {number}") for number, line in enumerate(lines, 1) if line.strip()]


def _answer(text: str, place: str) -> bool:
    if text not in ("T", "F"):
        raise FormatError(f"{place}: expected T or F, got {text!r:.40}")
    return text == "T"


def _pair(line: str, place: str) -> tuple[str, tuple[str, ...], tuple[str, ...], tuple[int, int]]:
    columns = line.split("\t")
    if len(columns) != 5:
        raise FormatError(
            f"{place}: has {len(columns)} columns; expected 5, separated by tabs: word, N or V, places like 2-5, two "
            "sentences"
        )
    word, _, numbers, *texts = columns
    first, second = (tuple(text.split()) for text in texts)
    try:
        one, other = (int(number) for number in numbers.split("-"))
    except ValueError:
        raise FormatError(f"{place}: expected two places, numbers from 0, like 2-5; got {numbers!r:.40}") from None
    for at, words, which in ((one, first, "first"), (other, second, "second")):
        if not 0 <= at < len(words):
            raise FormatError(
                f"{place}: place {at} is outside the {which} sentence, whose {len(words)} words count from 0"
            )
    return word, first, second, (one, other)
