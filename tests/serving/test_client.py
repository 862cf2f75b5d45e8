"""A server as an embedder."""

import itertools
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest
from server_fixture import SENTENCES, make_catalogue, running

import polyseme
from polyseme.corpus.uses import embed_all
from polyseme.embedding.binary import pack, unpack
from polyseme.errors import ConfigError, FormatError, InputError, ServerError
from polyseme.serving.settings import ServeSettings


@pytest.fixture(scope="module")
def server():
    with running(make_catalogue(), words=60, sentence_words=40, sentences=5) as it:
        yield it


def test_a_client_gives_what_the_model_gives_in_order_and_lazily(server):
    client = polyseme.Client(server.url)
    encoder = server.service.catalogue.default.encoder
    assert (client.name, client.dim, client.num_layers) == ("small", encoder.dim, encoder.num_layers)
    sentences = [SENTENCES[number % len(SENTENCES)][: number % 7 + 1] for number in range(100)]
    for found, expected in zip(client.embed(sentences), encoder.embed(sentences), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)
    taken = []
    endless = (taken.append(number) or ["bank"] * 5 for number in itertools.count())
    stream = client.embed(endless)
    assert next(stream).shape == (3, 5, 12)
    stream.close()
    assert len(taken) < 60
    assert list(client.embed([])) == []
    client.close()
    assert [each.shape for each in client.embed([[], ["a"]])] == [(3, 0, 12), (3, 1, 12)]
    client.close()


def test_texts_have_the_vectors_and_similarities_of_the_encoder(server):
    client, encoder = polyseme.Client(server.url), server.service.catalogue.default.encoder
    texts = ["He sat on the bank. It was wet.", ["river", "bank"], ""]
    for options in ({}, {"pool": "max", "layers": "top"}, {"normalize": True}):
        np.testing.assert_allclose(client.encode(texts, **options), encoder.encode(texts, **options), atol=1e-6)
    assert client.encode("the bank").shape == (12,)
    np.testing.assert_allclose(client.similarity(texts, "bank"), encoder.similarity(texts, "bank"), atol=1e-6)
    np.testing.assert_allclose(
        client.similarity(client.encode(texts), "bank"), encoder.similarity(texts, "bank"), atol=1e-6
    )
    client.close()


def test_what_takes_an_embedder_takes_a_server(server):
    client = polyseme.Client(server.url, model="vectors", dtype="float16")
    uses = embed_all(client, [["the", "bank"], ["river"]])
    assert (len(uses), uses.num_layers) == (3, 1)
    client.close()


def test_raw_text_is_split_by_the_server(server):
    client = polyseme.Client(server.url)
    first, second = client.embed_text("He sat. It's the bank.")
    assert (second.words[:2], second.spans[0], second.vectors.shape) == (["It", "'s"], (8, 10), (3, 5, 12))
    assert first.words == ["He", "sat", "."]
    with pytest.raises(InputError, match="raw text"):
        client.embed_text(["He"])  # pyright: ignore
    client.close()


def test_faults_name_the_sentence_and_the_remedy(server):
    client = polyseme.Client(server.url)
    with pytest.raises(InputError, match="bare string"):
        client.embed("the bank")
    with pytest.raises(InputError, match="sentence 31: a sentence may have 40 words"):
        list(client.embed([*[["a"]] * 31, ["b"] * 41]))
    with pytest.raises(ConfigError, match="has no model 'nobody'; it has small, other, vectors"):
        polyseme.Client(server.url, model="nobody")
    for url in ("127.0.0.1:80", "ftp://x", "http://", "http://x:port"):
        with pytest.raises(ConfigError, match="an address like"):
            polyseme.Client(url)
    client.close()


def test_a_key_is_shown():
    with running(make_catalogue(), ServeSettings(key="a long enough key")) as server:
        polyseme.Client(server.url, "a long enough key").close()
        with pytest.raises(ConfigError, match="requires a key"):
            polyseme.Client(server.url)


def test_where_no_server_is_that_is_said(free_port):
    with pytest.raises(ServerError, match="does not respond"):
        polyseme.Client(f"http://127.0.0.1:{free_port}")


class Moody(BaseHTTPRequestHandler):
    """A server that is busy twice, loses a connection once, then answers."""

    protocol_version = "HTTP/1.1"
    moods: list[str]

    def do_GET(self):
        models = [{"id": "m", "layers": 1, "dim": 2}]
        self.answer(200, json.dumps({"models": models, "limits": {"words": 100, "sentences": 9}}).encode())

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        mood = self.moods.pop(0) if self.moods else "fine"
        if mood == "busy":
            self.answer(429, b'{"error": {"message": "busy", "type": "overloaded"}}')
        elif mood == "gone":
            self.close_connection = True
        elif mood == "strange":
            self.answer(418, b"<html>")
        else:
            vectors = [np.ones((1, len(words), 2), np.float32) for words in asked["sentences"]]
            self.answer(200, b"".join(pack(vectors, "float32", 1, 2)))

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Retry-After", "3")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_a_busy_server_is_asked_again_when_it_says(monkeypatch):
    waits = []
    monkeypatch.setattr("polyseme.client.sleep", waits.append)
    Moody.moods = ["busy", "busy", "gone", "fine", "busy", "busy", "strange"]
    with HTTPServer(("127.0.0.1", 0), Moody) as moody:
        thread = threading.Thread(target=moody.serve_forever)
        thread.start()
        client = polyseme.Client(f"http://127.0.0.1:{moody.server_port}", max_retries=2)
        (found,) = client.embed([["a", "b"]])
        assert (found.shape, waits) == ((1, 2, 2), [3.0, 3.0])
        with pytest.raises(ServerError, match="status 418"):
            list(client.embed([["a"]]))
        Moody.moods = ["busy"] * 9
        with pytest.raises(ServerError, match="busy"):
            list(client.embed([["a"]]))
        client.close()
        moody.shutdown()
        thread.join()


def test_a_damaged_message_is_refused():
    whole = b"".join(pack([np.zeros((1, 2, 3), np.float32)], "float32", 1, 3))
    assert unpack(whole).vectors[0].shape == (1, 2, 3)
    header = b'{"dtype":"float32","layers":1,"dim":-1,"lengths":[2]} '
    for wrong in (
        b"",
        b"abc",
        whole[:-1],
        whole[:-4],
        whole[:20],
        b"\xff" * 64,
        len(header).to_bytes(8, "little") + header,
    ):
        with pytest.raises(FormatError):
            unpack(wrong)
