"""Grammar in UD-EWT by linear probes: by layer, by direction, and by the number of training sentences."""

from __future__ import annotations

from collections import Counter
from itertools import chain, islice
from pathlib import Path

from polyseme.report.measure.measurement import Measurement, Results, SampleSizes
from polyseme.report.measure.model_under_test import EvaluationData, ModelUnderTest
from polyseme.report.measure.probing import (
    JOINED,
    EmbeddedWords,
    WordLabels,
    direction_views,
    embed_words,
    fit_and_predict,
    is_correct,
    join,
    layer_views,
    one_layer,
    words_and_labels,
)
from polyseme.report.measure.statistics import SIGNIFICANCE, pairwise_sign_tests
from polyseme.text import conll

TRAIN, TEST = (f"pos-ud-ewt/en_ewt-ud-{part}.conllu.xz" for part in ("train", "test"))
SHARES = (0.01, 0.03, 0.1, 0.3, 1.0)
COLUMNS = ("upos", "deprel")
EXAMPLES = 6


def measure_grammar(model: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """Accuracy on parts of speech and on dependency relations (the arc to a word's head), for every set of features."""
    encoder = model.encoder
    read = {column: [_read(data[path], column, sizes.tagged) for path in (TRAIN, TEST)] for column in COLUMNS}
    train, test = (embed_words(encoder, words_and_labels(part)[0]) for part in read["upos"])
    views = {**layer_views(encoder), **direction_views(encoder)}
    results: Results = {"limit": sizes.tagged, "train_words": len(train), "test_words": len(test)}
    for column, parts in read.items():
        known, gold = (words_and_labels(part)[1] for part in parts)
        used = {name: view for name, view in views.items() if name != JOINED or column == "upos"}
        predictions = {name: fit_and_predict((train, known), (test, gold), view) for name, view in used.items()}
        correct = {name: is_correct(given, gold) for name, given in predictions.items()}
        results[column] = {
            "accuracy": {name: float(each.mean()) for name, each in correct.items()},
            "usual": majority_accuracy((train, known), (test, gold)),
            "p": pairwise_sign_tests(correct),
        }
        if column == "upos":
            results["examples"] = _examples(test, predictions, gold)
            results["curve"] = _learning_curve((train, known), (test, gold), results[column]["accuracy"])
    return results


GRAMMAR = Measurement("grammar", measure_grammar, (TRAIN, TEST), ("tagged",))


def _read(path: Path, column: str, limit: int) -> list[conll.LabelledSentence]:
    return list(islice(conll.read_labelled(path, conll.LabelSpec(column)), limit))


def majority_accuracy(train: tuple[EmbeddedWords, WordLabels], test: tuple[EmbeddedWords, WordLabels]) -> float:
    """Accuracy of the majority baseline: each word's most frequent label, and the overall one for new words."""
    counts: dict[str, Counter[str]] = {}
    for word, label in zip(chain.from_iterable(train[0].sentences), chain.from_iterable(train[1]), strict=True):
        if label is not None:
            counts.setdefault(word, Counter())[label] += 1
    usual = {word: _most_frequent(of_word) for word, of_word in counts.items()}
    overall = _most_frequent(sum(counts.values(), Counter()))
    predictions = [usual.get(word, overall) for word in chain.from_iterable(test[0].sentences)]
    return float(is_correct(predictions, test[1]).mean())


def context_helps(grammar: Results | None) -> bool:
    """Whether a layer above 0 is significantly better than layer 0 at parts of speech; true if not measured."""
    if not grammar:
        return True
    scores, p = grammar["upos"]["accuracy"], grammar["upos"]["p"]
    layers = [name for name in scores if name.isdigit() and name != "0"]
    return any(scores[layer] > scores["0"] and p[f"0 {layer}"] < SIGNIFICANCE for layer in layers)


def _most_frequent(counts: Counter[str]) -> str:
    """The label with the highest count; of several, the first in the alphabet."""
    return max(sorted(counts), key=counts.__getitem__)


def _examples(test: EmbeddedWords, predictions: dict[str, list[str | None]], gold: WordLabels) -> list[Results]:
    """Words that layer 1 gets right and layer 0, which sees the word alone, gets wrong."""
    if "1" not in predictions:
        return []
    examples: dict[str, Results] = {}
    rows = zip(predictions["0"], predictions["1"], chain.from_iterable(gold), strict=True)
    for words in test.sentences:
        for place, (word, (alone, in_sentence, label)) in enumerate(zip(words, rows, strict=False)):
            if in_sentence == label != alone and len(words) <= 25 and word.isalpha():
                found = {"words": words, "place": place, "gold": label, "alone": alone}
                examples.setdefault(word.lower(), found)
    return list(examples.values())[:EXAMPLES]


def _learning_curve(
    train: tuple[EmbeddedWords, WordLabels], test: tuple[EmbeddedWords, WordLabels], whole: dict[str, float]
) -> Results:
    """Accuracy by number of training sentences: layer 0 against all layers, or the top one if they are too many."""
    top = train[0].layers.shape[0] - 1
    best = JOINED if JOINED in whole else str(top)
    views = {"spelling": ("0", one_layer(0)), "context": (best, join if best == JOINED else one_layer(top))}
    sentences = [max(2, round(share * len(train[0].sentences))) for share in SHARES]
    results: Results = {"sentences": sentences, "view": best, **{name: [] for name in views}}
    for count in sentences[:-1]:
        words = sum(map(len, train[0].sentences[:count]))
        less = EmbeddedWords(train[0].sentences[:count], train[0].layers[:, :words]), train[1][:count]
        for name, (_, view) in views.items():
            results[name].append(float(is_correct(fit_and_predict(less, test, view), test[1]).mean()))
    for name, (key, _) in views.items():
        results[name].append(whole[key])
    return results
