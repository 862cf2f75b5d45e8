"""The same promises on a GPU. CI has none: run by hand, figures in docs/experiments.md."""

import numpy as np
import pytest
import torch
from models import make_encoder

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
