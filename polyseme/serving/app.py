"""The app factory: a FastAPI app with its routes, error handlers and middleware around one `Service`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from polyseme import __version__
from polyseme.serving.engine.catalogue import Catalogue
from polyseme.serving.engine.service import Service
from polyseme.serving.http.errors import add_error_handlers
from polyseme.serving.http.middleware import AccessMiddleware
from polyseme.serving.http.openapi import openapi_document
from polyseme.serving.routes import exploring, prediction, status, vectors
from polyseme.serving.settings import ServeSettings


def create_app(catalogue: Catalogue, settings: ServeSettings | None = None) -> FastAPI:
    """Create the app that serves the models of a catalogue. Its `Service` is ``app.state.service``."""
    service = Service(catalogue, settings or ServeSettings())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        await service.close()

    app = FastAPI(title="polyseme", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.service = service
    add_error_handlers(app)
    for routes in (vectors, exploring, prediction, status):
        app.include_router(routes.router)
    status.add_page(app)
    app.add_middleware(AccessMiddleware, service=service)
    if origins := service.settings.origins:  # outside the access middleware, so that pages can read its refusals too
        exposed = ["Retry-After"]
        app.add_middleware(
            CORSMiddleware, allow_origins=origins, allow_methods=["*"], allow_headers=["*"], expose_headers=exposed
        )
    app.openapi = lambda: openapi_document(app, service.limits)
    return app
