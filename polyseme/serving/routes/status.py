"""Routes about the server itself: models, health checks, Prometheus metrics, and the web page."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import PlainTextResponse, Response
from starlette.staticfiles import StaticFiles

from polyseme.serving.engine.service import Service
from polyseme.serving.http.responses import json_response

PAGE = Path(__file__).parent.parent / "page"
router = APIRouter()


@router.get("/v1/models")
async def models(request: Request) -> Response:
    """The models with their kinds and sizes, the tagger, and the limits on a request."""
    service: Service = request.app.state.service
    limits = {name: getattr(service.limits, name) for name in ("sentences", "words", "sentence_words")}
    return json_response({**service.catalogue.describe(), "limits": limits})


@router.get("/health")
async def health() -> Response:
    """Liveness: 200 while the process runs."""
    return json_response({"status": "alive"})


@router.get("/ready")
async def ready(request: Request) -> Response:
    """Readiness: 200 while the server accepts requests, 503 otherwise."""
    is_ready = request.app.state.service.ready
    return json_response({"status": "ready" if is_ready else "not ready"}, 200 if is_ready else 503)


@router.get("/metrics")
async def metrics(request: Request) -> Response:
    """Metrics in the Prometheus text format."""
    return PlainTextResponse(request.app.state.service.metrics.text(), media_type="text/plain; version=0.0.4")


def add_page(app: FastAPI) -> None:
    """Serve the web page at ``/`` and ``/page/``; its files are at both, so that it can refer to them either way."""
    files = StaticFiles(directory=PAGE, html=True, check_dir=False)
    app.mount("/page", files)

    @app.get("/", include_in_schema=False)
    @app.get("/{name}", include_in_schema=False)
    async def page(request: Request, name: str = "index.html") -> Response:
        return await files.get_response(name, request.scope)
