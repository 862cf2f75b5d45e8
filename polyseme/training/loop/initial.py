"""Initial weights: random, or warm-started from a model."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from polyseme.errors import ConfigError, InputError
from polyseme.formats import open_softmax
from polyseme.formats.stored import StoredModel, StoredSoftmax
from polyseme.lm import LanguageModel
from polyseme.model.bilm import BiLM
from polyseme.model.config import BiLMConfig
from polyseme.model.softmax import Head, Softmax, SoftmaxConfig, build_softmax
from polyseme.text.vocabulary import RESERVED, Vocabulary
from polyseme.text.word_encoder import ByteCharacters, Characters, DictionaryCharacters, WordEncoder
from polyseme.training.loop.windows import DIRECTIONS
from polyseme.training.settings import LossSettings, TrainSettings
from polyseme.training.shards.store import Shards

SPECIAL_CHARACTERS = ("<bos>", "<eos>", "<oov>", "<pad>", "<bow>", "<eow>")
MAX_CHARACTERS = 8000


@dataclass
class TrainableModel:
    """The model being trained: a biLM, its softmax head, and the words that they read and predict."""

    bilm: BiLM
    head: Head
    words: WordEncoder
    vocabulary: Vocabulary
    counts: Tensor  # (V,) how often each word of the vocabulary occurs in the text

    def language_model(self) -> LanguageModel:
        """The current weights as a language model, for evaluation."""
        return LanguageModel(self.bilm, self.head, self.words, self.vocabulary)

    def stored(self) -> tuple[StoredModel, StoredSoftmax]:
        """The current weights as a stored model and softmax, for saving."""
        head = StoredSoftmax(self.head.config, self.head.state_dict(), self.vocabulary)
        return StoredModel(self.bilm.config, self.bilm.state_dict(), self.words, "polyseme training"), head


def new_model(settings: TrainSettings, shards: Shards) -> TrainableModel:
    """A model with random weights; the softmax bias starts from the word frequencies."""
    torch.manual_seed(settings.training.seed)
    vocabulary, counts = _new_vocabulary(settings.loss, shards)
    characters = settings.model.input.characters
    if characters is None or settings.model.input.num_words:
        raise ConfigError("training builds models that read words as characters; leave model.input.num_words at 0")
    if len(settings.model.directions) < DIRECTIONS:
        raise ConfigError("training builds models that read in both directions; leave model.directions as it is")
    spelling: Characters = ByteCharacters(characters.max_characters)
    if settings.characters == "code points":
        spelling = _dictionary(shards, characters.max_characters)
    shape = replace(settings.model.input, characters=replace(characters, num_characters=spelling.size))
    bilm = BiLM(replace(settings.model, input=shape))
    head = _new_head(settings.loss, settings.model, counts)
    return TrainableModel(bilm, head, WordEncoder(spelling), vocabulary, counts)


def warm_start(
    stored: StoredModel, path: Path, settings: TrainSettings, shards: Shards, extend: bool
) -> TrainableModel:
    """Warm start from an existing model, with its vocabulary or with words of the new text added to it.

    A model without a softmax, as all published ones are, gets a new one.
    """
    torch.manual_seed(settings.training.seed)
    loss = settings.loss
    if stored.config.input.num_words or len(stored.config.directions) < DIRECTIONS:
        raise ConfigError(
            f"{path}: training can only start from a model that reads words as characters, in both directions"
        )
    if stored.softmax is None:
        if extend:
            raise ConfigError(
                f"{path} has no vocabulary to extend, because it has no softmax; leave out --extend-vocabulary"
            )
        vocabulary, counts = _new_vocabulary(loss, shards)
        return TrainableModel(stored.build(), _new_head(loss, stored.config, counts), stored.words, vocabulary, counts)
    softmax = open_softmax(path)
    head, vocabulary = softmax.build(), softmax.vocabulary
    if loss.kind == "adaptive" and isinstance(head, Softmax):
        raise ConfigError(
            f"{path} has a softmax that is not adaptive and cannot change it; set loss.kind to sampled or full"
        )
    frequencies = dict(shards.word_counts())
    if extend:
        fresh = [word for word, count in frequencies.items() if count >= loss.min_count and word not in vocabulary]
        head, vocabulary = _extend_vocabulary(head, vocabulary, fresh[: loss.words])
    counts = torch.tensor([frequencies.get(word, 0) for word in vocabulary])
    counts[vocabulary.id(vocabulary.unk)] = shards.num_words - int(counts.sum())
    counts[vocabulary.id(vocabulary.bos)] = counts[vocabulary.id(vocabulary.eos)] = shards.num_sentences
    return TrainableModel(stored.build(), head, stored.words, vocabulary, counts)


def characters_of(stored: StoredModel) -> Literal["bytes", "code points"]:
    """Whether a model reads words as UTF-8 bytes or as code points."""
    return "code points" if isinstance(stored.words.characters, DictionaryCharacters) else "bytes"


def _new_vocabulary(settings: LossSettings, shards: Shards) -> tuple[Vocabulary, Tensor]:
    vocabulary, counted = shards.vocabulary(settings.words, settings.min_count)
    if set(vocabulary) <= RESERVED:
        raise InputError(
            f"no word of the text occurs at least {settings.min_count} times; give more text, or lower loss.min_count"
        )
    return vocabulary, torch.from_numpy(counted)


def _new_head(settings: LossSettings, model: BiLMConfig, counts: Tensor) -> Head:
    cutoffs = tuple(cut for cut in settings.cutoffs if cut < len(counts)) if settings.kind == "adaptive" else ()
    head = build_softmax(SoftmaxConfig(len(counts), model.lstm.dim, cutoffs))
    if isinstance(head, Softmax):  # before any training, word frequency is the best prediction
        smoothed = (counts + 1).double()
        head.bias.data.copy_((smoothed / smoothed.sum()).log())
    return head


def _extend_vocabulary(head: Head, vocabulary: Vocabulary, words: list[str]) -> tuple[Head, Vocabulary]:
    """Add words to a softmax: each starts from the weights of ``<UNK>``, and they share its probability."""
    if not isinstance(head, Softmax):
        raise ConfigError(
            "an adaptive softmax has fixed clusters and cannot take new words; leave out --extend-vocabulary"
        )
    if not words:
        return head, vocabulary
    marks = (vocabulary.bos, vocabulary.eos, vocabulary.unk)
    wider = Softmax(replace(head.config, num_words=len(vocabulary) + len(words)))
    unknown = vocabulary.id(vocabulary.unk)
    with torch.no_grad():
        wider.weight.copy_(torch.cat([head.weight, head.weight[unknown].expand(len(words), -1)]))
        shared = head.bias[unknown] - torch.log(torch.tensor(1.0 + len(words)))
        wider.bias.copy_(torch.cat([head.bias, shared.expand(len(words))]))
        wider.bias[unknown] = shared
    return wider, Vocabulary([*vocabulary, *words], *marks)


def _dictionary(shards: Shards, max_characters: int) -> DictionaryCharacters:
    """A character dictionary of the most frequent characters of the text."""
    counts: Counter[str] = Counter()
    for word, count in shards.word_counts():
        for character in word:
            counts[character] += count
    common = sorted(counts, key=lambda character: (-counts[character], character))[:MAX_CHARACTERS]
    return DictionaryCharacters((*SPECIAL_CHARACTERS, *common), max_characters)
