"""Our numbers are those that the published toolkits' own code gave for their own tiny models (in ../shared)."""

import json

import numpy as np
import pytest

import polyseme
from polyseme.errors import require


def test_bilm_tf_top_layer_with_carried_state(shared_fixtures):
    folder = shared_fixtures / "bilm-tf"
    streams = [
        [line.split() for line in stream]
        for stream in json.loads((folder / "lm_embeddings_sentences.json").read_text())
    ]
    encoder = polyseme.load(folder)
    expected = [require("h5py", "hdf5").File(folder / f"lm_embeddings_{stream}.hdf5") for stream in range(3)]
    for number, step in enumerate(encoder.embed_streams(zip(*streams, strict=True))):
        for stream, vectors in enumerate(step.vectors):
            halves = expected[stream][str(number)][...]
            np.testing.assert_allclose(vectors[-1], np.concatenate(list(halves), axis=-1), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["", "config.json"])
def test_elmo_for_many_langs_all_layers(shared_fixtures, name):
    folder = shared_fixtures / "elmoformanylangs"
    sentences = json.loads((folder / "sentences.json").read_text("utf-8"))
    expected = np.load(folder / "expected.npz")
    for number, vectors in enumerate(polyseme.load(folder / name).embed(sentences)):
        np.testing.assert_allclose(vectors, expected[str(number)], rtol=0, atol=1e-6)
