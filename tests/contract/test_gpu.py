"""The same promises on a GPU. CI has none: run by hand, figures in docs/experiments.md."""

import numpy as np
import pytest
import torch
from tiny_models import make_encoder
from transformer_models import KINDS, make_transformer

import polyseme
from polyseme.embedding.interfaces import EmbedSettings

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]
SENTENCES = [[f"w{number % 23}" for number in range(length)] for length in (1, 9, 30, 0, 4, 64)]


def test_a_gpu_gives_the_numbers_of_the_cpu():
    encoder = make_encoder(spread=1.0)
    expected = list(encoder.embed(SENTENCES))
    for vectors, reference in zip(encoder.to("cuda").embed(SENTENCES), expected, strict=True):
        np.testing.assert_allclose(vectors, reference, rtol=0, atol=1e-5)


def test_a_sentence_alone_equals_itself_in_company_on_a_gpu():
    encoder = make_encoder(spread=1.0).to("cuda")
    together = list(encoder.embed(SENTENCES))
    encoder.settings = EmbedSettings(word_budget=8)
    for vectors, reference in zip(encoder.embed(SENTENCES), together, strict=True):
        np.testing.assert_allclose(vectors, reference, rtol=0, atol=1e-5)


def test_state_and_gradients_live_on_the_gpu():
    encoder = make_encoder().to("cuda")
    steps = list(encoder.embed_streams([[["a"]], [["b"], ["c"]]]))
    assert steps[-1].state.hidden.is_cuda
    layer = polyseme.ElmoLayer(encoder, trainable=True)
    layer = layer.to("cuda")
    vectors, mask = layer(SENTENCES)
    vectors.square().sum().backward()
    assert vectors.is_cuda
    assert mask.is_cuda
    assert layer.mixes[0].gamma.grad.is_cuda


@pytest.mark.parametrize(("precision", "near"), [("tf32", 5e-3), ("bfloat16", 5e-2), ("float16", 5e-3)])
def test_shorter_numbers_stay_near_the_exact_ones(precision, near):
    encoder = make_encoder(spread=1.0)
    expected = list(encoder.embed(SENTENCES))
    encoder.settings = EmbedSettings(precision=precision)
    for vectors, reference in zip(encoder.to("cuda").embed(SENTENCES), expected, strict=True):
        np.testing.assert_allclose(vectors, reference, rtol=0, atol=near)


def test_what_is_recorded_for_short_sentences_is_what_is_computed_for_them():
    encoder = make_encoder(spread=1.0).to("cuda")
    expected = list(encoder.embed(SENTENCES))
    for words, reference in zip(SENTENCES, expected, strict=True):
        for _ in range(4):  # computed, recorded and played, played again
            np.testing.assert_allclose(next(encoder.embed([words])), reference, rtol=0, atol=1e-5)


def test_boundaries_and_documents_on_a_gpu():
    encoder = make_encoder(spread=1.0)
    encoder.settings = EmbedSettings(boundaries=True)
    documents = [SENTENCES[:2], SENTENCES[2:]]
    expected, running = list(encoder.embed(SENTENCES)), list(encoder.embed_documents(documents))
    encoder.to("cuda")
    for vectors, reference in zip(encoder.embed(SENTENCES), expected, strict=True):
        np.testing.assert_allclose(vectors, reference, rtol=0, atol=1e-5)
    for document, reference in zip(encoder.embed_documents(documents), running, strict=True):
        np.testing.assert_allclose(np.concatenate(document, 1), np.concatenate(reference, 1), rtol=0, atol=1e-5)


def test_too_little_memory_halves_the_budget_and_changes_nothing():
    encoder = make_encoder(spread=1.0).to("cuda")
    expected = list(encoder.embed(SENTENCES))
    hog = torch.empty(int(0.985 * torch.cuda.mem_get_info()[0]), dtype=torch.uint8, device="cuda")
    big = make_encoder(spread=1.0, cells=2000)
    big.settings = EmbedSettings(word_budget=4_000_000)
    text = [["a", "b", "c", "d"]] * 400_000
    assert sum(1 for _ in big.to("cuda").embed(text)) == len(text)
    assert big.word_budget < 4_000_000
    del hog
    for vectors, reference in zip(encoder.embed(SENTENCES), expected, strict=True):
        np.testing.assert_allclose(vectors, reference, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_transformer_on_a_gpu_gives_the_numbers_of_the_cpu_and_learns_there(kind):
    encoder = make_transformer(kind)
    expected = list(encoder.embed(SENTENCES))
    for vectors, reference in zip(encoder.to("cuda").embed(SENTENCES), expected, strict=True):
        np.testing.assert_allclose(vectors, reference, rtol=0, atol=1e-5)
    vectors, mask = polyseme.ElmoLayer(encoder, trainable=True).to("cuda")(SENTENCES)
    vectors.square().sum().backward()
    assert mask.is_cuda
    assert all(parameter.grad.is_cuda for parameter in encoder.parameters())
