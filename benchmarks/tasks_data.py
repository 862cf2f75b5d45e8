"""The six tasks that are measured: their files as published, cut into training, dev and test."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from polyseme.text.conll import LabelSpec, read_labelled
from polyseme.text.labelled import ColumnSpec, read_labelled_text

Examples = tuple[list[Any], list[Any]]  # as a model takes them, and their answers


class Split(NamedTuple):
    """What is learned from, what is judged by on the way, and what is measured on."""

    train: Examples
    dev: Examples
    test: Examples


class Task(NamedTuple):
    """One task: what it is called, the model for it, its files below the folder of data, and the unit of its score."""

    title: str
    model: str  # tagger, classifier or pairs
    files: tuple[str, ...]
    measure: str


TASKS = {
    "wnut17": Task(
        "WNUT-17 entities",
        "tagger",
        tuple(f"ner-wnut17/{name}" for name in ("wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated")),
        "F1",
    ),
    "conll2000": Task("CoNLL-2000 chunks", "tagger", ("chunk-conll2000/train.txt", "chunk-conll2000/test.txt"), "F1"),
    "ewt": Task(
        "UD-EWT parts of speech",
        "tagger",
        tuple(f"pos-ud-ewt/en_ewt-ud-{name}.conllu.xz" for name in ("train", "dev", "test")),
        "accuracy",
    ),
    "sst5": Task(
        "SST-5 sentiment",
        "classifier",
        tuple(f"sentiment-sst/stsa.fine.{name}" for name in ("train", "dev", "test")),
        "accuracy",
    ),
    "trec6": Task(
        "TREC-6 questions",
        "classifier",
        tuple(f"questions-trec/TREC.{name}.all" for name in ("train", "test")),
        "accuracy",
    ),
    "sick": Task(
        "SICK entailment",
        "pairs",
        tuple(f"nli-sick/SICK_{name}.txt" for name in ("train", "trial", "test_annotated")),
        "accuracy",
    ),
}


def read_task(name: str, data: Path, share: float = 100.0) -> Split:
    """A task's three sets; of the training set a share in per cent, drawn by lot and always the same."""
    task = TASKS[name]
    read = {"tagger": _tagged, "classifier": _labelled, "pairs": _pairs}[task.model]
    sets = [read(data / file) for file in task.files]
    if name == "conll2000":  # the last tenth is for judging
        sets[:1] = _cut(sets[0], np.arange(len(sets[0][0])))
    elif name == "trec6":  # a tenth by lot, for the published order is by source
        sets[:1] = _cut(sets[0], np.random.default_rng(0).permutation(len(sets[0][0])))
    return Split(_part(sets[0], share), *sets[1:])


def _tagged(path: Path) -> Examples:
    sentences = list(read_labelled(path, LabelSpec()))
    return [words for words, _ in sentences], [labels for _, labels in sentences]


def _labelled(path: Path) -> Examples:
    """Label first; TREC's are in Latin 1, and everybody else's are in UTF-8."""
    code = "latin-1" if "TREC" in path.name else "utf-8"
    lines = [line.split() for line in path.read_text(code).splitlines() if line.strip()]
    return [words for _, *words in lines], [label for label, *_ in lines]


def _pairs(path: Path) -> Examples:
    examples = list(read_labelled_text(path, ColumnSpec(2)))
    return [tuple(example.sentences) for example in examples], [example.label for example in examples]


def _cut(examples: Examples, order: np.ndarray) -> list[Examples]:
    """All but a tenth, and that tenth."""
    end = len(order) - len(order) // 10
    return [_take(examples, np.sort(order[:end])), _take(examples, np.sort(order[end:]))]


def _part(examples: Examples, share: float) -> Examples:
    count = len(examples[0])
    wanted = max(1, round(share / 100 * count))
    lot = np.random.default_rng(0).permutation(count)[:wanted]  # a larger share holds the smaller ones
    return examples if wanted == count else _take(examples, np.sort(lot))


def _take(examples: Examples, numbers: np.ndarray) -> Examples:
    return [examples[0][number] for number in numbers], [examples[1][number] for number in numbers]
