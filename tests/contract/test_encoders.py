"""What every encoder promises, whatever its architecture."""

import threading

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from static_models import make_static
from tiny_models import make_encoder
from transformer_models import KINDS as TRANSFORMERS
from transformer_models import make_transformer

import polyseme
from polyseme.backends.elmo.encoder import ElmoEncoder
from polyseme.backends.static import StaticEncoder
from polyseme.embedding.encoder import Encoder
from polyseme.embedding.interfaces import EmbedSettings
from polyseme.errors import InputError
from polyseme.model import CharCnnConfig, join

# Two ways of computing the same round differently, and in these models, whose weights are large on purpose, one
# rounding's difference grows from step to step.
CLOSE = 2e-5
WORDS = ["<S>", "</S>", "<UNK>", "the", "bank", "of", "river", "."]
KINDS = {
    "usual": dict,
    "three layers": lambda: {"num_layers": 3},
    "one layer": lambda: {"num_layers": 1},
    "no clips": lambda: {"cell_clip": None, "output_clip": None},
    "tight clips": lambda: {"cell_clip": 0.3, "output_clip": 0.1},
    "no projection": lambda: {"cells": 6, "projected": False},
    "no residual": lambda: {"residual": False},
    "tanh, no highway": lambda: {
        "characters": CharCnnConfig(dim=4, filters=((1, 4), (2, 6)), activation="tanh", num_highway=0)
    },
    "word ids": lambda: {"words": WORDS, "characters": None},
    "both": lambda: {"words": WORDS},
    "forward only": lambda: {"directions": ("forward",)},
    "backward only": lambda: {"directions": ("backward",)},
}


def build(kind: str) -> Encoder:
    if kind == "static":
        return make_static(trainable=True)
    if kind in TRANSFORMERS:
        return make_transformer(kind)
    if kind == "joined":
        forward, backward = (make_encoder(seed, directions=(way,)) for seed, way in enumerate(("forward", "backward")))
        return ElmoEncoder(join(forward.bilm, backward.bilm), forward.words)
    return make_encoder(**KINDS[kind]())


@pytest.fixture(params=[*KINDS, "joined", *TRANSFORMERS, "static"], scope="module")
def any_encoder(request) -> Encoder:
    return build(request.param)


@pytest.fixture(params=[*KINDS, "joined"], scope="module")
def any_elmo(request) -> Encoder:
    return build(request.param)


SENTENCES = [
    ["He", "sat", "on", "the", "bank", "of", "the", "river", "."],
    ["the"],
    [],
    ["", "a" * 44_000, "\x00", "\ud800", "👩‍👩‍👧‍👦", "<S>", "</S>", "<UNK>", "/", "."],
    ["the", "bank"] * 40,
    ["Straße", "日本語", "שלום", "é"],
]


def test_shapes_are_layers_words_dim(any_encoder):
    for words, vectors in zip(SENTENCES, any_encoder.embed(SENTENCES), strict=True):
        assert vectors.shape == (any_encoder.num_layers, len(words), any_encoder.dim)
        assert vectors.dtype == np.float32
        assert np.isfinite(vectors).all()


def test_a_sentence_alone_equals_itself_in_any_company(any_encoder):
    together = list(any_encoder.embed(SENTENCES))
    for budget in (1, 30, 10_000):
        any_encoder.settings = EmbedSettings(word_budget=budget)
        for order in (SENTENCES, SENTENCES[::-1]):
            for words, vectors in zip(order, any_encoder.embed(order), strict=True):
                np.testing.assert_allclose(vectors, together[SENTENCES.index(words)], rtol=0, atol=CLOSE)


def test_forward_half_ignores_what_follows_and_backward_half_what_precedes(any_elmo):
    words = ["He", "sat", "on", "the", "bank", "of", "the", "river", "."]
    changed = list(words)
    changed[4] = "shore"
    before, after = any_elmo.embed([words, changed])
    directions = any_elmo.bilm.config.directions
    for half, direction in enumerate(directions):
        columns = slice(half * 6, half * 6 + 6)
        untouched, touched = (slice(0, 4), slice(5, None)) if direction == "forward" else (slice(5, None), slice(0, 4))
        np.testing.assert_array_equal(before[:, untouched, columns], after[:, untouched, columns])
        if "shore" not in WORDS and any_elmo.num_layers > 1:
            assert np.abs(before[1:, touched, columns] - after[1:, touched, columns]).max() > 1e-4


