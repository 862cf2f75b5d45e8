"""The command line. One file a command; nothing heavy is imported before a command runs."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from io import TextIOWrapper
from typing import Annotated

import typer

from polyseme import __version__
from polyseme.cli.commands.analogy import analogy
from polyseme.cli.commands.classify import classify
from polyseme.cli.commands.convert import convert
from polyseme.cli.commands.demo import demo
from polyseme.cli.commands.distil import distil
from polyseme.cli.commands.doctor import doctor
from polyseme.cli.commands.drift import drift
from polyseme.cli.commands.embed import embed
from polyseme.cli.commands.geometry import geometry
from polyseme.cli.commands.index import index
from polyseme.cli.commands.info import info
from polyseme.cli.commands.neighbours import neighbours
from polyseme.cli.commands.pairs import pairs
from polyseme.cli.commands.perplexity import perplexity
from polyseme.cli.commands.predict import predict
from polyseme.cli.commands.probe import probe
from polyseme.cli.commands.report import report
from polyseme.cli.commands.senses import senses
from polyseme.cli.commands.serve import serve
from polyseme.cli.commands.similarity import similarity
from polyseme.cli.commands.spelling import spelling
from polyseme.cli.commands.static import static
from polyseme.cli.commands.tag import tag
from polyseme.cli.commands.train import train
from polyseme.cli.commands.wic import wic
from polyseme.cli.commands.wsd import wsd
from polyseme.errors import PolysemeError

app = typer.Typer(
    name="polyseme",
    help="Contextual word vectors: ELMo, whole and alive.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help answers in half the time
)
for command in (demo, report, serve, embed, convert, info, index, neighbours, senses, wsd, drift, distil):
    app.command(no_args_is_help=command not in (demo, report, serve, info))(command)
for command in (train, perplexity, predict, probe, geometry, wic, similarity, analogy, spelling, doctor):
    app.command(no_args_is_help=command is not spelling)(command)
app.add_typer(static, name="static")
app.add_typer(tag, name="tag")
app.add_typer(classify, name="classify")
app.add_typer(pairs, name="pairs")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"polyseme {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run a command; a fault that the user can mend is one line and exit status 2."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as gentle as Ctrl-C: what is finished is kept
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a character shows a question mark
    warnings.showwarning = lambda message, *_: typer.echo(f"warning: {' '.join(str(message).split())}", err=True)
    try:
        app()
    except SystemExit as leaving:
        # typer makes a status of Ctrl-C, without a word; commands that have more to say leave by themselves.
        if leaving.code == 130 and isinstance(leaving.__context__, typer.Exit):
            typer.echo("interrupted", err=True)
        raise
    except PolysemeError as error:
        _leave(f"error: {error}", 2)
    except KeyboardInterrupt:
        _leave("interrupted", 130)
    except BrokenPipeError:
        # The reader of our output has left, as `head` does: no fault of anybody's.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(141) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _leave(f"error: {where}{error.strerror or error}", 2)


def _leave(message: str, status: int) -> None:
    typer.echo(" ".join(message.split()), err=True)
    raise SystemExit(status)
