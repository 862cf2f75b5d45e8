"""Bidirectional language model: a biLM with its softmax head, for sentence scores and word prediction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from polyseme.embedding.batching import SPLIT_REMEDY, check_sentences
from polyseme.embedding.device import find_device
from polyseme.errors import ConfigError, InputError
from polyseme.formats import StoredModel, StoredSoftmax, native, open_model, open_softmax, resolve_model_path
from polyseme.formats.stored import Precision
from polyseme.lm.documents import NumberedDocuments, number_documents
from polyseme.lm.scorer import BiLMScorer, make_sequence
from polyseme.model.bilm import BiLM
from polyseme.model.config import Direction
from polyseme.model.softmax import Head
from polyseme.text.vocabulary import BOS, EOS, Vocabulary
from polyseme.text.word_encoder import CLOSING, OPENING, WordEncoder

WINDOW, GPU_WINDOW = 1 << 16, 1 << 19  # words that are read ahead of the computation
ZIPF = 2.7  # added to ranks (Mandelbrot): the commonest words are rarer than Zipf's law says
Prediction = list[tuple[str, float]]


@dataclass(frozen=True)
class SentenceScore:
    """Score of a sentence: natural log-probabilities of its words, each given what its direction has read before.

    Both arrays are in the order of the sentence, n + 1 values for n words. Forward, value i is the log-probability of
    word i given the words before it, and the last that of the sentence ending there. Backward, the first is that of the
    sentence beginning there, and value i + 1 is that of word i given the words after it; see `forward_words` and
    `backward_words`. A word outside the vocabulary counts as ``<UNK>``: its value is that of any unknown word.

    Attributes:
        words: The sentence.
        forward: One value for each of `forward_words`; None where the model does not read forward.
        backward: One value for each of `backward_words`; None where the model does not read backward.
    """

    words: tuple[str, ...]
    forward: np.ndarray | None
    backward: np.ndarray | None

    @property
    def forward_words(self) -> tuple[str, ...]:
        """Words of the forward values: the sentence, then the end boundary."""
        return (*self.words, EOS)

    @property
    def backward_words(self) -> tuple[str, ...]:
        """Words of the backward values: the begin boundary, then the sentence."""
        return (BOS, *self.words)

    @property
    def forward_sum(self) -> float | None:
        """Log-probability of the whole sentence, read forward."""
        return None if self.forward is None else float(self.forward.sum(dtype=np.float64))

    @property
    def backward_sum(self) -> float | None:
        """Log-probability of the whole sentence, read backward."""
        return None if self.backward is None else float(self.backward.sum(dtype=np.float64))


class LanguageModel:
    """Bidirectional language model: probabilities of words given the words before them, or after them.

    A model with a character encoder reads unknown words by their characters; as predictions, they count as ``<UNK>``.
    Both directions share the softmax head.

    Args:
        bilm: The network.
        softmax: Its softmax head.
        words: Its word encoder.
        vocabulary: The words of the head.
        name: A name to show to people.
    """

    def __init__(
        self, bilm: BiLM, softmax: Head, words: WordEncoder, vocabulary: Vocabulary, name: str = "language model"
    ) -> None:
        config = softmax.config
        if (config.dim, config.num_words) != (bilm.config.lstm.dim, len(vocabulary)):
            raise ConfigError(
                f"the softmax is for {config.dim} dimensions and {config.num_words:,} words, but the model has "
                f"{bilm.config.lstm.dim} and the vocabulary {len(vocabulary):,}"
            )
        self.bilm, self.softmax, self.words, self.vocabulary, self.name = bilm, softmax, words, vocabulary, name

    @classmethod
    def load(cls, path: str | Path | None = None, device: str | torch.device = "cpu") -> LanguageModel:
        """Load a model of our own format together with its softmax head.

        Args:
            path: Its folder, a file in it, or a zip or tar of it. None, or ``english``: the model that ships.
            device: Where to compute.
        """
        path = resolve_model_path(path)
        head, stored = open_softmax(path), open_model(path)
        place = Path(path).expanduser().absolute()
        name = place.parent.name if place.suffix in (".json", ".safetensors") else place.name
        return cls(stored.build(), head.build(), stored.words, head.vocabulary, name).to(device)

    def save(self, path: str | Path, precision: Precision = "fp32", overwrite: bool = False) -> None:
        """Save model and softmax head as a folder that `load` and `polyseme.load` open."""
        model = StoredModel(self.bilm.config, self.bilm.state_dict(), self.words, format="polyseme folder")
        head = StoredSoftmax(self.softmax.config, self.softmax.state_dict(), self.vocabulary)
        native.save(model, Path(path), precision, overwrite, softmax=head)

    from_pretrained = load
    save_pretrained = save

    def to(self, device: str | torch.device) -> LanguageModel:
        """Move the model to a device."""
        found = find_device(device)
        self.bilm.to(found)
        self.softmax.to(found)
        return self

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Directions in which the model reads."""
        return self.bilm.config.directions

    @property
    def window(self) -> int:
        """Window size in words: how far to read ahead, so that sentences of similar length are batched."""
        return GPU_WINDOW if next(self.bilm.parameters()).is_cuda else WINDOW

    def scorer(self, distinct: Sequence[str]) -> BiLMScorer:
        """Scorer over some distinct words, each encoded once."""
        return BiLMScorer(self.bilm, self.softmax, self.words, self.vocabulary, distinct)

    def score(self, sentence: Sequence[str]) -> SentenceScore:
        """Score one sentence: log-probabilities of its words."""
        return next(self.score_all([_checked(sentence)]))

    def score_all(self, sentences: Iterable[Sequence[str]]) -> Iterator[SentenceScore]:
        """Score a stream of sentences, in order, reading ahead by one window of words."""
        single = ([words] for words in check_sentences(sentences, SPLIT_REMEDY))
        return (score for window in number_documents(single, self.window) for score in self._score(window))

    def predict_next(self, words: Sequence[str], top: int = 10, special: bool = False) -> Prediction:
        """Predict the next word: the likeliest words after the beginning of a sentence, with their probabilities.

        The list may include ``</S>``: the sentence ends here. It leaves out ``<UNK>``, which is any word outside the
        vocabulary.

        Args:
            words: The beginning of the sentence; empty to predict its first word.
            top: How many.
            special: Whether to include ``<UNK>`` and the other boundary.
        """
        after = self._neighbour_log_probs(_checked(words), "forward")
        return self._best(after, top, () if special else (self.vocabulary.bos, self.vocabulary.unk))

    def predict_previous(self, words: Sequence[str], top: int = 10, special: bool = False) -> Prediction:
        """Predict the previous word: the likeliest before the end of a sentence; ``<S>`` means that it begins here."""
        before = self._neighbour_log_probs(_checked(words), "backward")
        return self._best(before, top, () if special else (self.vocabulary.eos, self.vocabulary.unk))

    def substitutes(self, words: Sequence[str], position: int, top: int = 10, special: bool = False) -> Prediction:
        """Predict substitutes: the likeliest words at a position, given the words on both sides but not the one there.

        Assuming that the two sides are independent given the word, by Bayes' rule its probability is the product of the
        two directions' divided by its frequency, which is estimated by its rank in the vocabulary. Probabilities sum to
        one over all words that may be in the list.

        Args:
            words: A whole sentence.
            position: Which of its words, from 0.
            top: How many.
            special: Whether ``<UNK>``, which is any word outside the vocabulary, may be in the list.
        """
        words = _checked(words)
        if not 0 <= position < len(words):
            raise InputError(f"position must be 0 to {len(words) - 1} in a sentence of {len(words)} words; {position=}")
        if self.directions != ("forward", "backward"):
            way, remedy = self.directions[0], "predict_next" if "forward" in self.directions else "predict_previous"
            raise ConfigError(f"{self.name} reads {way} only, so it cannot see both sides of a gap; use {remedy}")
        left, right = (
            self._neighbour_log_probs(words[:position], "forward"),
            self._neighbour_log_probs(words[position + 1 :], "backward"),
        )
        scores = left + right - _log_frequencies(len(self.vocabulary)).to(left)
        boundaries = (self.vocabulary.bos, self.vocabulary.eos)
        scores[self.vocabulary.encode(boundaries if special else (*boundaries, self.vocabulary.unk))] = -torch.inf
        return self._best(scores.log_softmax(dim=0), top, ())

    def _neighbour_log_probs(self, words: list[str], direction: Direction) -> Tensor:
        """Log-probabilities of all words of the vocabulary (V,) after these words, or before them."""
        if direction not in self.directions:
            raise ConfigError(f"{self.name} reads {self.directions[0]} only; it cannot predict {direction}")
        ((distinct, ((sentence,),), _),) = number_documents([[words]], 0)
        ends = [OPENING, *sentence] if direction == "forward" else [CLOSING, *sentence[::-1]]
        return self.scorer(distinct).next_word(direction, np.array(ends, np.int64))

    def _best(self, log_probs: Tensor, top: int, left_out: Sequence[str]) -> Prediction:
        if top < 1:
            raise ConfigError(f"top must be 1 or more; got {top}")
        log_probs = log_probs.cpu()
        log_probs[self.vocabulary.encode(left_out)] = -torch.inf
        values, numbers = log_probs.topk(min(top, int(log_probs.isfinite().sum())))
        return list(zip(self.vocabulary.decode(numbers.tolist()), values.double().exp().tolist(), strict=True))

    def _score(self, window: NumberedDocuments) -> list[SentenceScore]:
        scorer = self.scorer(window.words)
        sentences = [sentence for document in window.documents for sentence in document]
        found: dict[Direction, Sequence[np.ndarray | None]] = {}
        for direction in ("forward", "backward"):
            if direction in self.directions:
                flat = scorer.log_probs(direction, [make_sequence([sentence], direction) for sentence in sentences])
                parts = np.split(flat.cpu().numpy(), np.cumsum([len(sentence) + 1 for sentence in sentences])[:-1])
                found[direction] = parts if direction == "forward" else [part[::-1].copy() for part in parts]
            else:
                found[direction] = [None] * len(sentences)
        return [
            SentenceScore(tuple(window.words[number - 2] for number in sentence), forward, backward)
            for sentence, forward, backward in zip(sentences, found["forward"], found["backward"], strict=True)
        ]


def _log_frequencies(words: int) -> Tensor:
    """Estimated log-frequencies of words by rank: the Zipf-Mandelbrot law; the three special words come first."""
    ranks = (torch.arange(words) - 2).clamp(min=1)
    return -(ranks + ZIPF).log()


def _checked(words: Sequence[str]) -> list[str]:
    return next(check_sentences([words], SPLIT_REMEDY))
