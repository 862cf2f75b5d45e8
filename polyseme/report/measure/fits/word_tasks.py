"""Tasks that are fitted on the spot: parts of speech, grammatical roles, names and kinds of meaning of words.

Each is fitted with the context-free layer alone, with the top layer, with a learned mix of all layers, and with the mix
on 30 % of the sentences; the same tagger (`window_tagger`) learns from the same sentences each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np
import torch

from polyseme.errors import ConfigError
from polyseme.report.measure.fits.window_tagger import WindowRows, fit_window_tagger
from polyseme.report.measure.measurement import Measurement, Results, SampleSizes
from polyseme.report.measure.model_under_test import EvaluationData, ModelUnderTest
from polyseme.report.measure.names import count_names, f1, name_files
from polyseme.report.measure.probing import WordLabels, embed_words, words_and_labels
from polyseme.report.measure.statistics import bootstrap_difference
from polyseme.text.conll import LabelSpec, read_labelled

SPELLING, TOP, MIX, FEW = "spelling", "top", "mix", "mix@30%"
SHARE = 0.3  # of the training sentences, in the row FEW
PAIRS = ((MIX, SPELLING), (MIX, TOP), (FEW, SPELLING))  # rows whose difference is tested
OUTSIDE = "O"  # the label of words that have none
EWT = tuple(f"pos-ud-ewt/en_ewt-ud-{part}.conllu.xz" for part in ("train", "test"))


@dataclass(frozen=True)
class WordTask:
    """A word-labelling task: its title, its files below the data folder, which labels to read, and how to score them.

    Attributes:
        title: What the labels are.
        files: The files to train and to test on.
        column: The column of the labels.
        score: ``accuracy`` of all words, ``labelled`` for words with a label other than O, or ``names`` for their F1.
    """

    title: str
    files: tuple[str, ...]
    column: str | None = None
    score: str = "accuracy"


TASKS = {
    "task-pos": WordTask("parts of speech", EWT, "upos"),
    "task-roles": WordTask("grammatical roles", EWT, "deprel"),
    "task-names": WordTask("names", (), None, "names"),
    "task-kinds": WordTask("kinds of meaning", ("supersenses/train.conll", "supersenses/test.conll"), None, "labelled"),
}


def measure_task(task: WordTask, model: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """Scores of the task in each row, and bootstrap intervals of their differences over test sentences."""
    encoder = model.encoder
    if encoder.num_layers < 2:
        raise ConfigError("This model has a single layer, so there is nothing to compare it with.")
    (words, labels), (test_words, gold) = (
        words_and_labels(read_sample(data, task, part, size))
        for part, size in ((0, sizes.fitted), (1, 4 * sizes.fitted))
    )
    known, unseen = embed_words(encoder, words), embed_words(encoder, test_words)
    few = sorted({int(number / SHARE) for number in range(int(SHARE * len(words)))})
    top = encoder.num_layers - 1
    choices = {SPELLING: slice(0, 1), TOP: slice(top, top + 1), MIX: slice(None), FEW: slice(None)}
    counts, weights = {}, []
    for row, layers in choices.items():
        chosen = few if row == FEW else range(len(words))
        places = _places(words, chosen)
        rows = WindowRows.of(known.layers[layers][:, places], [len(words[number]) for number in chosen])
        predicted, mix = _fit_and_tag(
            rows,
            [labels[number] for number in chosen],
            WindowRows.of(unseen.layers[layers], list(map(len, test_words))),
            sizes.fit_steps,
        )
        counts[row] = count_correct(predicted, gold, task.score)
        weights = mix if row == MIX else weights
    return {
        "title": task.title,
        "train": len(words),
        "few": len(few),
        "test": len(test_words),
        "score": {row: 100 * f1(each) for row, each in counts.items()},
        "weights": weights,
        "difference": {
            f"{one} {other}": bootstrap_difference(
                lambda drawn, one=counts[one], other=counts[other]: 100 * (f1(one[drawn]) - f1(other[drawn])),
                len(test_words),
                sizes.seed,
            )
            for one, other in PAIRS
        },
    }


def read_sample(data: EvaluationData, task: WordTask, part: int, size: int) -> list:
    """Evenly spaced sentences of a file of a task."""
    name = (task.files or name_files(data))[part]
    sentences = [each for each in read_labelled(data[name], LabelSpec(task.column)) if each.words]
    size = min(size, len(sentences))
    return [sentences[number * len(sentences) // size] for number in range(size)]


def count_correct(predicted: list[str], gold: WordLabels, score: str) -> np.ndarray:
    """Correct, predicted and expected labels in each sentence, (sentences, 3); F1 of accuracy's counts is accuracy."""
    if score == "names":
        return count_names(list(predicted), gold)
    rows, rest = [], iter(predicted)
    for labels in gold:
        pairs = [(next(rest), label) for label in labels]
        counted = [given == label for given, label in pairs if score == "accuracy" or label not in (OUTSIDE, None)]
        rows.append((sum(counted), len(counted), len(counted)))
    return np.array(rows)


def word_tasks(results: Mapping[str, Results]) -> list[Results]:
    """The results of all tasks that were fitted on the spot."""
    return [results[name] for name in TASKS if name in results]


def _fit_and_tag(rows: WindowRows, labels: WordLabels, test: WindowRows, steps: int) -> tuple[list[str], list[float]]:
    """Labels of the test words by a tagger that is fitted to other words, and its learned layer weights."""
    flat = [label or OUTSIDE for label in chain.from_iterable(labels)]
    names = sorted(set(flat))
    classes = torch.tensor([names.index(label) for label in flat])
    tagger = fit_window_tagger(rows, classes, len(names), steps)
    with torch.inference_mode():
        best = tagger(test).argmax(dim=1).tolist()
        return [names[number] for number in best], tagger.scores.softmax(0).tolist()


def _places(sentences: list[list[str]], chosen: list[int] | range) -> np.ndarray:
    """The rows of the words of some sentences among those of all."""
    ends = np.cumsum([0, *map(len, sentences)])
    return np.concatenate([np.arange(ends[number], ends[number + 1]) for number in chosen])


WORD_TASKS = tuple(
    Measurement(
        name,
        partial(measure_task, task),
        task.files,
        ("fitted", "fit_steps", "seed"),
        uses=() if task.files else ("ner-wnut17", "ner-uner"),
    )
    for name, task in TASKS.items()
)
