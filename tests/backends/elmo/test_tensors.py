"""The GPU's way of embedding, which runs on a CPU too, equals the plain one."""

import numpy as np
import pytest
import torch
from tiny_models import make_encoder

from polyseme.backends.elmo.encoder import TorchStrategy, check_precision
from polyseme.backends.elmo.tensors import TensorStrategy
from polyseme.embedding.interfaces import EmbedSettings
from polyseme.errors import ConfigError

SENTENCES = [["He", "sat", "."], [], ["the", "bank", "of", "the", "river", "."], ["one"], ["x"] * 40]
# The test models' weights are large on purpose: one rounding's difference grows from step to step.
# Values reach 15, and an x86 processor rounds otherwise in the two ways: 1.4e-4 apart were seen there.
CLOSE = 3e-4
KINDS = {
    "usual": {},
    "three layers": {"num_layers": 3},
    "no clips": {"cell_clip": None, "output_clip": None},
    "tight clips": {"cell_clip": 0.3, "output_clip": 0.1},
    "no projection": {"cells": 6, "projected": False},
    "no residual": {"residual": False},
    "both": {"words": ["<S>", "</S>", "<UNK>", "the", "bank"]},
    "backward only": {"directions": ("backward",)},
}


@pytest.fixture(params=KINDS)
def encoder(request, monkeypatch):
    """An encoder that embeds the GPU's way, and the same one that embeds the plain way."""
    mine, plain = (make_encoder(**KINDS[request.param]) for _ in range(2))
    mine._prepared = TensorStrategy(mine.bilm, mine.words, precision="float32", cache_words=4)
    monkeypatch.setattr(mine, "strategy", lambda: mine._prepared)
    monkeypatch.setattr(plain, "strategy", lambda: TorchStrategy(plain))
    return mine, plain


@pytest.mark.parametrize("boundaries", [False, True])
def test_sentences_equal_the_plain_way(encoder, boundaries):
    for side in encoder:
        side.settings = EmbedSettings(boundaries=boundaries)
    for vectors, reference in zip(*(side.embed(SENTENCES) for side in encoder), strict=True):
        assert vectors.shape == reference.shape
        np.testing.assert_allclose(vectors, reference, rtol=0, atol=CLOSE)


def test_words_that_are_looked_up_meanwhile_change_nothing(encoder):
    mine, plain = encoder
    mine.settings = EmbedSettings(word_budget=8)
    stream = mine.embed(2 * SENTENCES)
    for reference in plain.embed(2 * SENTENCES):
        np.testing.assert_allclose(next(stream), reference, rtol=0, atol=CLOSE)
        list(mine.embed([["other", "words", "that", "push", "these", "out"]]))


def test_one_sentence_at_a_time_leaves_nothing_behind(encoder):
    mine, plain = encoder
    for words in 2 * SENTENCES:
        np.testing.assert_allclose(next(mine.embed([words])), next(plain.embed([words])), rtol=0, atol=CLOSE)


def test_documents_equal_the_plain_way(encoder):
    documents = [SENTENCES[:3], [], SENTENCES[3:]]
    for vectors, reference in zip(*(side.embed_documents(documents) for side in encoder), strict=True):
        assert len(vectors) == len(reference)
        for one, other in zip(vectors, reference, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=CLOSE)


def test_context_free_vectors_equal_the_plain_way(encoder):
    mine, plain = encoder
    np.testing.assert_allclose(mine.embed_words(["bank", "x"]), plain.embed_words(["bank", "x"]), rtol=0, atol=CLOSE)


def test_products_held_a_few_words_at_a_time_change_nothing(encoder, monkeypatch):
    mine, _ = encoder
    expected = list(mine.embed(SENTENCES))
    monkeypatch.setattr("polyseme.backends.elmo.stacked_lstm.CHUNK_BYTES", 1)
    for vectors, reference in zip(mine.embed(SENTENCES), expected, strict=True):
        np.testing.assert_allclose(vectors, reference, rtol=0, atol=CLOSE)


def test_too_little_memory_halves_the_budget(encoder, monkeypatch):
    mine, _ = encoder
    expected = list(mine.embed(SENTENCES))
    start = mine._prepared._start_batch

    def forgetful(rows, table, settings, sentences):
        if len(sentences) > 1:
            raise torch.OutOfMemoryError("too much")
        return start(rows, table, settings, sentences)

    monkeypatch.setattr(mine._prepared, "_start_batch", forgetful)
    for vectors, reference in zip(mine.embed(SENTENCES), expected, strict=True):
        np.testing.assert_allclose(vectors, reference, rtol=0, atol=CLOSE)
    assert mine.word_budget < 1024


@pytest.mark.parametrize("precision", ["tf32", "float16", "bfloat16"])
def test_a_precision_of_the_gpu_is_refused_on_a_cpu(precision):
    with pytest.raises(ConfigError, match=f"{precision!r} is for a GPU"):
        check_precision(precision, "cpu")


def test_int8_without_compiled_kernels_says_what_to_do(monkeypatch):
    monkeypatch.setattr("polyseme.kernels.native.library", lambda: None)
    encoder = make_encoder()
    encoder.settings = EmbedSettings(precision="int8")
    with pytest.raises(ConfigError, match="C compiler"):
        list(encoder.embed(SENTENCES))
