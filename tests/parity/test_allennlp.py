"""Our numbers are AllenNLP's, on tiny random models in the published layout (see fixtures/README.md)."""

import json

import numpy as np
import pytest

import polyseme
from polyseme.text.word_encoder import published_ids

# Random weights multiply rounding errors: in double precision both agree to 1e-14.
TOLERANCE = 1e-5
MODELS = ["bilm-relu", "bilm-tanh"]  # clips that bite; no clips, tanh, two highway layers


@pytest.fixture(params=MODELS)
def folder(request, fixtures):
    return fixtures / request.param


@pytest.fixture
def batches(fixtures):
    return json.loads((fixtures / "batches.json").read_text("utf-8"))


@pytest.fixture
def expected(folder):
    return np.load(folder / "expected.npz")


def test_every_layer_agrees_with_fresh_state(folder, batches, expected):
    encoder = polyseme.load(folder, boundaries=True)
    for i, batch in enumerate(batches):
        for j, vectors in enumerate(encoder.embed(batch)):
            np.testing.assert_allclose(vectors, expected[f"fresh.{i}.{j}"], atol=TOLERANCE)


def test_every_layer_agrees_with_carried_state(folder, batches, expected):
    encoder = polyseme.load(folder, boundaries=True)
    for i, step in enumerate(encoder.embed_streams(batches)):
        for j, vectors in enumerate(step.vectors):
            np.testing.assert_allclose(vectors, expected[f"carried.{i}.{j}"], atol=TOLERANCE)


@pytest.mark.parametrize(("key", "norm"), [("mix", "none"), ("mix.norm", "allennlp")])
def test_given_mix_weights_agree(folder, batches, expected, key, norm):
    layer = polyseme.ElmoLayer.from_pretrained(folder, scores=[0.5, -1.0, 2.0], layer_norm=norm).eval()
    vectors, mask = layer(batches[0])
    np.testing.assert_allclose(vectors.numpy(), expected[key], atol=TOLERANCE)
    np.testing.assert_array_equal(mask.numpy(), expected["mask"])


def test_character_ids_agree(batches, expected):
    np.testing.assert_array_equal(published_ids(batches[2]), expected["ids"])
