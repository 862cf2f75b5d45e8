"""``polyseme index``: a corpus with its vectors, embedded once for searches."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from polyseme.cli.corpus_source import TextFiles
from polyseme.cli.options import (
    TEXT_FILES,
    DeviceOption,
    OverwriteOption,
    RawOption,
    ResumeOption,
    ShippedOption,
)
from polyseme.cli.output import file_size, open_embedder
from polyseme.cli.progress import announce, keep_finished, note, nothing_to_resume, shown
from polyseme.cli.summary import EmbedStatistics, FileContents
from polyseme.files import check_restart, locked_output


def index(
    inputs: Annotated[list[str], Argument(metavar="CORPUS", help=TEXT_FILES)],
    output: Annotated[Path, Option("--output", "-o", help="The folder to write the index to.")],
    model: ShippedOption = None,
    layer: Annotated[str, Option(help="all, or the number of one layer, which takes less space.")] = "all",
    raw: RawOption = False,
    limit: Annotated[int | None, Option(min=1, help="Read only this many sentences.")] = None,
    resume: ResumeOption = False,
    overwrite: OverwriteOption = False,
    device: DeviceOption = "cpu",
) -> None:
    """Embed a corpus once, for fast searches.

    `polyseme neighbours` and `polyseme senses` search it. An index takes 2 bytes per number: a million words in three
    layers of 256 are 1.5 GB, and twice that while it is written.
    """
    from polyseme.corpus.index_job import IndexJob
    from polyseme.embedding.layers import parse_choice
    from polyseme.embedding.parts import parts_folder
    from polyseme.progress import track

    check_restart(resume, overwrite)
    if resume and not parts_folder(output).exists():
        if output.exists():
            announce(f"{output} is already finished")
            return
        note(f"note: {nothing_to_resume(output)}")
    choice, text = parse_choice(layer), TextFiles(inputs, raw, limit)
    with locked_output(output):
        job = IndexJob(open_embedder(model, device), output, choice, _absolute(model), resume, overwrite)
        statistics, contents = EmbedStatistics(job.embedder, job.parts.done), FileContents()
        with keep_finished(job.parts), shown():
            statistics.watch(job.run(text))
            job.finish(lambda records: contents.count(track(records, f"writing {output}", job.parts.done)))
    total = sum(file.stat().st_size for file in output.iterdir())
    announce(f"{output} written ({file_size(total)}): {contents}")
    statistics.report()


def _absolute(model: str | None) -> str:
    """The model's absolute path, for later use from any folder; the name of a published model stays."""
    from polyseme.formats import SHIPPED_MODEL

    if model is None:
        return SHIPPED_MODEL
    return str(Path(model).absolute()) if Path(model).exists() else model
