"""``polyseme serve``: an HTTP server for models, with a page to explore them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from polyseme.cli.options import MODELS, DeviceOption
from polyseme.cli.progress import working
from polyseme.errors import ConfigError, require

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def serve(
    model: Annotated[list[str] | None, Option(help=f"{MODELS}; repeatable. [default: english]")] = None,
    tagger: Annotated[str | None, Option(help="A folder that `polyseme tag fit` wrote.")] = None,
    host: Annotated[str, Option(help="Address to listen on; 0.0.0.0 is open to the network.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="Port to listen on; 0 takes any free one.")] = 8000,
    key_file: Annotated[Path | None, Option(help="File with the key that clients send; or set POLYSEME_KEY.")] = None,
    cors: Annotated[
        list[str] | None, Option(metavar="ORIGIN", help="Site that may send requests, like https://example.org.")
    ] = None,
    allow_host: Annotated[
        list[str] | None, Option(metavar="NAME", help="Name by which clients reach it, like example.org; repeatable.")
    ] = None,
    limit: Annotated[
        list[str] | None, Option(metavar="NAME=NUMBER", help="Change a limit, like words=8192; repeatable.")
    ] = None,
    log: Annotated[bool, Option("--log", help="Log every request: route, status, time; never its text.")] = False,
    precision: Annotated[str, Option(help="Precision of ELMo: float32, int8 on a CPU, ...")] = "float32",
    device: DeviceOption = "cpu",
) -> None:
    """Serve vectors, predictions and labels over HTTP.

    The server also has a page to explore the models with.
    """
    for module in ("fastapi", "uvicorn", "orjson"):
        require(module, "serve")
    from polyseme.serving.settings import ServeSettings, parse_limits

    hosts = tuple(name.lower() for name in allow_host or ())
    settings = ServeSettings(_key(key_file), tuple(cors or ()), parse_limits(limit or ()), hosts)
    if host not in LOOPBACK and settings.key is None:
        typer.echo(f"warning: {host} is open to other machines, and no key is required; see --key-file", err=True)
    from polyseme.serving.app import create_app
    from polyseme.serving.engine.catalogue import open_catalogue
    from polyseme.serving.server import Server, log_to_stderr

    with working("opening models"):
        catalogue = open_catalogue(model or [None], tagger, device, precision)
    log_to_stderr(log)
    server = Server(create_app(catalogue, settings), host, port)
    server.serve_until_stopped(typer.echo, working("embedding the example sentences"))
    sys.stdout.flush()
    os._exit(0)  # to tear torch down would take longer than all of the shutdown


def _key(path: Path | None) -> str | None:
    if path is None:
        return os.environ.get("POLYSEME_KEY") or None
    try:
        return path.read_text("utf-8").strip()
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not a text file; a key file holds one line") from None
