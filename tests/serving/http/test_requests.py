"""Requests that are wrong, or mean harm: one sentence each, never a fault of the server, and the next one is fine."""

import json
import socket

import pytest
from server_fixture import make_catalogue, raw_request, running, until

from polyseme.serving.http.openapi import EXAMPLES

FINE = {"sentences": [["the", "bank"]], "layers": 0}


@pytest.fixture(scope="module")
def server():
    with running(
        make_catalogue(), words=50, sentence_words=20, word_characters=100, sentences=10, body_bytes=4000
    ) as it:
        yield it


@pytest.fixture(scope="module")
def expected(server):
    return server.post("/v1/words", FINE)


WRONG = [
    ("/v1/words", {}, 422, []),
    ("/v1/words", {"text": "a", "sentences": []}, 422, []),
    ("/v1/words", {"sentences": "the bank"}, 422, ["sentences"]),
    ("/v1/words", {"sentences": [["the"], "bank"]}, 422, ["sentences", 1]),
    ("/v1/words", {"sentences": [["the"], ["bank", None]]}, 422, ["sentences", 1, 1]),
    ("/v1/words", {"text": 7}, 422, ["text"]),
    ("/v1/words", {"text": "a", "surprise": 1}, 422, ["surprise"]),
    ("/v1/words", {"text": "a", "layers": 3}, 422, ["layers"]),
    ("/v1/words", {"text": "a", "layers": True}, 422, ["layers"]),
    ("/v1/words", {"text": "a", "layers": []}, 422, ["layers"]),
    ("/v1/words", {"text": "a", "layers": [0] * 1000}, 422, ["layers"]),
    ("/v1/words", {"text": "a", "layers": {"weights": [1, 2]}}, 422, ["layers"]),
    ("/v1/words", {"text": "a", "layers": {"weights": [1, 2, "x"]}}, 422, ["layers", "weights"]),
    ("/v1/words", {"text": "a", "format": "float64"}, 422, ["format"]),
    ("/v1/words", {"text": "a", "model": "nobody"}, 404, ["model"]),
    ("/v1/words", {"sentences": [["a"] * 21]}, 413, ["sentences", 0]),
    ("/v1/words", {"sentences": [["a"], ["a", "b" * 101]]}, 413, ["sentences", 1, 1]),
    ("/v1/words", {"sentences": [["a"] * 20] * 3}, 413, ["sentences", 2]),
    ("/v1/words", {"sentences": [[]] * 11}, 413, ["sentences"]),
    ("/v1/words", {"text": "a " * 30}, 413, ["text"]),
    ("/v1/words", {"text": "One two. " * 18}, 413, ["text"]),
    ("/v1/embeddings", {"input": []}, 422, ["input"]),
    ("/v1/embeddings", {"input": [[1, 2]]}, 422, ["input", 0]),
    ("/v1/embeddings", {"input": ["a"] * 11}, 413, ["input"]),
    ("/v1/embeddings", {"input": ["a " * 18] * 3}, 413, ["input", 2]),
    ("/v1/embeddings", {"input": ["One two. " * 5, "One two. " * 6]}, 413, ["input", 1]),
    ("/v1/embeddings", {"input": ["a", " "]}, 422, ["input", 1]),
    ("/v1/embeddings", {"input": "a", "dimensions": 5}, 422, ["dimensions"]),
    ("/v1/embeddings", {"input": "a", "encoding_format": "int8"}, 422, ["encoding_format"]),
    ("/v1/neighbours", {"sentence": "a", "position": 1}, 422, ["position"]),
    ("/v1/neighbours", {"sentence": "a", "position": -1}, 422, ["position"]),
    ("/v1/neighbours", {"sentence": "", "position": 0}, 422, ["sentence"]),
    ("/v1/neighbours", {"sentence": ["a", 2], "position": 0}, 422, ["sentence"]),
    ("/v1/neighbours", {"sentence": "a", "position": 0, "top": 0}, 422, ["top"]),
    ("/v1/neighbours", {"sentence": "a", "position": 0, "layer": "all"}, 422, ["layer"]),
    ("/v1/neighbours", {"sentence": "a", "position": 0, "layer": 9}, 422, ["layer"]),
    ("/v1/compare", {"sentences": ["a"], "word": "a"}, 422, ["sentences"]),
    ("/v1/compare", {"sentences": ["a", 7], "word": "a"}, 422, ["sentences", 1]),
    ("/v1/compare", {"sentences": ["a", "b"], "word": "a"}, 422, ["sentences", 1]),
    ("/v1/compare", {"sentences": ["a", "b"]}, 422, []),
    ("/v1/compare", {"sentences": ["a", "b"], "positions": [0]}, 422, ["positions"]),
    ("/v1/compare", {"sentences": ["a", "b"], "positions": [0, 1]}, 422, ["positions", 1]),
    ("/v1/predict", {"sentence": "a"}, 422, ["position"]),
    ("/v1/predict", {"sentence": "a", "position": 10**30}, 422, ["position"]),
]


