"""The command line: one module per command; nothing heavy is imported before a command runs."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperGroup

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
from polyseme.cli.options import with_quiet
from polyseme.cli.progress import note
from polyseme.errors import PolysemeError

GROUPS = {
    "Start here": (demo, info),
    "Embed": (embed, convert, distil, static),
    "Language model": (train, doctor, perplexity, predict),
    "Tasks": (tag, classify, pairs),
    "Corpus": (index, neighbours, senses, drift),
    "Analysis": (report, probe, geometry, wsd, wic, similarity, analogy, spelling),
    "Serving": (serve,),
}
RUN_WITHOUT_ARGUMENTS = (demo, report, serve, info, spelling)


_WHOLE = 1000  # characters of a short help: all of it, wrapped where the terminal is narrow


class GroupedHelp(TyperGroup):
    """Command group whose plain help lists the commands under the titles of `GROUPS`."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - classes of click
        """Write a section of the help for each group of commands."""
        width = max(map(len, self.commands))
        for title in GROUPS:
            chosen = {name: one for name, one in self.commands.items() if getattr(one, "rich_help_panel", "") == title}
            with formatter.section(title):
                rows = [(name.ljust(width), one.get_short_help_str(_WHOLE)) for name, one in chosen.items()]
                formatter.write_dl(rows)


app = typer.Typer(
    name="polyseme",
    help="Contextual word vectors for Python: ELMo, transformers and static vectors behind one interface.",
    cls=GroupedHelp,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help answers in half the time
)
for title, commands in GROUPS.items():
    for command in commands:
        if isinstance(command, typer.Typer):
            for inner in command.registered_commands:
                inner.callback = inner.callback and with_quiet(inner.callback)
            app.add_typer(command, rich_help_panel=title)
        else:
            needs_arguments = command not in RUN_WITHOUT_ARGUMENTS
            app.command(rich_help_panel=title, no_args_is_help=needs_arguments)(with_quiet(command))


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"polyseme {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; an error that the user can fix is one line and exit status 2."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # like Ctrl-C: finished work is kept
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # where a terminal lacks a character
    warnings.showwarning = lambda message, *_: note(f"warning: {' '.join(str(message).split())}")
    try:
        app()
    except SystemExit as exiting:
        # typer turns Ctrl-C into a status without a message; commands that have more to say exit by themselves.
        if exiting.code == 130 and isinstance(exiting.__context__, typer.Exit):
            typer.echo("interrupted", err=True)
        raise
    except PolysemeError as error:
        _exit(f"error: {error}", 2)
    except KeyboardInterrupt:
        _exit("interrupted", 130)
    except MemoryError:
        _exit("error: this machine has too little memory for that; try a smaller model or fewer words at a time", 2)
    except BrokenPipeError:
        # The reader of our output has closed it, as `head` does: not an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(141) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _exit(f"error: {where}{error.strerror or error}", 2)


def _exit(message: str, status: int) -> None:
    typer.echo(" ".join(message.split()), err=True)
    raise SystemExit(status)