def test_layer_zero_knows_no_context(any_elmo):
    first, second = any_elmo.embed([["the", "bank"], ["bank", "of", "the", "river"]])
    np.testing.assert_array_equal(first[0, 1], second[0, 0])


def test_boundaries_are_first_and_last_when_asked(any_encoder):
    if isinstance(any_encoder, StaticEncoder):
        pytest.skip("static vectors have no boundary words, and refuse the setting")
    plain = list(any_encoder.embed(SENTENCES))
    any_encoder.settings = EmbedSettings(boundaries=True)
    kept = list(any_encoder.embed(SENTENCES))
    any_encoder.settings = EmbedSettings()
    for without, having in zip(plain, kept, strict=True):
        np.testing.assert_array_equal(having[:, 1:-1], without)


def test_half_precision_arrays(any_encoder):
    full = list(any_encoder.embed(SENTENCES))
    any_encoder.settings = EmbedSettings(dtype="float16")
    for half, vectors in zip(any_encoder.embed(SENTENCES), full, strict=True):
        assert half.dtype == np.float16
        np.testing.assert_array_equal(half, vectors.astype(np.float16))
    any_encoder.settings = EmbedSettings()


def test_nothing_in_gives_nothing_out(any_encoder):
    assert list(any_encoder.embed([])) == []


def test_padding_is_zero_and_masked_in_every_layer(any_encoder):
    layers, mask = any_encoder(any_encoder.collate([["the"], ["the", "bank", "."]]))
    assert mask.tolist() == [[True, False, False], [True, True, True]]
    assert not layers[0, :, 1:].any()


def test_gradients_reach_every_parameter(any_encoder):
    any_encoder.zero_grad()
    layers, _ = any_encoder(any_encoder.collate([["the", "bank", "of", "the", "river"], ["unseen", "."]]))
    layers.pow(3).sum().backward()
    assert [name for name, p in any_encoder.named_parameters() if p.grad is None or not p.grad.abs().any()] == []


def test_a_document_in_one_piece_equals_its_sentences_with_state_carried_forward(any_elmo):
    document = [["He", "sat", "."], [], ["the", "bank", "of", "the", "river", "."]]
    (vectors,) = any_elmo.embed_documents([document])
    steps = [step.vectors[0] for step in any_elmo.embed_streams([words] for words in document)]
    if "forward" in any_elmo.bilm.config.directions:
        for piece, step in zip(vectors, steps, strict=True):
            np.testing.assert_allclose(piece[..., :6], step[..., :6], rtol=0, atol=CLOSE)


def test_documents_do_not_know_each_other(any_elmo):
    documents = [[["He", "sat", "."], ["the", "bank"]], [["of", "the", "river", "."]], []]
    together = list(any_elmo.embed_documents(documents))
    for document, vectors in zip(documents, together, strict=True):
        (alone,) = any_elmo.embed_documents([document])
        assert len(alone) == len(document)
        for one, other in zip(alone, vectors, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=CLOSE)


def test_a_document_of_one_sentence_is_a_sentence(any_elmo):
    (vectors,) = any_elmo.embed_documents([[SENTENCES[0]]])
    np.testing.assert_allclose(vectors[0], next(any_elmo.embed([SENTENCES[0]])), rtol=0, atol=CLOSE)


