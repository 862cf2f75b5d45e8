"""Settings of the server: key, CORS origins, host names and limits. The defaults are safe on a small machine."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from ipaddress import ip_address

from polyseme.errors import ConfigError, nearest

_MOST = 2**53  # of any limit: floats count so far without gaps


@dataclass(frozen=True)
class Limits:
    """Limits on the size of a request, on all requests together, and on their time.

    Attributes:
        body_bytes: Bytes in the body of a request.
        sentences: Sentences in a request.
        words: Words in a request.
        sentence_words: Words in a sentence.
        word_characters: Characters in a word.
        batch_words: Words computed in one batch, of all requests together.
        queue_words: Words of all requests in flight; more are refused with 429.
        deadline: Seconds after which an accepted request is dropped. With a slow model fewer requests are admitted, so
            that they stay well below it.
        split_seconds: Seconds to split the raw text of a request into sentences and words.
        body_seconds: Seconds for a client to send its request, the headers and then the body.
        send_seconds: Seconds for a client to receive a chunk of the response.
        drain_seconds: Seconds to answer the accepted requests when the server is stopped.
        connections: Connections at a time.
    """

    body_bytes: int = 1 << 20
    sentences: int = 1024
    words: int = 4096
    sentence_words: int = 1024
    word_characters: int = 1000
    batch_words: int = 640
    queue_words: int = 16_384
    deadline: float = 30.0
    split_seconds: float = 5.0
    body_seconds: float = 10.0
    send_seconds: float = 20.0
    drain_seconds: float = 30.0
    connections: int = 2000

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            integer = field.type == "int"
            kind = int if integer else (int, float)
            if isinstance(value, bool) or not isinstance(value, kind) or not value > 0:
                expected = "a whole number" if integer else "a number"
                raise ConfigError(f"{field.name} must be {expected} above 0, not {value!r}")
            if value > _MOST:
                raise ConfigError(f"{field.name} must be a finite number, at most {_MOST:,}")


@dataclass(frozen=True)
class ServeSettings:
    """Settings of a server: access and limits.

    Attributes:
        key: The key that clients must send as ``Authorization: Bearer KEY``; None: no key is required.
        origins: Sites whose pages may send requests (CORS), as ``https://example.org``.
        limits: Limits on requests.
        hosts: Names by which clients may reach the server, beside loopback names and the address it listens at;
            ``*``: any.
    """

    key: str | None = None
    origins: tuple[str, ...] = ()
    limits: Limits = Limits()
    hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.key is not None and (len(self.key) < 8 or not self.key.isascii() or not self.key.isprintable()):
            raise ConfigError("a key must have at least 8 characters, all of them printable ASCII")
        for origin in self.origins:
            if origin != "*" and not origin.startswith(("http://", "https://")):
                raise ConfigError(f"write an origin like https://example.org, not {origin!r}")
        for host in self.hosts:
            if host != "*" and not _is_host(host):
                raise ConfigError(f"write a host like example.org, without http:// and without a port, not {host!r}")


def _is_host(host: str) -> bool:
    """Whether a text is a host name in small letters, or an address."""
    try:
        ip_address(host)
    except ValueError:
        return re.fullmatch(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*", host) is not None
    return True


def parse_limits(changes: Iterable[str]) -> Limits:
    """Parse limits given on the command line, as ``words=8192``."""
    known = {field.name: float if field.type == "float" else int for field in fields(Limits)}
    changed: dict[str, int | float] = {}
    for change in changes:
        name, _, number = change.partition("=")
        if name not in known:
            raise ConfigError(f"there is no limit {name!r}; the limits are {', '.join(known)}.{nearest(name, known)}")
        try:
            changed[name] = known[name](number)
        except ValueError:
            raise ConfigError(f"write a limit like {name}=10, not {change!r}") from None
    return Limits(**changed)  # pyright: ignore[reportArgumentType]
