"""HTTP client for `polyseme serve`: a model of a server as an `Embedder`."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterable, Iterator, Sequence, Sized
from threading import Lock
from time import sleep
from typing import Any
from urllib.parse import urlsplit
from weakref import finalize

import numpy as np

from polyseme.embedding.batching import check_sentences, sentence_size, windows
from polyseme.embedding.binary import Message, unpack
from polyseme.embedding.encoder import count_words
from polyseme.embedding.interfaces import ArrayType, EmbeddedSentence
from polyseme.embedding.layers import LayerChoice
from polyseme.embedding.texts import Texts, encode_texts, text_similarity
from polyseme.errors import ConfigError, FormatError, InputError, ServerError
from polyseme.parallel import map_threads
from polyseme.progress import track

_IN_FLIGHT = 2  # requests at a time, so that the server has the next one while this one is read
_REQUEST_WORDS = 1024  # words in one request
_RECONNECTIONS = 3
_LONGEST_WAIT = 30.0  # seconds before a retry, whatever Retry-After says


class Client:
    """HTTP client for one model of a server that `polyseme serve` runs. An `Embedder`.

    Args:
        url: The address of the server, as ``http://127.0.0.1:8000``.
        key: The server's key, if it requires one.
        model: The id of a model of the server; its first one by default.
        dtype: The type of the arrays; ``float16`` halves the bytes to transfer.
        timeout: Seconds to wait for a response.
        max_retries: How many times a request is sent again while the server is busy.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        model: str | None = None,
        dtype: ArrayType = "float32",
        timeout: float = 60.0,
        max_retries: int = 20,
    ) -> None:
        self._connections = _Connections(url, key, timeout, max_retries)
        finalize(self, self._connections.close)
        self._dtype = dtype
        description = _parse_models(self._connections.request("GET", "/v1/models"))
        known = {found["id"]: found for found in description["models"]}
        if model is not None and model not in known:
            raise ConfigError(f"{url} has no model {model!r}; it has {', '.join(known)}")
        found = known[model] if model is not None else description["models"][0]
        self.name: str = found["id"]
        self.dim: int = found["dim"]
        self.num_layers: int = found["layers"]
        self._sentences: int = description["limits"]["sentences"]
        self._words: int = min(_REQUEST_WORDS, description["limits"]["words"] // 2)

    def embed(self, sentences: Iterable[Sequence[str]]) -> Iterator[np.ndarray]:
        """Embed sentences, lists of words: an array (layers, words, dim) for each, in order, as a stream."""
        total = len(sentences) if isinstance(sentences, Sized) else None
        return track(self._embed(check_sentences(sentences)), "embedding", total, words=count_words)

    def encode(
        self, texts: Texts, *, pool: str = "mean", layers: LayerChoice = "average", normalize: bool = False
    ) -> np.ndarray:
        """Text vectors: one vector a text, as `Encoder.encode` gives them; texts are tokenised here, not by the server.

        Args:
            texts: Raw strings or lists of words.
            pool: ``mean`` or ``max`` over the words of a text.
            layers: ``average``, ``top``, a layer's number, or a `Mix`.
            normalize: Scale vectors to length 1.
        """
        return encode_texts(self, texts, pool=pool, layers=layers, normalize=normalize)

    def similarity(self, first: Texts | np.ndarray, second: Texts | np.ndarray) -> np.ndarray:
        """Cosine similarity (n, m) of two lists of texts, or of vectors that `encode` returned."""
        return text_similarity(self.encode, first, second)

    def embed_text(self, text: str) -> Iterator[EmbeddedSentence]:
        """Embed raw text that fits into one request; the server splits it into sentences and words."""
        if not isinstance(text, str):
            raise InputError(f"embed_text takes one string of raw text, not {type(text).__name__}")
        message = self._request({"text": text}, 0)
        spans = ([(start, end) for start, end in each] for each in message.header["spans"])
        return map(EmbeddedSentence, message.header["words"], spans, message.vectors)

    def close(self) -> None:
        """Close the idle connections; a later request opens new ones."""
        self._connections.close()

    def _embed(self, sentences: Iterator[list[str]]) -> Iterator[np.ndarray]:
        requests = self._requests(sentences)
        messages = map_threads(lambda request: self._request(*request), requests, _IN_FLIGHT, _IN_FLIGHT)
        return (vectors for message in messages for vectors in message.vectors)

    def _requests(self, sentences: Iterator[list[str]]) -> Iterator[tuple[dict[str, Any], int]]:
        first = 0
        for window in windows(sentences, self._cost, self._words):
            yield {"sentences": window}, first
            first += len(window)

    def _cost(self, words: Sequence[str]) -> int:
        """The size of a sentence, scaled so that a window stays within the limits on words and on sentences."""
        return max(sentence_size(words), -(-self._words // self._sentences))

    def _request(self, fields: dict[str, Any], first: int) -> Message:
        body = {"model": self.name, "format": self._dtype, **fields}
        message = unpack(self._connections.request("POST", "/v1/words", body, first))
        shapes = {vectors.shape[::2] for vectors in message.vectors}
        if shapes - {(self.num_layers, self.dim)}:
            raise ServerError(f"{self._connections.url} sent vectors of another shape; did its model change?")
        return message


class _Connections:
    """Requests to one server over kept-alive connections, with retries."""

    def __init__(self, url: str, key: str | None, timeout: float, max_retries: int) -> None:
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
            raise ConfigError(f"a server needs an address like http://127.0.0.1:8000, not {url!r}")
        self.url = url
        connection = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connect = lambda: connection(parts.hostname or "", port, timeout=timeout)
        self._path = parts.path.rstrip("/")
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._max_retries = max_retries
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = Lock()

    def request(self, method: str, path: str, payload: object = None, first: int = 0) -> bytes:
        """Send a request and return the body of the response; retry while the server is busy.

        Errors number sentences from `first`, the number of the first one in this request.
        """
        body = None if payload is None else json.dumps(payload).encode("utf-8")
        retries_left = self._max_retries
        while True:
            status, headers, content = self._send(method, path, body)
            if status == 200:
                return content
            if status not in (429, 503) or not retries_left:
                raise self._error(status, content, first)
            sleep(min(_LONGEST_WAIT, _seconds(headers.get("Retry-After"))))
            retries_left -= 1

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            connections, self._idle = self._idle, []
        for connection in connections:
            connection.close()

    def _send(self, method: str, path: str, body: bytes | None) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Send a request once; again only if the connection was lost, as happens to long idle ones."""
        headers = {**self._headers, **({"Content-Type": "application/json"} if body is not None else {})}
        for left in reversed(range(_RECONNECTIONS)):
            connection = self._take()
            try:
                connection.request(method, self._path + path, body, headers)
                response = connection.getresponse()
                content = response.read()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                if not left or isinstance(error, TimeoutError):
                    reason = str(error) or type(error).__name__
                    raise ServerError(f"{self.url} does not respond ({reason}); is a server running there?") from error
                continue
            with self._lock:
                self._idle.append(connection)
            return response.status, response.headers, content
        raise AssertionError("unreachable")

    def _take(self) -> http.client.HTTPConnection:
        with self._lock:
            return self._idle.pop() if self._idle else self._connect()

    def _error(self, status: int, content: bytes, first: int) -> Exception:
        try:
            error = json.loads(content)["error"]
            message, where = str(error["message"]), list(error.get("where", []))
        except (ValueError, TypeError, KeyError):
            return ServerError(f"{self.url} answered with status {status}, unlike a polyseme server")
        if status in (413, 422):
            sentence = f"sentence {first + where[1]}: " if where[:1] == ["sentences"] and len(where) > 1 else ""
            return InputError(f"{sentence}{message}")
        if status in (401, 404):
            return ConfigError(f"{self.url}: {message}")
        return ServerError(f"{self.url}: {message}")


def _parse_models(content: bytes) -> dict[str, Any]:
    """The description of the models that a server has; any other response is refused."""
    try:
        parsed = json.loads(content)
        if all(isinstance(number, int) for number in (parsed["models"][0]["layers"], parsed["limits"]["words"])):
            return parsed
    except (ValueError, TypeError, KeyError, IndexError):
        pass
    raise FormatError("a server answered, but it is not a polyseme server; check the address")


def _seconds(retry_after: str | None) -> float:
    try:
        return max(0.0, float(retry_after or 1))
    except ValueError:
        return 1.0
