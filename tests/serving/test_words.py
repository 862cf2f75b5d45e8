"""Vectors over HTTP are the library's."""

import base64
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from server_fixture import SENTENCES, make_catalogue, running

from polyseme.embedding.binary import unpack
from polyseme.embedding.layers import Mix, choose

TOLERANCE = 1e-6  # of the core, for any two batches


@pytest.fixture(scope="module")
def server():
    with running(make_catalogue()) as it:
        yield it


def library(server, sentences, model="small"):
    return list(server.service.catalogue.find(model).encoder.embed(sentences))


def as_arrays(answer, layers=3, dim=12):
    return [
        np.array(each["vectors"], np.float32).reshape(layers, len(each["words"]), dim) for each in answer["sentences"]
    ]


def assert_alike(found, expected, tolerance=TOLERANCE):
    assert [each.shape for each in found] == [each.shape for each in expected]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=tolerance)


@pytest.mark.parametrize("model", ["small", "other", "vectors"])
def test_json_holds_the_vectors_of_the_library(server, model):
    encoder = server.service.catalogue.find(model).encoder
    status, answer = server.post("/v1/words", {"model": model, "sentences": SENTENCES})
    assert (status, answer["model"]) == (200, model)
    assert [each["words"] for each in answer["sentences"]] == SENTENCES
    assert_alike(as_arrays(answer, encoder.num_layers, encoder.dim), library(server, SENTENCES, model))


def test_raw_numbers_are_the_same_by_format_and_by_accept(server):
    expected = library(server, SENTENCES)
    status, body = server.post("/v1/words", {"sentences": SENTENCES, "format": "float32"})
    assert status == 200
    assert_alike(unpack(body).vectors, expected)
    accepted = server.post("/v1/words", {"sentences": SENTENCES}, {"Accept": "application/octet-stream"})
    assert accepted == (200, body)
    half = unpack(server.post("/v1/words", {"sentences": SENTENCES, "format": "float16"})[1])
    assert {each.dtype for each in half.vectors} == {np.dtype("<f2")}
    assert_alike(half.vectors, [each.astype(np.float16) for each in expected], 1e-3)


@pytest.mark.parametrize(
    ("layers", "choice"),
    [("mean", "average"), (1, 1), ({"weights": [0.1, 0.2, 0.7], "gamma": 2.0}, Mix((0.1, 0.2, 0.7), 2.0))],
)
def test_layers_are_chosen_and_mixed_as_the_library_does(server, layers, choice):
    _, answer = server.post("/v1/words", {"sentences": SENTENCES, "layers": layers})
    assert_alike(as_arrays(answer, layers=1), [choose(each, choice)[None] for each in library(server, SENTENCES)], 1e-5)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("weights", "gamma", "form", "message"),
    [
        ([1e29] * 3, 1e29, "json", "smaller weights"),
        ([1e29, -1e29, 0], 1e29, "float32", "smaller weights"),
        ([1e7] * 3, 1, "float16", "ask for float32"),
    ],
)
def test_what_overflows_is_refused_in_one_sentence(server, weights, gamma, form, message):
    asked = {"text": "the bank", "layers": {"weights": weights, "gamma": gamma}, "format": form}
    status, answer = server.post("/v1/words", asked)
    assert (status, answer["error"]["type"]) == (422, "invalid")
    assert message in answer["error"]["message"]


def test_some_layers_come_in_the_order_asked_for(server):
    _, answer = server.post("/v1/words", {"sentences": SENTENCES, "layers": [2, 0]})
    assert_alike(as_arrays(answer, layers=2), [each[[2, 0]] for each in library(server, SENTENCES)])


def test_raw_text_is_split_and_every_word_has_its_place(server):
    text = "She paid at the bank 🙂. It wasn't open, said 日本."
    _, answer = server.post("/v1/words", {"text": text})
    first, second = answer["sentences"]
    assert second["words"][:3] == ["It", "was", "n't"]
    for each in (first, second):
        assert [text[begin:end] for begin, end in each["spans"]] == each["words"]
    assert_alike(as_arrays(answer), library(server, [first["words"], second["words"]]))
    _, body = server.post("/v1/words", {"text": text, "format": "float32"})
    assert unpack(body).header["words"] == [first["words"], second["words"]]


def test_text_without_words_has_no_sentences(server):
    assert server.post("/v1/words", {"text": " \n "}) == (200, {"model": "small", "sentences": []})
    assert unpack(server.post("/v1/words", {"text": "", "format": "float32"})[1]).vectors == []


def test_company_changes_nothing(server):
    words = ["the", "bank", "of", "naïve", "river", "x" * 60, "He"]
    generator = np.random.default_rng(0)
    requests = [
        [[words[number] for number in generator.integers(0, len(words), generator.integers(1, 40))] for _ in range(3)]
        for _ in range(60)
    ]

    def ask(number):
        model = ("small", "other")[number % 2]
        status, body = server.post("/v1/words", {"model": model, "sentences": requests[number], "format": "float32"})
        assert status == 200
        return model, unpack(body).vectors

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(ask, range(len(requests))))
    for sentences, (model, found) in zip(requests, answers, strict=True):
        alone = [vectors for words in sentences for vectors in library(server, [words], model)]
        assert_alike(found, alone)


def test_openai_clients_get_one_unit_vector_a_text(server):
    texts = ["He sat on the bank. It was the river's.", "bank"]
    status, answer = server.post("/v1/embeddings", {"model": "small", "input": texts, "user": "somebody"})
    assert status == 200
    assert [each["index"] for each in answer["data"]] == [0, 1]
    vectors = np.array([each["embedding"] for each in answer["data"]])
    alone = choose(library(server, [["bank"]])[0], "average")[0]
    np.testing.assert_allclose(vectors[1], alone / np.linalg.norm(alone), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert answer["usage"] == {"prompt_tokens": 13, "total_tokens": 13}
    _, packed = server.post("/v1/embeddings", {"input": "bank", "encoding_format": "base64"})
    decoded = np.frombuffer(base64.b64decode(packed["data"][0]["embedding"]), "<f4")
    np.testing.assert_allclose(decoded, vectors[1], atol=1e-6)
