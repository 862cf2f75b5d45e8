"""What a linear probe finds out about grammar in UD-EWT: by layer, by direction, and with how many sentences."""

from __future__ import annotations

from itertools import chain, islice
from pathlib import Path

import numpy as np

from polyseme.report.measure.measurement import Measurement, Results, SampleSizes
from polyseme.report.measure.model_under_test import EvaluationData, ModelUnderTest
from polyseme.report.measure.probing import (
    JOINED,
    EmbeddedWords,
    Labels,
    columns,
    direction_views,
    embed_words,
    fit_and_answer,
    join,
    layer_views,
    right,
    single,
)
from polyseme.report.measure.statistics import sign_test
from polyseme.text import conll

TRAIN, TEST = (f"pos-ud-ewt/en_ewt-ud-{part}.conllu.xz" for part in ("train", "test"))
SHARES = (0.01, 0.03, 0.1, 0.3, 1.0)
COLUMNS = ("upos", "deprel")


def measure_grammar(subject: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """Accuracy on parts of speech and roles (the label of the arc to a word's head), for every view of the layers."""
    encoder = subject.encoder
    read = {column: [_read(data[path], column, sizes.tagged) for path in (TRAIN, TEST)] for column in COLUMNS}
    train, test = (embed_words(encoder, columns(part)[0]) for part in read["upos"])
    views = {**layer_views(encoder), **direction_views(encoder)}
    found: Results = {"limit": sizes.tagged, "train_words": len(train), "test_words": len(test)}
    for column, parts in read.items():
        known, asked = (columns(part)[1] for part in parts)
        used = {name: view for name, view in views.items() if name != JOINED or column == "upos"}
        answers = {name: fit_and_answer((train, known), (test, asked), view) for name, view in used.items()}
        correct = {name: right(given, asked) for name, given in answers.items()}
        found[column] = {
            "accuracy": {name: float(each.mean()) for name, each in correct.items()},
            "usual": usual_share((train, known), (test, asked)),
            "p": {f"{one} {other}": sign_test(correct[one], correct[other]) for one, other in _pairs(list(correct))},
        }
        if column == "upos":
            found["examples"] = _examples(test, answers, asked)
            found["curve"] = _curve((train, known), (test, asked), found[column]["accuracy"])
    return found


GRAMMAR = Measurement("grammar", measure_grammar, (TRAIN, TEST), ("tagged",))


def _read(path: Path, column: str, limit: int) -> list[conll.LabelledSentence]:
    return list(islice(conll.read_labelled(path, conll.LabelSpec(column)), limit))


def _pairs(names: list[str]) -> list[tuple[str, str]]:
    return [(one, other) for place, one in enumerate(names) for other in names[place + 1 :]]


def usual_share(train: tuple[EmbeddedWords, Labels], test: tuple[EmbeddedWords, Labels]) -> float:
    """Accuracy of giving each word the label that it had most often, and the commonest to new words."""
    counts: dict[str, dict[str, int]] = {}
    for word, label in zip(chain.from_iterable(train[0].sentences), chain.from_iterable(train[1]), strict=True):
        if label is not None:
            of_word = counts.setdefault(word, {})
            of_word[label] = of_word.get(label, 0) + 1
    every: dict[str, int] = {}
    for of_word in counts.values():
        for label, count in of_word.items():
            every[label] = every.get(label, 0) + count
    usual = {word: max(sorted(of_word), key=of_word.__getitem__) for word, of_word in counts.items()}
    commonest = max(sorted(every), key=every.__getitem__)
    answers = [usual.get(word, commonest) for word in chain.from_iterable(test[0].sentences)]
    return float(right(answers, test[1]).mean())


def _examples(test: EmbeddedWords, answers: dict[str, list[str | None]], asked: Labels) -> list[Results]:
    """Words that layer 1 gets right by their sentence, and layer 0, which sees the word alone, wrong."""
    if "1" not in answers:
        return []
    gold = list(chain.from_iterable(asked))
    owners = test.owners()
    starts = np.concatenate([[0], np.cumsum([len(words) for words in test.sentences])])
    found = []
    seen: set[str] = set()
    for place, label in enumerate(gold):
        words = test.sentences[int(owners[place])]
        at = place - int(starts[owners[place]])
        if len(words) > 25 or not words[at].isalpha() or words[at].lower() in seen:
            continue
        if answers["1"][place] == label != answers["0"][place]:
            seen.add(words[at].lower())
            found.append({"words": words, "place": at, "gold": label, "alone": answers["0"][place]})
        if len(found) == 6:
            break
    return found


def _curve(train: tuple[EmbeddedWords, Labels], test: tuple[EmbeddedWords, Labels], whole: dict[str, float]) -> Results:
    """Accuracy with less and less to learn from: layer 0 against all layers, or the top where they are too many."""
    top = train[0].layers.shape[0] - 1
    best = JOINED if JOINED in whole else str(top)
    views = {"spelling": ("0", single(0)), "context": (best, join if best == JOINED else single(top))}
    sentences = [max(2, round(share * len(train[0].sentences))) for share in SHARES]
    found: Results = {"sentences": sentences, "view": best, **{name: [] for name in views}}
    for some in sentences[:-1]:
        words = sum(map(len, train[0].sentences[:some]))
        less = EmbeddedWords(train[0].sentences[:some], train[0].layers[:, :words]), train[1][:some]
        for name, (_, view) in views.items():
            found[name].append(float(right(fit_and_answer(less, test, view), test[1]).mean()))
    for name, (key, _) in views.items():
        found[name].append(whole[key])
    return found
