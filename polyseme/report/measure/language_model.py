"""The language model itself: perplexity of running text, and words predicted for gaps in sentences."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import torch

from polyseme.corpus.uses import bundled_sentences
from polyseme.errors import ConfigError, FormatError, InputError
from polyseme.lm import perplexity
from polyseme.report.measure.measurement import Measurement, Results, SampleSizes
from polyseme.report.measure.model_under_test import EvaluationData, ModelUnderTest
from polyseme.report.measure.statistics import bootstrap_interval, sign_test
from polyseme.text.corpus import open_text
from polyseme.text.tokenizer import tokenize

WIKITEXT = "lm-wikitext103/wiki.valid.tokens"
WAYS = ("forward", "backward", "both")


def measure_perplexity(model: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """Perplexity of whole articles with LSTM state reset at each sentence and with state carried over."""
    lm = model.language_model
    documents = _articles(data[WIKITEXT], sizes.documents)
    results = {
        name: [perplexity(lm, [document], carried=name == "carried") for document in documents]
        for name in ("fresh", "carried")
    }
    tokens = np.array([each.tokens for each in results["fresh"]])
    losses = {name: np.array([math.log(each.both) for each in some]) for name, some in results.items()}

    def difference(drawn: np.ndarray) -> float:
        return float(np.average((losses["carried"] - losses["fresh"])[drawn], weights=tokens[drawn]))

    return {
        **{
            name: {
                way: math.exp(float(np.average([math.log(getattr(each, way)) for each in some], weights=tokens)))
                for way in WAYS
                if getattr(some[0], way) is not None
            }
            for name, some in results.items()
        },
        "interval": bootstrap_interval(difference, len(documents), sizes.seed),
        "tokens": int(tokens.sum()),
        "documents": len(documents),
        "unknown": float(np.average([each.unknown for each in results["fresh"]], weights=tokens)),
        "known_words": lm.softmax.config.num_words,
    }


PERPLEXITY = Measurement("perplexity", measure_perplexity, (WIKITEXT,), ("documents", "seed"), head=True)


@torch.inference_mode()
def measure_gaps(model: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """Gap filling (cloze): how often the missing word is the first prediction of each direction, and of both."""
    lm = model.language_model
    if len(lm.directions) < 2:
        raise ConfigError("This model reads in one direction only.")
    gaps = _gaps(set(lm.vocabulary), sizes)
    if len(gaps) < 20:
        raise InputError("This model's vocabulary has too few words of the bundled sentences to fill gaps in them.")
    first: dict[str, list[bool]] = {way: [] for way in WAYS}
    ranks: dict[str, list[float]] = {way: [] for way in WAYS}
    examples = []
    for words, place in gaps:
        lists = {
            "forward": lm.predict_next(words[:place], top=100),
            "backward": lm.predict_previous(words[place + 1 :], top=100),
            "both": lm.substitutes(words, place, top=100),
        }
        for way, predicted in lists.items():
            names = [word for word, _ in predicted]
            rank = names.index(words[place]) + 1 if words[place] in names else 0
            first[way].append(rank == 1)
            ranks[way].append(1 / rank if rank else 0.0)
        if len(examples) < 4 and first["both"][-1] and not first["forward"][-1]:
            said = {way: [word for word, _ in predicted[:3]] for way, predicted in lists.items()}
            examples.append({"words": words, "place": place, "said": said})
    correct = {way: np.array(values) for way, values in first.items()}
    return {
        "gaps": len(gaps),
        "first": {way: float(values.mean()) for way, values in correct.items()},
        "reciprocal": {way: float(np.mean(values)) for way, values in ranks.items()},
        "p": {way: sign_test(correct["both"], correct[way]) for way in WAYS[:2]},
        "examples": examples,
    }


GAPS = Measurement("gaps", measure_gaps, sizes=("gaps", "seed"), head=True)


def _gaps(known: set[str], sizes: SampleSizes) -> list[tuple[list[str], int]]:
    """One random gap a sentence: a word of the vocabulary, neither the first word nor punctuation."""
    rng = np.random.default_rng(sizes.seed)
    found = []
    for words in bundled_sentences():
        places = [place for place in range(1, len(words) - 1) if words[place].isalpha() and words[place] in known]
        if places:
            found.append((words, places[int(rng.integers(len(places)))]))
    return found[: sizes.gaps]


def _articles(path: Path, limit: int) -> list[list[list[str]]]:
    """Whole articles of WikiText as lists of sentences, until they have ``limit`` words."""
    articles: list[list[list[str]]] = []
    words = 0
    with open_text(path) as lines:
        for line in lines:
            if re.match(r" = [^=].*[^=] = $", line.rstrip("\n")):
                if words >= limit:
                    break
                articles.append([])
            elif articles and line.strip() and not line.startswith(" ="):
                sentences = [sentence.words for sentence in tokenize(_without_marks(line))]
                articles[-1] += sentences
                words += sum(map(len, sentences))
    articles = [article for article in articles if article]
    if not articles:
        raise FormatError(f"{path}: contains no article; expected WikiText, where a line “ = Title = ” starts one")
    return articles


def _without_marks(line: str) -> str:
    """A line without WikiText's tokenisation marks (`` @-@ ``)."""
    return re.sub(r" @([-,.])@ ", r"\1", line).strip()
