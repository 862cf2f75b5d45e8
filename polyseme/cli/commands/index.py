"""``polyseme index``: a corpus with its vectors, ready to be searched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.cli.corpus_source import RawOption, TextFiles
from polyseme.cli.output import DeviceOption, Progress, ShippedOption, open_embedder, size
from polyseme.errors import ConfigError, PolysemeError

if TYPE_CHECKING:
    from polyseme.corpus.index_job import IndexJob


def index(
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="CORPUS", help="Text files, folders, patterns, or - (stdin); .gz .bz2 .xz .zst too."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to make.")],
    model: ShippedOption = None,
    layer: Annotated[str, typer.Option(help="all, or the number of the one to keep, which takes less room.")] = "all",
    raw: RawOption = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many sentences.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue what was interrupted.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the output.")] = False,
    device: DeviceOption = "cpu",
) -> None:
    """Embed a corpus once, for neighbours and senses to search.

    Takes 2 bytes a number: a million words in three layers of 256 are 1.5 GB, and twice that while it is made.
    """
    from polyseme.corpus.index_job import IndexJob
    from polyseme.embedding.layers import parse_choice

    if resume and overwrite:
        raise ConfigError("--resume goes on with a run and --overwrite forgets it; say one of them")
    choice, text = parse_choice(layer), TextFiles(inputs, raw, limit)
    job = IndexJob(open_embedder(model, device), output, choice, _absolute(model), resume, overwrite)
    _run(job, iter(text))
    total = sum(file.stat().st_size for file in output.iterdir())
    typer.echo(f"{output} written ({size(total)})")


def _run(job: IndexJob, sentences: Iterator[list[str]]) -> None:
    """Show how far the job is, and save what it has finished however it ends."""
    try:
        with Progress(job.parts.done) as progress:
            for words in job.run(sentences):
                progress.advance(words, job.embedder.misread(words))
        job.finish()
    except (KeyboardInterrupt, PolysemeError, OSError, MemoryError) as error:
        job.keep()
        if isinstance(error, KeyboardInterrupt):
            kept = f"{job.parts.done:,} sentences are kept; the same command with --resume goes on"
            typer.echo(f"interrupted: {kept if job.parts.done else 'nothing was finished yet'}", err=True)
            raise SystemExit(130) from None
        raise
    progress.report(job.embedder)


def _absolute(model: str | None) -> str:
    """The path of a model for later, from wherever that is asked; a name, on a hub or of the one that ships, stays."""
    from polyseme.formats import SHIPPED_MODEL

    if model is None:
        return SHIPPED_MODEL
    return str(Path(model).absolute()) if Path(model).exists() else model
