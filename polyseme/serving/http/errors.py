"""What a server answers when it cannot answer: a status, one sentence, and the place of the fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

from pydantic import ValidationError

Place = Sequence[str | int]


class HttpError(Exception):
    """An answer other than the one that was asked for.

    Args:
        status: Of HTTP.
        kind: A word that programs can tell faults apart by.
        message: One sentence for people.
        where: The place in the request, as ``("sentences", 3)``.
        headers: To be sent along.
    """

    def __init__(
        self, status: int, kind: str, message: str, where: Place = (), headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.kind, self.message, self.where = status, kind, message, list(where)
        self.headers = dict(headers or {})

    def as_json(self) -> dict[str, Any]:
        """The body of the answer."""
        where = {"where": self.where} if self.where else {}
        return {"error": {"message": self.message, "type": self.kind, **where}}


def invalid(message: str, where: Place = ()) -> HttpError:
    """The request cannot be understood."""
    return HttpError(422, "invalid", message, where)


def too_large(message: str, where: Place = ()) -> HttpError:
    """The request asks for more than is allowed."""
    return HttpError(413, "too_large", message, where)


def missing(message: str, where: Place = ()) -> HttpError:
    """What is asked for is not there."""
    return HttpError(404, "not_found", message, where)


def overloaded(seconds: float) -> HttpError:
    """There is too much to do; it may be better in some seconds."""
    wait = max(1, ceil(seconds))
    return HttpError(
        429,
        "overloaded",
        f"the server is busy; come back in {wait} second{'s' * (wait > 1)}",
        headers={"Retry-After": str(wait)},
    )


def from_validation(error: ValidationError) -> HttpError:
    """The first thing that is wrong with a request, in words that do not repeat the user's."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = list(first["loc"])
    if first["type"] == "json_invalid":
        return invalid(f"the body is no JSON: {first['msg'].partition(': ')[2] or first['msg']}")
    if first["type"] == "extra_forbidden":
        return invalid(f"there is no field {str(where[-1])!r:.40} here; see /openapi.json", where)
    message = first["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    if first["type"] == "missing":
        return invalid(f"{where[-1]} is needed and is not there", where)
    return invalid(f"{_shown(where)} should be {message}" if message != first["msg"] else message, where)


def _shown(where: Place) -> str:
    return "the body" if not where else str(where[0]) + "".join(f"[{part!r}]" for part in where[1:])
