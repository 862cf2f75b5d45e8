"""Vectors that depend on what they should not are found out."""

import numpy as np
import pytest
import torch
from models import make_encoder
from planted import OneLayer, Planted

import polyseme
from polyseme.analysis.determinism import ODD_SENTENCES, determinism
from polyseme.embedding.interfaces import EmbedSettings
from polyseme.errors import InputError

SENTENCES = [list(words) for words in ODD_SENTENCES]


class Forgetful(Planted):
    """Layer 1 depends on the sentence before, layer 2 on how often it was asked."""

    calls = 0

    def embed(self, sentences):
        self.calls += 1
        before = 0
        for words, layers in zip(sentences, super().embed(sentences), strict=True):
            layers[1] += before
            layers[2] += self.calls
            before = len(words)
            yield layers


def checks(embedder, sentences=SENTENCES):
    return {check.name: check for check in determinism(embedder, sentences).checks}


@pytest.fixture(scope="module")
def elmo():
    encoder = make_encoder()
    result = determinism(encoder, SENTENCES)
    assert encoder.settings == EmbedSettings()  # as it was
    return result


def test_elmo_is_tried_in_every_way(elmo):
    found = {check.name: check for check in elmo.checks}
    exact = ["once more", "reversed", "shuffled", "each alone", "64 words at a time", "4,096 words at a time"]
    for name in (*exact, "1 word at a time", "2 processes"):
        assert max(found[name].differences) < 1e-5, name
        assert len(found[name].differences) == 3
    assert found["once more"].identical
    for name in ("float16 arrays", "fp16 weights"):
        assert max(found[name].differences) > 1e-5
        assert not found[name].identical
    assert max(found["int8 weights"].differences) > max(found["fp16 weights"].differences)


def test_the_largest_number_is_there_to_judge_by(elmo):
    vectors = list(make_encoder().embed(SENTENCES))
    assert elmo.largest == tuple(max(float(np.abs(v[layer]).max(initial=0)) for v in vectors) for layer in range(3))
    assert (elmo.sentences, elmo.words) == (len(SENTENCES), sum(map(len, SENTENCES)))


def test_what_depends_on_company_is_found_out():
    found = checks(Forgetful())
    assert found["once more"].differences[0] == 0
    assert found["once more"].differences[2] == pytest.approx(1)
    assert not found["once more"].identical
    assert found["reversed"].differences[1] > 1
    assert found["each alone"].differences[1] > 1
    assert found["each alone"].differences[0] == 0


def test_what_an_embedder_cannot_do_is_said():
    found = checks(OneLayer())
    assert found["word budgets, workers"].reason == "this embedder has no such settings"
    assert found["another device"].differences == ()


def test_static_vectors_are_the_same_whatever_is_done(tmp_path):
    (tmp_path / "v.txt").write_text("the 0.5 1\nbank 2 -1\n")
    for name, check in checks(polyseme.load(tmp_path / "v.txt", cache=False)).items():
        assert check.reason or check.identical, name


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is such a device")
def test_a_device_that_is_not_there_is_not_tried(elmo):
    assert [check.reason for check in elmo.checks if check.name == "cuda"] == ["there is no such device here"]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_another_device_is_tried():
    assert max(checks(make_encoder())["cuda"].differences) < 1e-3
    assert max(checks(make_encoder().cuda())["cpu"].differences) < 1e-3


@pytest.mark.parametrize("sentences", [[], [[]]])
def test_nothing_to_embed_is_refused(sentences):
    with pytest.raises(InputError, match="nothing to embed"):
        determinism(make_encoder(), sentences)
