"""A server's model as an embedder: whatever takes an embedder takes a server."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterable, Iterator, Sequence
from threading import Lock
from time import sleep
from typing import Any
from urllib.parse import urlsplit
from weakref import finalize

import numpy as np

from polyseme.embedding.batching import windows
from polyseme.embedding.binary import Message, unpack
from polyseme.embedding.interfaces import ArrayType, Piece
from polyseme.embedding.sentences import check_sentences, size
from polyseme.errors import ConfigError, FormatError, InputError, ServerError
from polyseme.parallel import map_threads

_AHEAD = 2  # requests under way, so that the server has the next one while this one is read
_WORDS = 1024  # of one request
_RECONNECTIONS = 3
_LONGEST_WAIT = 30.0  # seconds, whatever a server says


class Client:
    """One model of a server that `polyseme serve` runs. An `Embedder`.

    Args:
        url: Where it is, as ``http://127.0.0.1:8000``.
        key: What it asks for, if it does.
        model: Which of its models; its first, if nothing is said.
        dtype: Of the arrays; ``float16`` is half as much to send.
        timeout: Seconds for a server to answer.
        patience: Times that a request is sent again to a server that is busy.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        model: str | None = None,
        dtype: ArrayType = "float32",
        timeout: float = 60.0,
        patience: int = 20,
    ) -> None:
        self._server = _Server(url, key, timeout, patience)
        finalize(self, self._server.close)
        self._dtype = dtype
        about = _as_json(self._server.ask("GET", "/v1/models"))
        known = {found["id"]: found for found in about["models"]}
        if model is not None and model not in known:
            raise ConfigError(f"{url} has no model {model!r}; it has {', '.join(known)}")
        found = known[model] if model is not None else about["models"][0]
        self.name: str = found["id"]
        self.dim: int = found["dim"]
        self.num_layers: int = found["layers"]
        self._sentences: int = about["limits"]["sentences"]
        self._words: int = min(_WORDS, about["limits"]["words"] // 2)

    def embed(self, sentences: Iterable[Sequence[str]]) -> Iterator[np.ndarray]:
        """For each sentence, a list of words, an array (layers, words, dim), in order, while sentences come."""
        return self._embed(check_sentences(sentences))

    def embed_text(self, text: str) -> Iterator[Piece]:
        """Let the server split raw text, as long as one request allows, into sentences and words, and embed them."""
        if not isinstance(text, str):
            raise InputError(f"embed_text takes one string of raw text, not {type(text).__name__}")
        answer = self._ask({"text": text}, 0)
        header = answer.header
        spans = ([(begin, end) for begin, end in each] for each in header["spans"])
        return map(Piece, header["words"], spans, answer.vectors)

    def close(self) -> None:
        """Let go of the connections; they come again when they are needed."""
        self._server.close()

    def _embed(self, sentences: Iterator[list[str]]) -> Iterator[np.ndarray]:
        answers = map_threads(lambda request: self._ask(*request), self._requests(sentences), _AHEAD, _AHEAD)
        return (vectors for answer in answers for vectors in answer.vectors)

    def _requests(self, sentences: Iterator[list[str]]) -> Iterator[tuple[dict[str, Any], int]]:
        first = 0
        for window in windows(sentences, self._cost, self._words):
            yield {"sentences": window}, first
            first += len(window)

    def _cost(self, words: Sequence[str]) -> int:
        """So that a window stays within both limits: on words and on sentences."""
        return max(size(words), -(-self._words // self._sentences))

    def _ask(self, what: dict[str, Any], first: int) -> Message:
        asked = {"model": self.name, "format": self._dtype, **what}
        answer = unpack(self._server.ask("POST", "/v1/words", asked, first))
        found = {vectors.shape[::2] for vectors in answer.vectors}
        if found - {(self.num_layers, self.dim)}:
            raise ServerError(f"{self._server.url} answered with vectors of another shape; is it another model now?")
        return answer


class _Server:
    """Requests to one place, over connections that are used again."""

    def __init__(self, url: str, key: str | None, timeout: float, patience: int) -> None:
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
            raise ConfigError(f"a server's address is written like http://127.0.0.1:8000, not {url!r}")
        self.url = url
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connect = lambda: kind(parts.hostname or "", port, timeout=timeout)
        self._path = parts.path.rstrip("/")
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._patience = patience
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = Lock()

    def ask(self, method: str, path: str, payload: object = None, first: int = 0) -> bytes:
        """The body of an answer; a busy server is asked again, later."""
        body = None if payload is None else json.dumps(payload).encode("utf-8")
        left = self._patience
        while True:
            status, headers, answer = self._send(method, path, body)
            if status == 200:
                return answer
            if status not in (429, 503) or not left:
                raise self._fault(status, answer, first)
            sleep(min(_LONGEST_WAIT, _seconds(headers.get("Retry-After"))))
            left -= 1

    def close(self) -> None:
        with self._lock:
            connections, self._idle = self._idle, []
        for connection in connections:
            connection.close()

    def _send(self, method: str, path: str, body: bytes | None) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Once; again only where a connection was lost, as one that was idle for long may be."""
        headers = {**self._headers, **({"Content-Type": "application/json"} if body is not None else {})}
        for left in reversed(range(_RECONNECTIONS)):
            connection = self._take()
            try:
                connection.request(method, self._path + path, body, headers)
                response = connection.getresponse()
                answer = response.read()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                if not left or isinstance(error, TimeoutError):
                    raise ServerError(f"{self.url} does not answer ({_said(error)}); is a server there?") from error
                continue
            with self._lock:
                self._idle.append(connection)
            return response.status, response.headers, answer
        raise AssertionError("unreachable")

    def _take(self) -> http.client.HTTPConnection:
        with self._lock:
            return self._idle.pop() if self._idle else self._connect()

    def _fault(self, status: int, answer: bytes, first: int) -> Exception:
        try:
            error = json.loads(answer)["error"]
            message, where = str(error["message"]), list(error.get("where", []))
        except (ValueError, TypeError, KeyError):
            return ServerError(f"{self.url} answered with status {status}, as no polyseme server does")
        if status in (413, 422):
            at = f"sentence {first + where[1]}: " if where[:1] == ["sentences"] and len(where) > 1 else ""
            return InputError(f"{at}{message}")
        if status in (401, 404):
            return ConfigError(f"{self.url}: {message}")
        return ServerError(f"{self.url}: {message}")


def _as_json(answer: bytes) -> dict[str, Any]:
    try:
        found = json.loads(answer)
        if all(isinstance(number, int) for number in (found["models"][0]["layers"], found["limits"]["words"])):
            return found
    except (ValueError, TypeError, KeyError, IndexError):
        pass
    raise FormatError("there is a server, but it is no polyseme server")


def _seconds(told: str | None) -> float:
    try:
        return max(0.0, float(told or 1))
    except ValueError:
        return 1.0


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