@pytest.mark.parametrize(("path", "asked", "status", "where"), WRONG)
def test_what_is_wrong_is_told_with_its_place(server, path, asked, status, where):
    found, answer = server.post(path, asked)
    error = answer["error"]
    assert (found, error.get("where", [])) == (status, where)
    assert error["message"]
    assert "\n" not in error["message"]


def test_a_long_key_is_not_repeated(server):
    status, answer = server.post("/v1/words", {"text": "a", "k" * 3000: 1})
    assert (status, answer["error"]["where"]) == (422, ["k" * 40])
    assert len(answer["error"]["message"]) < 200


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 422),
        (b"null", 422),
        (b"[" * 3000, 422),
        (b'{"sentences":' + b"[" * 1000 + b"]" * 1000 + b"}", 422),
        (b"\xff\xfe\x00", 422),
        (b'{"text": "\\ud800"}', 422),
        (b'{"text": NaN}', 422),
        (b'{"text": "a", "layers": {"weights": [1e999, 0, 0]}}', 422),
        (b'{"text": "' + b"a" * 4000 + b'"}', 413),
        (b" " * 60_000, 413),
    ],
)
def test_bytes_of_any_kind_are_refused(server, body, status, expected):
    assert server.post("/v1/words", body)[0] == status
    assert server.post("/v1/words", FINE) == expected


def test_a_request_says_that_it_is_json(server):
    for headers in (
        {},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
    ):
        response, body = server.request("POST", "/v1/words", b"{}", headers)
        assert (response.status, json.loads(body)["error"]["type"]) == (415, "unsupported")


def test_other_places_and_methods_are_refused_in_the_same_form(server):
    for method, path, status in [("GET", "/v1/words", 405), ("POST", "/v1/nothing", 404), ("GET", "/v1/nothing", 404)]:
        response, body = server.request(method, path)
        assert (response.status, "message" in json.loads(body)["error"]) == (status, True)
    for path in ("/%00", "/page/%00", "/" + "x" * 5000, "/%ff", "/page/%ff", "/page", "/page/a/../../app.py"):
        assert server.get(path)[0].status in (307, 404)
    for path in ("/../../pyproject.toml", "/page/../app.py", "/page/%2e%2e/app.py", "/%2e%2e/settings.py"):
        assert server.get(path)[0].status == 404


def test_a_body_that_never_comes_is_given_up(expected):
    with running(make_catalogue(), body_seconds=0.05) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(raw_request(b"{", length=100))
            assert b" 408 " in connection.recv(1000)
        assert server.post("/v1/words", FINE) == expected


def test_after_all_of_these_a_good_request_is_answered_right(server, expected):
    assert server.post("/v1/words", FINE) == expected
    assert expected[0] == 200
    until(lambda: server.service.admission.words == 0)


def test_the_examples_of_the_document_are_answered(server):
    document = json.loads(server.get("/openapi.json")[1])
    for path, (_, example) in EXAMPLES.items():
        body = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        assert body["example"] == example
        assert server.post(path, example)[0] == (404 if path == "/v1/tag" else 200)
