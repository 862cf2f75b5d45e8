"""A server for tests: the real one, on a port of its own, in a thread of this process."""

import http.client
import json
import socket
import threading
from contextlib import contextmanager

from language_models import make_language_model
from static_models import make_static
from tiny_models import make_encoder

from polyseme.backends.elmo.encoder import ElmoEncoder
from polyseme.corpus.uses import bundled_sentences
from polyseme.serving.engine.catalogue import Catalogue, ServedModel
from polyseme.serving.settings import Limits, ServeSettings

BUNDLED = bundled_sentences()
SENTENCES = [["He", "sat", "on", "the", "bank", "."], [], ["bank"], ["the", "of", "日本", "🙂", "naïve"] * 7]


def make_catalogue() -> Catalogue:
    language_model = make_language_model()
    small = ElmoEncoder(language_model.bilm, language_model.words, name="small")
    vectors = make_static(name="vectors")
    models = [ServedModel("small", small, language_model), ServedModel("other", make_encoder(seed=1))]
    return Catalogue([*models, ServedModel("vectors", vectors)])


class BlockedEncoder(ElmoEncoder):
    """Computes when it is let go, and remembers what it was asked; what the server embeds for itself passes."""

    def __init__(self):
        plain = make_encoder()
        super().__init__(plain.bilm, plain.words, name="held")
        self.go, self.begun, self.seen = threading.Event(), threading.Event(), []

    def embed(self, sentences):
        asked = [words for words in sentences if words not in BUNDLED]
        if asked:
            self.seen += asked
            self.begun.set()
            assert self.go.wait(60)
        return super().embed(sentences)

    def catalogue(self) -> Catalogue:
        return Catalogue([ServedModel("held", self)])


def raw_request(body: bytes, length: int | None = None) -> bytes:
    """A request as bytes, for those who send them by hand."""
    head = "POST /v1/words HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json"
    return f"{head}\r\nContent-Length: {len(body) if length is None else length}\r\n\r\n".encode() + body


def until(condition):
    """Wait for what another thread does."""
    pause = threading.Event()
    for _ in range(30_000):
        if condition():
            return
        pause.wait(0.001)
    raise AssertionError("it did not happen")


class RunningServer:
    """A server that answers."""

    def __init__(self, server, port):
        self.server, self.service, self.port = server, server.service, port
        self.url = f"http://127.0.0.1:{port}"

    def request(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response, response.read()
        finally:
            connection.close()

    def get(self, path, headers=None):
        return self.request("GET", path, headers=headers)

    def post(self, path, asked, headers=None):
        """The status, and the body as JSON where it is."""
        body = asked if isinstance(asked, bytes) else json.dumps(asked).encode()
        response, answer = self.request("POST", path, body, {"Content-Type": "application/json", **(headers or {})})
        is_json = response.headers["Content-Type"] == "application/json"
        return response.status, json.loads(answer) if is_json else answer


@contextmanager
def running(catalogue: Catalogue, settings: ServeSettings | None = None, **limits):
    from polyseme.serving.app import create_app
    from polyseme.serving.server import Server

    server = Server(create_app(catalogue, settings or ServeSettings(limits=Limits(**limits))))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield RunningServer(server, listener.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join()
