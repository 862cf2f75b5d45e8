"""HTTP error responses: a status, one sentence, and the place in the request; and the handlers that send them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from traceback import extract_tb

from fastapi import FastAPI
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from polyseme.errors import PolysemeError
from polyseme.serving.engine.admission import OverloadedError
from polyseme.serving.engine.catalogue import UnknownModelError
from polyseme.serving.engine.sizes import Place, TooLargeError
from polyseme.serving.http.responses import json_response

logger = logging.getLogger("polyseme.serving")
_LONGEST = 40  # characters of a user's key that an error repeats


class HttpError(Exception):
    """An error response, raised anywhere on the way of a request.

    Args:
        status: The HTTP status code.
        kind: A word by which programs can tell errors apart.
        message: One sentence for people.
        where: The place in the request, as ``("sentences", 3)``.
        headers: Headers to add to the response.
    """

    def __init__(
        self, status: int, kind: str, message: str, where: Place = (), headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.kind, self.message, self.where = status, kind, message, list(where)
        self.headers = dict(headers or {})

    def response(self) -> Response:
        """The response in the form that all errors have."""
        where = {"where": self.where} if self.where else {}
        return json_response(
            {"error": {"message": self.message, "type": self.kind, **where}}, self.status, self.headers
        )


class ClientGoneError(Exception):
    """The client has disconnected before it got a response."""


def invalid(message: str, where: Place = ()) -> HttpError:
    """A 422 error: the request is not valid."""
    return HttpError(422, "invalid", message, where)


def too_large(message: str, where: Place = ()) -> HttpError:
    """A 413 error: the request exceeds a limit."""
    return HttpError(413, "too_large", message, where)


def missing(message: str, where: Place = ()) -> HttpError:
    """A 404 error: the requested thing does not exist."""
    return HttpError(404, "not_found", message, where)


def from_exception(error: Exception) -> HttpError:
    """The HTTP error for an exception raised while a request was answered; an unexpected one is logged."""
    if isinstance(error, HttpError):
        return error
    if isinstance(error, OverloadedError):
        return HttpError(429, "overloaded", str(error), headers={"Retry-After": str(error.retry_after)})
    if isinstance(error, TooLargeError):
        return too_large(str(error), error.where)
    if isinstance(error, UnknownModelError):
        return missing(str(error), ["model"])
    return invalid(str(error)) if isinstance(error, PolysemeError) else _internal_error(error)


def from_validation(error: ValidationError) -> HttpError:
    """The HTTP error for the first thing that is wrong with a request, in words that do not repeat the user's."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = [part[:_LONGEST] if isinstance(part, str) else part for part in first["loc"]]
    if first["type"] == "extra_forbidden":
        return invalid(
            f"there is no field {str(where[-1])!r:.{_LONGEST}}; see /openapi.json for those there are", where
        )
    message = first["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    if first["type"] == "missing":
        return invalid(f"the field {where[-1]} is required", where)
    return invalid(f"{_path(where)} should be {message}" if message != first["msg"] else message, where)


def add_error_handlers(app: FastAPI) -> None:
    """Answer with our error responses, whatever part of the app raises."""
    app.add_exception_handler(HttpError, _answer_http_error)
    app.add_exception_handler(HTTPException, _answer_http_exception)
    app.add_exception_handler(ClientGoneError, lambda *_: Response(status_code=499))


def _answer_http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HttpError)
    return error.response()


def _answer_http_exception(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    allowed = (error.headers or {}).get("Allow", "another method")
    known = {
        404: ("not_found", "there is nothing at this path; see /openapi.json"),
        405: ("method", f"this path takes {allowed} requests"),
    }
    kind, message = known.get(error.status_code, ("invalid", str(error.detail)))
    return HttpError(error.status_code, kind, message, headers=error.headers).response()


def _internal_error(error: Exception) -> HttpError:
    """Log an error of our own: its type and place only, since its message may contain a user's text."""
    place = extract_tb(error.__traceback__)[-1]
    fields = {"kind": type(error).__name__, "place": f"{Path(place.filename).name}:{place.lineno}"}
    logger.error("error", extra={"fields": fields})
    return HttpError(500, "fault", "internal server error; the server's log has its type and place")


def _path(where: Place) -> str:
    return "the body" if not where else str(where[0]) + "".join(f"[{part!r}]" for part in where[1:])
