"""What is trained: made anew from settings and a text, or taken over from a model."""

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

MARKS = ("<bos>", "<eos>", "<oov>", "<pad>", "<bow>", "<eow>")
MOST_CHARACTERS = 8000


@dataclass
class TrainableModel:
    """A biLM, its head, and the words that they read and predict."""

    bilm: BiLM
    head: Head
    words: WordEncoder
    vocabulary: Vocabulary
    counts: Tensor  # (V,) how often each word of the vocabulary occurs in the text

    def language_model(self) -> LanguageModel:
        """The same weights as something that can be asked."""
        return LanguageModel(self.bilm, self.head, self.words, self.vocabulary)

    def stored(self) -> tuple[StoredModel, StoredSoftmax]:
        """The same weights as something that can be saved."""
        head = StoredSoftmax(self.head.config, self.head.state_dict(), self.vocabulary)
        return StoredModel(self.bilm.config, self.bilm.state_dict(), self.words, "polyseme training"), head


def new_model(settings: TrainSettings, shards: Shards) -> TrainableModel:
    """One that knows nothing yet but how often words occur."""
    torch.manual_seed(settings.training.seed)
    vocabulary, counts = _new_vocabulary(settings.loss, shards)
    characters = settings.model.input.characters
    if characters is None or settings.model.input.num_words:
        raise ConfigError("training makes models that read words by their spelling; model.input.num_words must be 0")
    if len(settings.model.directions) < DIRECTIONS:
        raise ConfigError("training makes models that read both ways; leave model.directions as it is")
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
    """One that goes on from a model, with its words or with those of the new text beside them.

    A model without a head, as all published ones are, gets a new one.
    """
    torch.manual_seed(settings.training.seed)
    loss = settings.loss
    if stored.config.input.num_words or len(stored.config.directions) < DIRECTIONS:
        raise ConfigError(f"{path}: training goes on from models that read words by their spelling, both ways")
    if stored.softmax is None:
        if extend:
            raise ConfigError(f"{path} predicts no words yet, so all are new; leave out --extend-vocabulary")
        vocabulary, counts = _new_vocabulary(loss, shards)
        return TrainableModel(stored.build(), _new_head(loss, stored.config, counts), stored.words, vocabulary, counts)
    softmax = open_softmax(path)
    head, vocabulary = softmax.build(), softmax.vocabulary
    if loss.kind == "adaptive" and isinstance(head, Softmax):
        raise ConfigError(f"{path} has a softmax that is not adaptive, and keeps it; choose another loss.kind")
    known = dict(shards.word_counts())
    if extend:
        fresh = [word for word, count in known.items() if count >= loss.min_count and word not in vocabulary]
        head, vocabulary = _extended(head, vocabulary, fresh[: loss.words])
    counts = torch.tensor([known.get(word, 0) for word in vocabulary])
    counts[vocabulary.id(vocabulary.bos)] = counts[vocabulary.id(vocabulary.eos)] = shards.num_sentences
    counts[vocabulary.id(vocabulary.unk)] = max(0, shards.num_tokens - int(counts.sum()))
    return TrainableModel(stored.build(), head, stored.words, vocabulary, counts)


def characters_of(stored: StoredModel) -> Literal["bytes", "code points"]:
    """What a model spells words by."""
    return "code points" if isinstance(stored.words.characters, DictionaryCharacters) else "bytes"


def _new_vocabulary(settings: LossSettings, shards: Shards) -> tuple[Vocabulary, Tensor]:
    vocabulary, counted = shards.vocabulary(settings.words, settings.min_count)
    if set(vocabulary) <= RESERVED:
        raise InputError(
            f"no word of the text occurs {settings.min_count} times or more; give more text, or lower loss.min_count"
        )
    return vocabulary, torch.from_numpy(counted)


def _new_head(settings: LossSettings, model: BiLMConfig, counts: Tensor) -> Head:
    cutoffs = tuple(cut for cut in settings.cutoffs if cut < len(counts)) if settings.kind == "adaptive" else ()
    head = build_softmax(SoftmaxConfig(len(counts), model.lstm.dim, cutoffs))
    if isinstance(head, Softmax):  # the best guess of somebody who has read nothing: how often words occur
        shares = (counts + 1).double()
        head.bias.data.copy_((shares / shares.sum()).log())
    return head


def _extended(head: Head, vocabulary: Vocabulary, words: list[str]) -> tuple[Head, Vocabulary]:
    """New words begin where unknown ones were, and share their probability."""
    if not isinstance(head, Softmax):
        raise ConfigError(
            "an adaptive softmax has its words in groups and takes no new ones; leave the vocabulary as it is"
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
    """The text's commonest characters."""
    counts: Counter[str] = Counter()
    for word, count in shards.word_counts():
        for character in word:
            counts[character] += count
    common = sorted(counts, key=lambda character: (-counts[character], character))[:MOST_CHARACTERS]
    return DictionaryCharacters((*MARKS, *common), max_characters)
