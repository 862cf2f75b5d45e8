"""How surprised a language model is by a text.

Always by the full softmax, over every word that there is to predict: those of the text and one boundary a sentence.
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
    """Exponentials of mean losses, and what they are means of.

    Attributes:
        forward: Of the forward direction; None where the model does not read forward.
        backward: Of the backward direction, likewise.
        both: Exponential of the mean loss of both directions: their geometric mean.
        tokens: Predictions a direction: the words and one boundary a sentence.
        words: Words of the text.
        sentences: Its sentences.
        documents: Its documents.
        unknown: Share of the words that the head does not know, each of which counts as ``<UNK>``. A model that knows
            few words has it easy: compare perplexities of like shares, or bits per character.
        characters: Of the raw text where it is known, line ends included; else of the words, with one space or line end
            after each.
        bits_per_character: The mean of both directions' losses, in bits, for each character of the text. How an
            unknown word is spelt is not paid for, so this, too, compares only where few are unknown.
        carried: Whether state was carried through each document; else each sentence was read by itself.
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
    """Measure a text, a stream of documents of which the largest must fit in memory.

    Args:
        model: What reads it. Its modules may be in the midst of training: they are left as they were.
        documents: Lists of sentences, each a list of words; see `read_documents`.
        carried: Let state run through a document: forward from its beginning, backward from its end. Else each sentence
            is read by itself, as it is when it is embedded.
    """
    measure = PerplexityMeter(model, carried)
    for window in number_documents(documents, model.window):
        measure.add(window, model.scorer(window.words))
    return measure.result()


class PerplexityMeter:
    """A perplexity in the making; a text can be measured in several ways while it is read once."""

    def __init__(self, model: LanguageModel, carried: bool) -> None:
        self._model, self._carried = model, carried
        self._losses: dict[Direction, torch.Tensor | float] = dict.fromkeys(model.directions, 0.0)
        self._words = self._sentences = self._documents = self._unknown = self._characters = 0

    def add(self, window: NumberedDocuments, reader: BiLMScorer) -> None:
        """Read some documents; sums stay on the device, so that nobody waits for it."""
        sentences = [sentence for document in window.documents for sentence in document]
        runs = window.documents if self._carried else [[sentence] for sentence in sentences]
        for direction in self._losses:
            log_probs = reader.log_probs(direction, [make_sequence(run, direction) for run in runs])
            self._losses[direction] = self._losses[direction] - log_probs.sum(dtype=torch.float64)
        uses = np.bincount(np.concatenate([*sentences, np.zeros(0, np.int64)]), minlength=len(reader.targets))
        unknown = self._model.vocabulary.id(self._model.vocabulary.unk)
        self._unknown += int(uses[reader.targets == unknown].sum())
        self._words += int(uses[CLOSING + 1 :].sum())
        self._sentences += len(sentences)
        self._documents += len(window.documents)
        self._characters += window.characters

    def result(self) -> Perplexity:
        """What came of all that was read."""
        tokens = self._words + self._sentences
        if not tokens:
            raise InputError("there is no text to measure: no sentence came")
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
