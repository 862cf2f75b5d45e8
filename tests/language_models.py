"""Random language models for tests, made on the spot."""

from pathlib import Path

import torch
from tiny_models import make_encoder

from polyseme.formats import StoredModel, StoredSoftmax, native
from polyseme.lm import LanguageModel
from polyseme.model.softmax import SoftmaxConfig, build_softmax
from polyseme.text.vocabulary import Vocabulary

WORDS = ("<S>", "</S>", "<UNK>", "the", "of", ".", "bank", "river", "sat", "He", "on")


def make_language_model(cutoffs: tuple[int, ...] = (), **changes) -> LanguageModel:
    """The random model of `make_encoder`, with a head over a few words."""
    encoder = make_encoder(**changes)
    softmax = build_softmax(SoftmaxConfig(len(WORDS), encoder.bilm.config.lstm.dim, cutoffs))
    with torch.no_grad():
        for parameter in softmax.parameters():
            parameter.normal_(std=0.7)
    return LanguageModel(encoder.bilm, softmax, encoder.words, Vocabulary(WORDS))


def store_softmax(model: LanguageModel) -> StoredSoftmax:
    return StoredSoftmax(model.softmax.config, model.softmax.state_dict(), model.vocabulary)


def save_language_model(model: LanguageModel, folder: Path, **settings) -> Path:
    """The model as a folder."""
    stored = StoredModel(model.bilm.config, model.bilm.state_dict(), model.words, "made for a test")
    native.save(stored, folder, softmax=store_softmax(model), **settings)
    return folder
