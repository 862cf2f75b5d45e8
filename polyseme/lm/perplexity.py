"""Perplexity of a language model on a text.

Always by the full softmax, over every prediction: the words of the text and one boundary per sentence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from polyseme.errors import InputError
from polyseme.lm.documents import Documents, NumberedDocuments, number_documents
from polyseme.lm.language_model import LanguageModel
from polyseme.lm.scorer import BiLMScorer, make_sequence
from polyseme.model.config import Direction
from polyseme.text.word_encoder import CLOSING


@dataclass(frozen=True)
class Perplexity:
    """Perplexity of a text, per direction and overall, and the counts behind it.

    Attributes:
        forward: Perplexity of the forward direction; None where the model does not read forward.
        backward: Perplexity of the backward direction, likewise.
        both: Exponential of the mean loss of both directions: their geometric mean.
        tokens: Predictions per direction: the words and one boundary per sentence.
        words: Number of words.
        sentences: Number of sentences.
        documents: Number of documents.
        unknown: Fraction of words outside the vocabulary, each of which counts as ``<UNK>``. A small vocabulary makes
            low perplexities easy: compare models with similar fractions, or bits per character.
        characters: Length of the raw text where it is known, line ends included; else of the words, with one space or
            line end after each.
        bits_per_character: The mean loss of both directions in bits per character of the text. The spelling of an
            unknown word costs nothing, so compare it, too, only where few words are unknown.
        carried: Whether LSTM state was carried through each document; else each sentence was read by itself.
    """

    forward: float | None
    backward: float | None
    both: float
    tokens: int
    words: int
    sentences: int
    documents: int
    unknown: float
    characters: int
    bits_per_character: float
    carried: bool


def perplexity(model: LanguageModel, documents: Documents, carried: bool = False) -> Perplexity:
    """Measure the perplexity of a stream of documents, of which the largest must fit in memory.

    Args:
        model: The language model. Its modules may be in training mode, which is restored.
        documents: Lists of sentences, each a list of words; see `read_documents`.
        carried: Carry LSTM state through a document: forward from its beginning, backward from its end. Else each
            sentence is read by itself, as it is when it is embedded.
    """
    meter = PerplexityMeter(model, carried)
    for window in number_documents(documents, model.window):
        meter.add(window, model.scorer(window.words))
    return meter.result()


class PerplexityMeter:
    """Perplexity accumulator; several of them can measure a text that is read once."""

    def __init__(self, model: LanguageModel, carried: bool) -> None:
        self._model, self._carried = model, carried
        self._losses: dict[Direction, torch.Tensor | float] = dict.fromkeys(model.directions, 0.0)
        self._words = self._sentences = self._documents = self._unknown = self._characters = 0

    def add(self, window: NumberedDocuments, scorer: BiLMScorer) -> None:
        """Add a window of documents; sums stay on the device, so that nothing waits for it."""
        sentences = [sentence for document in window.documents for sentence in document]
        runs = window.documents if self._carried else [[sentence] for sentence in sentences]
        for direction in self._losses:
            log_probs = scorer.log_probs(direction, [make_sequence(run, direction) for run in runs])
            self._losses[direction] = self._losses[direction] - log_probs.sum(dtype=torch.float64)
        uses = np.bincount(np.concatenate([*sentences, np.zeros(0, np.int64)]), minlength=len(scorer.targets))
        unknown = self._model.vocabulary.id(self._model.vocabulary.unk)
        self._unknown += int(uses[scorer.targets == unknown].sum())
        self._words += int(uses[CLOSING + 1 :].sum())
        self._sentences += len(sentences)
        self._documents += len(window.documents)
        self._characters += window.characters

    def result(self) -> Perplexity:
        """Perplexity over everything that was added."""
        tokens = self._words + self._sentences
        if not tokens:
            raise InputError("there is no text to measure: got no sentences")
        losses = {direction: float(loss) / tokens for direction, loss in self._losses.items()}
        both = sum(losses.values()) / len(losses)
        forward, backward = (_exp(losses[way]) if way in losses else None for way in ("forward", "backward"))
        return Perplexity(
            forward=forward,
            backward=backward,
            both=_exp(both),
            tokens=tokens,
            words=self._words,
            sentences=self._sentences,
            documents=self._documents,
            unknown=self._unknown / max(1, self._words),
            characters=self._characters,
            bits_per_character=both * tokens / math.log(2) / max(1, self._characters),
            carried=self._carried,
        )


def _exp(loss: float) -> float:
    return math.inf if loss > 700 else math.exp(loss)
