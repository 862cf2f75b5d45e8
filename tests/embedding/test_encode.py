"""One vector a text: `encode` and `similarity`, as users of sentence-transformers type them."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from static_models import make_static
from tiny_models import make_encoder
from transformer_models import make_transformer

from polyseme.embedding.interfaces import EmbedSettings
from polyseme.embedding.layers import Mix, choose, pool
from polyseme.errors import ConfigError, InputError

TEXTS = ["He sat on the bank. It was cold.", "the bank", "", "😀 naïve"]


@pytest.fixture(params=["elmo", "transformer", "static"], scope="module")
def encoder(request):
    make = {"elmo": make_encoder, "transformer": lambda: make_transformer("BERT"), "static": make_static}
    return make[request.param]()


def test_a_list_of_texts_gives_a_matrix(encoder):
    vectors = encoder.encode(TEXTS)
    assert vectors.shape == (4, encoder.dim)
    assert vectors.dtype == np.float32
    assert not vectors[2].any()


def test_a_single_string_gives_one_vector(encoder):
    np.testing.assert_array_equal(encoder.encode(TEXTS[1]), encoder.encode([TEXTS[1]])[0])


def test_no_texts_give_an_empty_matrix(encoder):
    assert encoder.encode([]).shape == (0, encoder.dim)


def test_a_string_equals_its_words(encoder):
    np.testing.assert_array_equal(encoder.encode(["the bank"]), encoder.encode([["the", "bank"]]))


@pytest.mark.parametrize("how", ["mean", "max"])
@pytest.mark.parametrize("layers", ["average", "top", 0])
def test_one_sentence_is_the_pooled_choice_of_its_layers(encoder, how, layers):
    words = ["the", "bank", "of", "the", "river"]
    expected = pool(choose(next(encoder.embed([words])), layers), how)
    np.testing.assert_array_equal(encoder.encode([words], pool=how, layers=layers)[0], expected)


def test_the_sentences_of_a_text_are_embedded_one_by_one_and_pooled_together(encoder):
    first, second = encoder.embed([["He", "sat", "."], ["It", "was", "cold", "."]])
    expected = pool(choose(np.concatenate([first, second], axis=1), "average"), "mean")
    np.testing.assert_array_equal(encoder.encode("He sat. It was cold."), expected)


def test_normalized_vectors_have_length_one_and_zeros_stay_zeros(encoder):
    lengths = np.linalg.norm(encoder.encode(["the bank", ""], normalize=True), axis=1)
    np.testing.assert_allclose(lengths, [1, 0], atol=1e-6)


def test_a_mix_of_layers_is_taken():
    encoder = make_encoder()
    mix = Mix((0.2, 0.3, 0.5))
    expected = pool(choose(next(encoder.embed([["the"]])), mix), "mean")
    np.testing.assert_array_equal(encoder.encode([["the"]], layers=mix)[0], expected)


def test_similarity_of_texts_is_that_of_their_vectors(encoder):
    a, b = ["the bank", "He sat."], ["the bank", "naïve", "of"]
    found = encoder.similarity(a, b)
    assert found.shape == (2, 3)
    np.testing.assert_array_equal(found, encoder.similarity(encoder.encode(a), encoder.encode(b)))
    np.testing.assert_allclose(found[0, 0], 1, atol=1e-6)
    assert encoder.similarity("the bank", "He sat.").shape == (1, 1)


def test_arrays_and_generators_of_strings_are_texts():
    encoder = make_encoder()
    expected = encoder.encode(TEXTS)
    np.testing.assert_array_equal(encoder.encode(np.array(TEXTS)), expected)
    np.testing.assert_array_equal(encoder.encode(text for text in TEXTS), expected)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["fine", None], "text 1 should be a string or a list of words, not NoneType"),
        ([3.5], "text 0 should be a string"),
        ([float("nan")], "text 0 should be a string"),
        ([["a", 3]], "text 0, word 1 should be a string, not int"),
        ([{"text": "a"}], "text 0 should be a string or a list of words, not dict"),
        ({"a": 1}, "texts should be strings"),
        (b"abc", "texts should be strings"),
        (np.array("one"), "texts should be strings"),
        (7, "texts should be strings"),
        (None, "texts should be strings"),
    ],
)
def test_what_is_no_text_is_refused_by_its_number(texts, message):
    with pytest.raises(InputError, match=message):
        make_encoder().encode(texts)


def test_digits_are_texts_and_no_vectors():
    encoder = make_encoder()
    assert encoder.similarity(["1", "2"], [["3"]]).shape == (2, 1)


def test_vectors_may_be_lists_or_tensors():
    encoder = make_encoder()
    vectors = encoder.encode(["the bank", "He sat."])
    expected = encoder.similarity(vectors, vectors)
    for same in (vectors.tolist(), list(vectors), torch.from_numpy(vectors), vectors.astype(np.float64)):
        np.testing.assert_allclose(encoder.similarity(same, vectors), expected, atol=1e-6)
    assert encoder.similarity(vectors[0], vectors).shape == (1, 2)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.ones((2, 7), np.float32), "of one dimension"),
        (np.ones((1, 2, 12), np.float32), "of one dimension"),
        (np.full((1, 12), np.nan, np.float32), "NaN or infinity"),
    ],
)
def test_vectors_without_a_cosine_are_refused(vectors, message):
    with pytest.raises(InputError, match=message):
        make_encoder().similarity(vectors, ["a"])


@pytest.mark.parametrize(
    "wrong", [{"pool": "median"}, {"layers": [0, 1]}, {"layers": "all"}, {"layers": "topp"}, {"layers": 9}]
)
def test_a_wrong_choice_is_refused(wrong):
    with pytest.raises(ConfigError):
        make_encoder().encode(["a"], **wrong)


def test_boundary_words_are_no_words_of_a_text():
    encoder = make_encoder()
    encoder.settings = EmbedSettings(boundaries=True)
    with pytest.raises(ConfigError, match="boundaries"):
        encoder.encode(["a"])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(max_size=80), max_size=5))
def test_any_strings_can_be_texts(texts):
    encoder = make_encoder()
    vectors = encoder.encode(texts)
    assert vectors.shape == (len(texts), encoder.dim)
    assert np.isfinite(vectors).all()
