"""Linear probes: what a linear classifier finds in each layer, compared with a control task.

For each layer, a multinomial logistic regression learns the label of each word from the word's vector alone. A control
task (Hewitt and Liang 2019) guards against mistaking a good classifier for a good layer: each distinct word gets one
random label, with the frequencies of the true labels, so that only memorising words can help. Accuracy minus control
accuracy is *selectivity*.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from polyseme.analysis.layer_vectors import LabelledVectors, embed_labelled, layer_choices, layer_name
from polyseme.analysis.layers.logistic_regression import (
    JoinedLayers,
    LinearClassifier,
    LinearFitSettings,
    LinearProblem,
    Rows,
)
from polyseme.embedding.interfaces import Embedder
from polyseme.embedding.layers import LayerChoice
from polyseme.errors import ConfigError, InputError
from polyseme.plots import COLOURS, FAINT, LEGEND, new_figure, tidy
from polyseme.progress import track
from polyseme.text.conll import LabelledSentence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

JOINED = "joined"
INVERSE_PENALTIES = (1.0, 0.1, 0.01, 0.001)  # scikit-learn's C; a dev set chooses among these


@dataclass(frozen=True)
class ProbeSettings:
    """Settings of the linear probe and its control task.

    Attributes:
        layers: Which layers: ``all`` is each separately and then all of them concatenated.
        control: Fit the control task too, which doubles the time.
        inverse_penalty: scikit-learn's ``C``, on standardised features; ignored with a dev set, which chooses.
        seed: Seed of the control task's labels.
        device: Device to fit on.
    """

    layers: LayerChoice = "all"
    control: bool = True
    inverse_penalty: float = 1.0
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        if not self.inverse_penalty > 0:
            raise ConfigError(f"inverse_penalty must be above 0, not {self.inverse_penalty}")


@dataclass(frozen=True)
class LayerProbe:
    """Accuracy of the probe and of the control task on one layer, and their difference, the selectivity."""

    layer: int | str
    accuracy: float
    control: float | None
    selectivity: float | None
    steps: int  # of the fit; the maximum means that it did not converge
    inverse_penalty: float


@dataclass(frozen=True)
class ProbeResult:
    """Accuracy of linear probes for some labels on each layer of a model, with baselines.

    Attributes:
        model: The model's name.
        train_words: Number of labelled words in training.
        test_words: Number of labelled words in the test.
        labels: Number of distinct labels in training.
        unseen: Test words by label, for labels that training does not have; they count as wrong.
        commonest: Accuracy of always predicting the most frequent label.
        by_word: Accuracy of predicting each word's most frequent label, and the most frequent of all for new words.
        seed: Seed of the control task.
        layers: One row per layer.
    """

    model: str
    train_words: int
    test_words: int
    labels: int
    unseen: dict[str, int]
    commonest: float
    by_word: float
    seed: int
    layers: tuple[LayerProbe, ...]


def probe(
    embedder: Embedder,
    train: Iterable[LabelledSentence],
    test: Iterable[LabelledSentence],
    settings: ProbeSettings | None = None,
    dev: Iterable[LabelledSentence] | None = None,
) -> ProbeResult:
    """Fit a linear probe to each layer. Words whose label is None are only context for the others.

    With a dev set, each layer gets the penalty with the best accuracy there: more features need a stronger one.
    """
    settings = settings or ProbeSettings()
    choices = layer_choices(settings.layers, embedder.num_layers)
    sets = [_checked(train, "training"), _checked(test, "test")]
    if dev is not None:
        sets.append(_checked(dev, "dev"))
    names, truth = _numbered(sets)
    if len(names) < 2:
        raise InputError(f"all labels in training are {names[0]!r}; a probe needs at least two different labels")
    if (truth[1] < 0).all():
        raise InputError(
            f"no label of the test is in training, which has {', '.join(names[:5])}{', …' * (len(names) > 5)}; "
            "use the same column for both"
        )
    embedded = [embed_labelled(embedder, part, choices) for part in sets]
    training, testing = embedded[:2]
    control = _control_labels(training, testing, truth[0], settings.seed) if settings.control else None
    seen = {name: number for number, name in enumerate(names)}
    rows = [
        _probe_layer(layer_name(choice), features, truth, control, settings)
        for choice, *features in track(
            zip(choices, *(part.layers for part in embedded), strict=True), "fitting probes", len(choices), "layers"
        )
    ]
    if len(choices) > 1:
        joined = [JoinedLayers(part.layers) for part in embedded]
        rows.append(_probe_layer(JOINED, joined, truth, control, settings))
    return ProbeResult(
        model=embedder.name,
        train_words=len(training.labels),
        test_words=len(testing.labels),
        labels=len(names),
        unseen=dict(Counter(label for label in testing.labels if label not in seen).most_common()),
        commonest=_accuracy(np.full(len(testing.labels), np.bincount(truth[0]).argmax()), truth[1]),
        by_word=_accuracy(_most_frequent_labels(training, testing, truth[0]), truth[1]),
        seed=settings.seed,
        layers=tuple(rows),
    )


def draw_probe(result: ProbeResult, labels: str) -> Figure:
    """Plot accuracy by layer, with the control task and the baselines; the concatenated layers stand apart."""
    figure = new_figure(7.6, 4)
    axes = figure.subplots()
    single = sum(row.layer != JOINED for row in result.layers)
    lines = {"probe": ("o-", COLOURS[0], [row.accuracy for row in result.layers])}
    if result.layers[0].control is not None:
        lines["control task"] = ("s-", COLOURS[1], [row.control or 0 for row in result.layers])
    for name, (style, colour, accuracies) in lines.items():
        values = [100 * accuracy for accuracy in accuracies]
        axes.plot(range(single), values[:single], style, color=colour, label=name)
        axes.plot(range(single, len(values)), values[single:], style, color=colour)
    axes.axhline(100 * result.by_word, color=FAINT, linestyle="--", label="most frequent label\nof each word")
    axes.axhline(100 * result.commonest, color=FAINT, linestyle=":", label="most frequent label\nof all")
    axes.set_xticks(range(len(result.layers)), [str(row.layer) for row in result.layers])
    axes.set_ylim(0, 102)  # room for the markers of a perfect probe
    axes.legend(fontsize=9, loc="center left", bbox_to_anchor=(1, 0.5), **LEGEND)
    tidy(axes, f"{result.model}: linear probe for {labels}", "layer", "accuracy (%)")
    return figure


Numbers = Sequence[np.ndarray]  # labels as numbers: of training, test, and the dev set if there is one


def _checked(sentences: Iterable[LabelledSentence], which: str) -> list[LabelledSentence]:
    kept = list(sentences)
    if not any(label is not None for sentence in kept for label in sentence.labels):
        raise InputError(f"the {which} set is empty: no word in it has a label")
    return kept


def _numbered(sets: Sequence[Sequence[LabelledSentence]]) -> tuple[list[str], Numbers]:
    """The distinct labels of training, and all labels as numbers of these; -1 for one that training does not have."""
    labels = [[label for each in part for label in each.labels if label is not None] for part in sets]
    names = sorted(set(labels[0]))
    number = {name: place for place, name in enumerate(names)}
    return names, [np.array([number.get(label, -1) for label in part]) for part in labels]


def _control_labels(train: LabelledVectors, test: LabelledVectors, labels: np.ndarray, seed: int) -> Numbers:
    """The control task: a random label for each distinct word, with the frequencies of the true labels."""
    distinct = dict.fromkeys((*train.words, *test.words))
    drawn = np.random.default_rng(seed).choice(labels, size=len(distinct))
    label = dict(zip(distinct, drawn, strict=True))
    return np.array([label[word] for word in train.words]), np.array([label[word] for word in test.words])


def _most_frequent_labels(train: LabelledVectors, test: LabelledVectors, labels: np.ndarray) -> np.ndarray:
    counts: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for word, label in zip(train.words, labels.tolist(), strict=True):
        counts[word][label] += 1
    frequent = {word: counter.most_common(1)[0][0] for word, counter in counts.items()}
    return np.array([frequent.get(word, np.bincount(labels).argmax()) for word in test.words])


def _probe_layer(
    name: int | str, features: Sequence[Rows], truth: Numbers, control: Numbers | None, settings: ProbeSettings
) -> LayerProbe:
    problem, classifier = _fit(features, truth, settings)
    accuracy = _accuracy(classifier.predict(features[1]), truth[1])
    on_control = None if control is None else _accuracy(problem.fit(control[0]).predict(features[1]), control[1])
    selectivity = None if on_control is None else accuracy - on_control
    return LayerProbe(name, accuracy, on_control, selectivity, classifier.steps, problem.settings.inverse_penalty)


def _fit(features: Sequence[Rows], truth: Numbers, settings: ProbeSettings) -> tuple[LinearProblem, LinearClassifier]:
    """Fit a classifier with the penalty of the settings, or the best of several on a dev set."""
    choosing = len(features) > 2
    found = []
    for penalty in INVERSE_PENALTIES if choosing else (settings.inverse_penalty,):
        problem = LinearProblem(features[0], LinearFitSettings(inverse_penalty=penalty, device=settings.device))
        classifier = problem.fit(truth[0])
        found.append((_accuracy(classifier.predict(features[2]), truth[2]) if choosing else 1.0, problem, classifier))
    _, problem, classifier = max(found, key=lambda one: one[0])
    return problem, classifier


def _accuracy(predicted: np.ndarray, truth: np.ndarray) -> float:
    return float((predicted == truth).mean())