def test_two_threads_on_one_model_agree(any_encoder):
    expected = list(any_encoder.embed(SENTENCES))
    results = {}

    def work(number):
        results[number] = [list(any_encoder.embed(SENTENCES)) for _ in range(3)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for runs in results.values():
        for run in runs:
            for vectors, reference in zip(run, expected, strict=True):
                np.testing.assert_array_equal(vectors, reference)


def test_streams_that_grow_and_shrink_keep_their_own_state(any_elmo):
    a, b, c = ["He", "sat"], ["the", "bank", "."], ["of"]
    together = list(any_elmo.embed_streams([[a, b], [c], [b, a, c]]))
    first = list(any_elmo.embed_streams([[a], [c], [b]]))
    second = list(any_elmo.embed_streams([[b], [a]]))
    third = next(any_elmo.embed([c]))
    np.testing.assert_allclose(together[2].vectors[0], first[2].vectors[0], rtol=0, atol=CLOSE)
    np.testing.assert_allclose(together[2].vectors[1], second[1].vectors[0], rtol=0, atol=CLOSE)
    np.testing.assert_allclose(together[2].vectors[2], third, rtol=0, atol=CLOSE)


def test_state_can_be_kept_and_gone_on_with(any_elmo):
    batches = [[["He", "sat"]], [["the", "bank", "."]], [["of"]]]
    whole = list(any_elmo.embed_streams(batches))
    begun = list(any_elmo.embed_streams(batches[:1]))
    rest = list(any_elmo.embed_streams(batches[1:], begun[-1].state))
    np.testing.assert_array_equal(whole[-1].vectors[0], rest[-1].vectors[0])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.text(max_size=30), max_size=8), max_size=6))
@pytest.mark.parametrize("kind", ["usual", *TRANSFORMERS])
def test_any_strings_can_be_words(kind, sentences):
    encoder = build(kind)
    for words, vectors in zip(sentences, encoder.embed(sentences), strict=True):
        assert vectors.shape == (encoder.num_layers, len(words), encoder.dim)
        assert np.isfinite(vectors).all()


def test_a_very_long_sentence_equals_one_pass():
    encoder = make_encoder(num_layers=1)
    words = [f"w{number % 97}" for number in range(20_000)]  # five stretches of the loop's, and some
    (vectors,) = encoder.embed([words])
    assert vectors.shape == (2, 20_000, 12)
    reference = make_encoder(num_layers=1)
    with torch.inference_mode(), pytest.MonkeyPatch.context() as patch:
        patch.setattr("polyseme.kernels.reference.CHUNK_WORDS", 10**9)
        layers, _ = reference(reference.collate([words]))
    np.testing.assert_allclose(
        vectors, layers[0].numpy(), rtol=0, atol=5 * CLOSE
    )  # two ways of computing, large weights


@pytest.mark.parametrize("name", ["tiny", "bilm-relu", "bilm-tanh"])
def test_words_encoded_a_few_at_a_time_are_the_same(fixtures, name):
    encoder = polyseme.load(fixtures / name)
    words = [f"{chr(97 + number % 26) * (number % 11)}{number}" for number in range(300)]
    expected = encoder.embed_words(words)
    for step in (1, 7, 50):
        pieces = [encoder.embed_words(words[first : first + step]) for first in range(0, len(words), step)]
        np.testing.assert_allclose(np.concatenate(pieces), expected, rtol=0, atol=CLOSE)


@pytest.mark.parametrize(
    "wrong", [lambda e: e.embed(None), lambda e: e.embed_documents([None]), lambda e: e.collate("words")]
)
def test_what_is_no_list_is_refused(encoder, wrong):
    with pytest.raises(InputError):
        list(wrong(encoder))


def test_a_state_of_another_model_is_refused(encoder):
    (step,) = make_encoder(cells=9).embed_streams([[["He"]]])
    with pytest.raises(InputError, match="another shape"):
        list(encoder.embed_streams([[["He"]]], step.state))


def test_a_fingerprint_tells_words_and_weights_apart():
    words = ["<S>", "</S>", "<UNK>", "a", "b"]
    prints = [make_encoder(words=words).fingerprint(), make_encoder(words=[*words[:3], "b", "a"]).fingerprint()]
    prints += [make_encoder().fingerprint(), make_encoder(seed=1).fingerprint(), make_encoder().half().fingerprint()]
    assert len(set(prints)) == 5
    assert make_encoder().fingerprint() == prints[2]


def test_autocast_around_it_changes_nothing(encoder):
    expected = next(encoder.embed([["He", "sat"]]))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        np.testing.assert_array_equal(next(encoder.embed([["He", "sat"]])), expected)
