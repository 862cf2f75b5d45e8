"""What a server allows. The defaults are safe on a small machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from polyseme.errors import ConfigError, nearest


@dataclass(frozen=True)
class Limits:
    """How much one request, and all of them together, may ask for.

    Attributes:
        body_bytes: Of one request.
        sentences: In one request.
        words: In one request.
        sentence_words: In one sentence.
        word_characters: In one word.
        batch_words: Computed at a time, of all requests together.
        queue_words: Of all requests that are being answered; who comes then is told to come back later.
        deadline: Seconds after which an accepted request is given up. Fewer requests are accepted where the model is so
            slow that they would come near it.
        body_seconds: For a client to send its request.
        send_seconds: For a client to take a piece of the answer.
        drain_seconds: For what was accepted to be answered when the server is told to stop.
        connections: At a time.
    """

    body_bytes: int = 1 << 20
    sentences: int = 1024
    words: int = 4096
    sentence_words: int = 1024
    word_characters: int = 1000
    batch_words: int = 640
    queue_words: int = 16_384
    deadline: float = 30.0
    body_seconds: float = 10.0
    send_seconds: float = 20.0
    drain_seconds: float = 30.0
    connections: int = 2000

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            whole = field.type == "int"
            kind = int if whole else (int, float)
            if isinstance(value, bool) or not isinstance(value, kind) or not value > 0:
                wanted = "a whole number" if whole else "a number"
                raise ConfigError(f"{field.name} must be {wanted} above 0, not {value!r}")


@dataclass(frozen=True)
class ServeSettings:
    """How a server behaves.

    Attributes:
        key: What clients have to show as ``Authorization: Bearer KEY``; none if nothing is said.
        origins: Pages of other sites that may ask (CORS), as ``https://example.org``.
        limits: How much may be asked for.
    """

    key: str | None = None
    origins: tuple[str, ...] = ()
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        if self.key is not None and (len(self.key) < 8 or not self.key.isascii() or not self.key.isprintable()):
            raise ConfigError("a key must have 8 characters or more, all of them printable ASCII")
        for origin in self.origins:
            if origin != "*" and not origin.startswith(("http://", "https://")):
                raise ConfigError(f"an origin is written like https://example.org, not {origin!r}")


def parse_limits(changes: Iterable[str]) -> Limits:
    """Limits as typed: ``words=8192``."""
    known = {field.name: float if field.type == "float" else int for field in fields(Limits)}
    changed: dict[str, int | float] = {}
    for change in changes:
        name, _, number = change.partition("=")
        if name not in known:
            raise ConfigError(f"there is no limit {name!r}; the limits are {', '.join(known)}.{nearest(name, known)}")
        try:
            changed[name] = known[name](number)
        except ValueError:
            raise ConfigError(f"a limit is written like {name}=10, not {change!r}") from None
    return Limits(**changed)  # pyright: ignore[reportArgumentType]
