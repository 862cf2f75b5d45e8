"""A biLM with its head: a language model that reads both ways."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from polyseme.embedding.batching import check_sentences
from polyseme.errors import ConfigError, InputError
from polyseme.formats import open_model, open_softmax, resolve_model_path
from polyseme.lm.documents import NumberedDocuments, number_documents
from polyseme.lm.scorer import BiLMScorer, make_sequence
from polyseme.model.bilm import BiLM
from polyseme.model.config import Direction
from polyseme.model.softmax import Head
from polyseme.text.vocabulary import BOS, EOS, Vocabulary
from polyseme.text.word_encoder import CLOSING, OPENING, WordEncoder

WINDOW, GPU_WINDOW = 1 << 16, 1 << 19  # words that are read ahead
ZIPF = 2.7  # added to ranks: the commonest words are not as common as the law would have it
Prediction = list[tuple[str, float]]


@dataclass(frozen=True)
class SentenceScore:
    """Log-probabilities (natural logarithms) of a sentence's words, each given what its direction has read by then.

    Both arrays are in the order of the sentence, n + 1 numbers for n words. Forward, number i is the log-probability
    of word i given the words before it, and the last that of the sentence ending there. Backward, the first is that of
    the sentence beginning there, and number i + 1 is word i's given the words after it. `forward_words` and
    `backward_words` say so. A word that the head does not know counts as ``<UNK>``: its number is that of any unknown
    word.

    Attributes:
        words: The sentence.
        forward: One for each of `forward_words`; None where the model does not read forward.
        backward: One for each of `backward_words`; None where the model does not read backward.
    """

    words: tuple[str, ...]
    forward: np.ndarray | None
    backward: np.ndarray | None

    @property
    def forward_words(self) -> tuple[str, ...]:
        """What the forward numbers belong to: the words, then the closing boundary."""
        return (*self.words, EOS)

    @property
    def backward_words(self) -> tuple[str, ...]:
        """What the backward numbers belong to: the opening boundary, then the words."""
        return (BOS, *self.words)

    @property
    def forward_sum(self) -> float | None:
        """Log-probability of the sentence, read forward."""
        return None if self.forward is None else float(self.forward.sum(dtype=np.float64))

    @property
    def backward_sum(self) -> float | None:
        """Log-probability of the sentence, read backward."""
        return None if self.backward is None else float(self.backward.sum(dtype=np.float64))


class LanguageModel:
    """What gives words their probabilities: forward given the words before, backward given the words after.

    Unknown words are read by their spelling, where the model spells; to be predicted, they count as ``<UNK>``. The head
    is shared by both directions.

    Args:
        bilm: The network.
        softmax: Its head.
        words: How it reads words.
        vocabulary: The words of the head.
        name: For people to read.
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
        """Open a model of our own format together with its head.

        Args:
            path: Its folder, a file in it, or a zip or tar of it. Nothing, or ``english``: the model that ships.
            device: Where to compute.
        """
        path = resolve_model_path(path)
        head, stored = open_softmax(path), open_model(path)
        place = Path(path).expanduser().absolute()
        name = place.parent.name if place.suffix in (".json", ".safetensors") else place.name
        return cls(stored.build(), head.build(), stored.words, head.vocabulary, name).to(device)

    def to(self, device: str | torch.device) -> LanguageModel:
        """Move it to where it is to compute."""
        try:
            self.bilm.to(device)
            self.softmax.to(device)
        except (RuntimeError, AssertionError) as error:
            raise ConfigError(f"device {str(device)!r} cannot be used here: {str(error).splitlines()[0]}") from error
        return self

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Which ways it reads."""
        return self.bilm.config.directions

    @property
    def window(self) -> int:
        """Words that are worth reading ahead, to compute those of like length side by side."""
        return GPU_WINDOW if next(self.bilm.parameters()).is_cuda else WINDOW

    def scorer(self, distinct: Sequence[str]) -> BiLMScorer:
        """The network at work on some words, each encoded once."""
        return BiLMScorer(self.bilm, self.softmax, self.words, self.vocabulary, distinct)

    def score(self, sentence: Sequence[str]) -> SentenceScore:
        """Log-probabilities of the words of one sentence."""
        return next(self.score_all([sentence]))

    def score_all(self, sentences: Iterable[Sequence[str]]) -> Iterator[SentenceScore]:
        """Scores of a stream of sentences, in order; it is read some thousand words ahead and no further."""
        single = ([words] for words in check_sentences(sentences))
        return (score for window in number_documents(single, self.window) for score in self._score(window))

    def predict_next(self, words: Sequence[str], top: int = 10, special: bool = False) -> Prediction:
        """The likeliest words after these, which begin a sentence, each with its probability.

        The list may hold ``</S>``: the sentence ends here. It leaves out ``<UNK>``, any word that is not in the
        vocabulary.

        Args:
            words: What the sentence begins with; nothing, for its first word.
            top: How many.
            special: Leave nothing out.
        """
        after = self._beside(_checked(words), "forward")
        return self._best(after, top, () if special else (self.vocabulary.bos, self.vocabulary.unk))

    def predict_previous(self, words: Sequence[str], top: int = 10, special: bool = False) -> Prediction:
        """The likeliest words before these, which end a sentence; ``<S>`` means that it begins here."""
        before = self._beside(_checked(words), "backward")
        return self._best(before, top, () if special else (self.vocabulary.eos, self.vocabulary.unk))

    def substitutes(self, words: Sequence[str], position: int, top: int = 10, special: bool = False) -> Prediction:
        """The likeliest words at a position, given the words on both sides of it; what stands there is not looked at.

        The two sides know nothing of each other, so by Bayes' rule the probability of a word is the product of what
        both give it over how frequent it is, which its rank in the vocabulary tells. Probabilities sum to one over all
        words that may be in the list.

        Args:
            words: A whole sentence.
            position: Which of its words, from 0.
            top: How many.
            special: Whether ``<UNK>``, any word that is not in the vocabulary, may be in the list.
        """
        words = _checked(words)
        if not 0 <= position < len(words):
            raise InputError(f"position must be 0 to {len(words) - 1} in a sentence of {len(words)} words; {position=}")
        if self.directions != ("forward", "backward"):
            way, remedy = self.directions[0], "predict_next" if "forward" in self.directions else "predict_previous"
            raise ConfigError(f"{self.name} reads {way} only, so it cannot see both sides of a gap; use {remedy}")
        left, right = self._beside(words[:position], "forward"), self._beside(words[position + 1 :], "backward")
        scores = left + right - _log_frequencies(len(self.vocabulary)).to(left)
        boundaries = (self.vocabulary.bos, self.vocabulary.eos)
        scores[self.vocabulary.encode(boundaries if special else (*boundaries, self.vocabulary.unk))] = -torch.inf
        return self._best(scores.log_softmax(dim=0), top, ())

    def _beside(self, words: list[str], direction: Direction) -> Tensor:
        """Log-probabilities of all words (V,) after these, or before them."""
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
        reader = self.scorer(window.words)
        sentences = [sentence for document in window.documents for sentence in document]
        found: dict[Direction, Sequence[np.ndarray | None]] = {}
        for direction in ("forward", "backward"):
            if direction in self.directions:
                flat = reader.log_probs(direction, [make_sequence([sentence], direction) for sentence in sentences])
                parts = np.split(flat.cpu().numpy(), np.cumsum([len(sentence) + 1 for sentence in sentences])[:-1])
                found[direction] = parts if direction == "forward" else [part[::-1].copy() for part in parts]
            else:
                found[direction] = [None] * len(sentences)
        return [
            SentenceScore(tuple(window.words[number - 2] for number in sentence), forward, backward)
            for sentence, forward, backward in zip(sentences, found["forward"], found["backward"], strict=True)
        ]


def _log_frequencies(words: int) -> Tensor:
    """About how frequent words are, by Zipf's law in Mandelbrot's form; the three special words come first."""
    ranks = (torch.arange(words) - 2).clamp(min=1)
    return -(ranks + ZIPF).log()


def _checked(words: Sequence[str]) -> list[str]:
    return next(check_sentences([words]))
