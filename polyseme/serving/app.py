"""The app, made by a factory: routes around a `Service`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from traceback import extract_tb
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import PlainTextResponse, Response
from starlette.staticfiles import StaticFiles

from polyseme import __version__
from polyseme.errors import PolysemeError
from polyseme.serving.engine.catalogue import Catalogue
from polyseme.serving.engine.service import Service, Visit
from polyseme.serving.http import schema
from polyseme.serving.http.errors import HttpError, invalid, overloaded
from polyseme.serving.http.middleware import Door
from polyseme.serving.http.openapi import describe
from polyseme.serving.http.requests import GoneError, as_json, fault_as_json, gone, read, understand
from polyseme.serving.http.responses import as_answer
from polyseme.serving.settings import ServeSettings

M = TypeVar("M", bound=BaseModel)
PAGE = Path(__file__).parent / "page"
logger = logging.getLogger("polyseme.serving")


def create_app(catalogue: Catalogue, settings: ServeSettings | None = None) -> FastAPI:
    """The app that serves some models. Its `Service` is ``app.state.service``."""
    service = Service(catalogue, settings or ServeSettings())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        await asyncio.to_thread(service.batcher.close)

    app = FastAPI(title="polyseme", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.service = service
    app.add_exception_handler(HttpError, _answer_fault)
    app.add_exception_handler(HTTPException, _answer_http_exception)
    app.add_exception_handler(GoneError, lambda *_: Response(status_code=499))
    _add_routes(app, service)
    app.add_middleware(Door, service=service)
    if origins := service.settings.origins:  # around the door, so that pages can read its refusals too
        shown = ["Retry-After"]
        app.add_middleware(
            CORSMiddleware, allow_origins=origins, allow_methods=["*"], allow_headers=["*"], expose_headers=shown
        )
    app.openapi = lambda: describe(app, service.limits)
    return app


def _add_routes(app: FastAPI, service: Service) -> None:
    _add_asked(app, service, "/v1/words", schema.WordsAsked, service.words)
    _add_asked(app, service, "/v1/embeddings", schema.EmbeddingsAsked, service.embeddings)
    _add_asked(app, service, "/v1/neighbours", schema.NeighboursAsked, service.find_neighbours)
    _add_asked(app, service, "/v1/compare", schema.CompareAsked, service.compare)
    _add_asked(app, service, "/v1/predict", schema.PredictAsked, service.predict)
    _add_asked(app, service, "/v1/tag", schema.TagsAsked, service.tag)

    @app.get("/v1/models")
    async def models() -> Response:
        limits = service.limits
        allowed = {"sentences": limits.sentences, "words": limits.words, "sentence_words": limits.sentence_words}
        return as_json({**service.catalogue.describe(), "limits": allowed})

    @app.get("/health")
    async def health() -> Response:
        return as_json({"status": "alive"})

    @app.get("/ready")
    async def ready() -> Response:
        return as_json({"status": "ready" if service.ready else "not ready"}, 200 if service.ready else 503)

    @app.get("/metrics")
    async def metrics() -> Response:
        return PlainTextResponse(service.metrics.text(), media_type="text/plain; version=0.0.4")

    _add_page(app)


def _add_page(app: FastAPI) -> None:
    """The page at ``/`` and at ``/page/``; its files lie beside it, so that it can name them either way."""
    files = StaticFiles(directory=PAGE, html=True, check_dir=False)
    app.mount("/page", files)

    @app.get("/", include_in_schema=False)
    @app.get("/{name}", include_in_schema=False)
    async def page(request: Request, name: str = "index.html") -> Response:
        return await files.get_response(name, request.scope)


def _add_asked(
    app: FastAPI, service: Service, path: str, kind: type[M], answer: Callable[[M, Visit], Awaitable[Any]]
) -> None:
    """A route that reads a request, and answers it in time or not at all."""

    async def endpoint(request: Request) -> Response:
        body = await read(request, service.limits)
        return await _in_time(request, service, _answered(request, understand(body, kind), answer))

    app.add_api_route(
        path, endpoint, methods=["POST"], summary=(kind.__doc__ or "").strip(), name=path.rpartition("/")[2]
    )


async def _answered(request: Request, asked: M, answer: Callable[[M, Visit], Awaitable[Any]]) -> Response:
    try:
        return await as_answer(request, asked, await answer(asked, request.scope["visit"]))
    except PolysemeError as error:
        raise invalid(str(error)) from error
    except HttpError:
        raise
    except Exception as error:
        raise _mistake(error) from None


async def _in_time(request: Request, service: Service, work: Any) -> Response:  # noqa: ANN401 - a coroutine
    """Wait for an answer until the deadline, or until nobody is there to take it."""
    answering, leaving = asyncio.ensure_future(work), asyncio.ensure_future(gone(request))
    try:
        await asyncio.wait((answering, leaving), timeout=service.limits.deadline, return_when=asyncio.FIRST_COMPLETED)
        if answering.done():
            return answering.result()
        if leaving.done():
            raise GoneError
        service.metrics.dropped.add(reason="deadline")
        raise overloaded(service.limits.deadline / 2)
    finally:
        for task in (answering, leaving):
            task.cancel()


def _answer_fault(_: Request, error: Exception) -> Response:
    assert isinstance(error, HttpError)
    return fault_as_json(error)


def _answer_http_exception(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    allowed = (error.headers or {}).get("Allow", "another method")
    known = {
        404: ("not_found", "there is nothing here; see /openapi.json"),
        405: ("method", f"this is asked with {allowed}"),
    }
    kind, message = known.get(error.status_code, ("invalid", str(error.detail)))
    return fault_as_json(HttpError(error.status_code, kind, message, headers=error.headers))


def _mistake(error: Exception) -> HttpError:
    """Log an error of our own. Its message may hold what a user wrote, so only its kind and place are told."""
    place = extract_tb(error.__traceback__)[-1]
    about = {"kind": type(error).__name__, "place": f"{Path(place.filename).name}:{place.lineno}"}
    logger.error("fault", extra={"fields": about})
    return HttpError(500, "fault", "the server made a mistake; its log says where")
