"""Hostile HTTP: bodies of any shape for every route, damaged bytes, and headers of any kind."""

import json

import pytest
from fuzzing import HARNESS, damaged
from hypothesis import given
from hypothesis import strategies as st
from server_fixture import make_catalogue, running

from polyseme.serving.http.openapi import EXAMPLES

FINE = {"sentences": [["the", "bank"]], "layers": 0}
REFUSALS = {403, 404, 405, 413, 415, 422}
BODIES = tuple(json.dumps(example).encode() for _, example in EXAMPLES.values())
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30) | st.just("bank"),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)
FIELDS = sorted({name for kind, _ in EXAMPLES.values() for name in kind.model_fields})
HEADERS = {
    "Host": st.sampled_from(["localhost", "127.0.0.1:1", "[::1]", "[", "evil.example", "127.0.0.1.evil.example", ":"]),
    "Origin": st.sampled_from(["null", "http://localhost", "https://evil.example", "://", "http://["]),
    "Content-Type": st.sampled_from(["application/json", "application/json; charset=x", "text/plain", ";"]),
    "Content-Encoding": st.sampled_from(["identity", "gzip", "br, gzip"]),
    "Accept": st.sampled_from(["application/octet-stream", "*/*;q=0", ",,;"]),
    "Authorization": st.sampled_from(["Bearer", "Bearer é", "Basic x"]),
}


@pytest.fixture(scope="module")
def server():
    limits = {"words": 50, "sentence_words": 20, "word_characters": 100, "sentences": 10, "body_bytes": 4000}
    with running(make_catalogue(), **limits) as it:
        expected = it.post("/v1/words", FINE)
        yield it
        assert it.post("/v1/words", FINE) == expected
        assert expected[0] == 200


@st.composite
def changed_requests(draw):
    """A good request of a route, with some of its fields replaced by anything."""
    path = draw(st.sampled_from(sorted(EXAMPLES)))
    asked = dict(EXAMPLES[path][1])
    for name in draw(st.lists(st.sampled_from([*FIELDS, "surprise"]), max_size=3)):
        asked[name] = draw(VALUES)
    return path, json.dumps(asked).encode("utf-8", "surrogatepass")


def check(status, answer):
    """Answered, or refused in one sentence; never a fault of the server."""
    assert status == 200 or status in REFUSALS
    if status != 200:
        assert answer["error"]["message"]
        assert "\n" not in answer["error"]["message"]


@HARNESS
@given(changed_requests())
def test_fields_of_any_kind(server, request_):
    check(*server.post(*request_))


@HARNESS
@given(st.sampled_from(sorted(EXAMPLES)), damaged(*BODIES, tokens=(b"[", b"]", b"{", b'"', b"\\u", b"1e9", b"null")))
def test_bytes_of_any_kind(server, path, body):
    check(*server.post(path, body))


@HARNESS
@given(st.fixed_dictionaries({}, optional=HEADERS), st.sampled_from(["GET", "POST", "OPTIONS", "PUT", "DELETE"]))
def test_headers_of_any_kind(server, headers, method):
    sent = {name: value.encode("latin-1") for name, value in headers.items()}
    response, body = server.request(method, "/v1/words", b'{"text": "a", "format": "json"}', sent)
    check(response.status, json.loads(body))
