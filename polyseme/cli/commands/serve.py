"""``polyseme serve``: the models over HTTP, and a page to explore with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polyseme.cli.output import DeviceOption, working
from polyseme.errors import ConfigError, require

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def serve(
    model: Annotated[
        list[str] | None,
        typer.Option(help="ELMo of any format, a transformers folder, a vector file; several: give it several times."),
    ] = None,
    tagger: Annotated[str | None, typer.Option(help="A folder that `polyseme tag fit` wrote.")] = None,
    host: Annotated[str, typer.Option(help="The address to listen at; 0.0.0.0 is open to the network.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any that is free.")] = 8000,
    key_file: Annotated[
        Path | None, typer.Option(help="A file with a key that clients must show; or set POLYSEME_KEY.")
    ] = None,
    cors: Annotated[
        list[str] | None, typer.Option(metavar="ORIGIN", help="A site whose pages may ask, as https://example.org.")
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=NUMBER", help="Change a limit, as words=8192 or deadline=5; several times."),
    ] = None,
    log: Annotated[bool, typer.Option("--log", help="Log every request: route, status, time; never its text.")] = False,
    precision: Annotated[str, typer.Option(help="Of ELMo's computation: float32, int8 on a CPU, ...")] = "float32",
    device: DeviceOption = "cpu",
) -> None:
    """Answer requests for vectors, neighbours, predictions and labels over HTTP, with a page to look at them."""
    for module in ("fastapi", "uvicorn", "orjson"):
        require(module, "serve")
    from polyseme.serving.settings import ServeSettings, parse_limits

    settings = ServeSettings(_key(key_file), tuple(cors or ()), parse_limits(limit or ()))
    if host not in LOOPBACK and settings.key is None:
        typer.echo(f"warning: {host} is open to others, and no key is asked for; see --key-file", err=True)
    from polyseme.serving.app import create_app
    from polyseme.serving.engine.catalogue import open_catalogue
    from polyseme.serving.server import Server, log_to_stderr

    with working("opening models"):
        catalogue = open_catalogue(model or [None], tagger, device, precision)
    log_to_stderr(log)
    Server(create_app(catalogue, settings), host, port).serve_until_stopped(typer.echo)


def _key(path: Path | None) -> str | None:
    import os

    if path is None:
        return os.environ.get("POLYSEME_KEY") or None
    try:
        return path.read_text("utf-8").strip()
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is no text; a key file holds one line") from None
