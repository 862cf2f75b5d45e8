"""``polyseme distil``: static vectors out of a model that knows context."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.cli.commands.static import OutputOption, OverwriteOption, TextArgument, check_output, several_times
from polyseme.cli.corpus_source import RawOption
from polyseme.cli.output import DeviceOption, ModelArgument, Progress, SeedOption, open_embedder, size

if TYPE_CHECKING:
    from polyseme.corpus.distil import Distilled, DistilPlan, DistilSettings
    from polyseme.embedding.interfaces import Embedder


def distil(
    model: ModelArgument,
    inputs: TextArgument,
    output: OutputOption,
    raw: RawOption = False,
    layer: Annotated[str, typer.Option(help="A number, average (of all), top, or a mix like 0.2,0.5,0.3.")] = "average",
    min_count: Annotated[int, typer.Option(help="How often a word must occur, and for --senses each sense.")] = 5,
    max_words: Annotated[int, typer.Option(help="The most frequent words, so many at most.")] = 50_000,
    lower: Annotated[bool, typer.Option("--lower", help="One vector for words that differ in case.")] = False,
    uses: Annotated[
        int | None,
        typer.Option(
            help="At most so many uses of a word, by lot. [default: all; 100 with --senses]", show_default=False
        ),
    ] = None,
    senses: Annotated[int, typer.Option(help="Vectors a word, at most: its uses in so many clusters.")] = 1,
    memory: Annotated[float, typer.Option(min=0, help="GB that the vectors may take meanwhile.")] = 4.0,
    seed: SeedOption = 0,
    device: DeviceOption = "cpu",
    overwrite: OverwriteOption = False,
) -> None:
    """Make one vector a word, the average over the contexts it was seen in; or several, one for each sense.

    With --senses words are called bank#1, bank#2, ..., and OUTPUT.senses.tsv shows typical contexts of each. Takes 8
    bytes of memory for each number of an average, 4 for each of a use that is clustered.
    """
    from polyseme.corpus.distil import DistilSettings, make_plan
    from polyseme.embedding.layers import parse_choice

    settings = DistilSettings(
        parse_choice(layer), min_count, max_words, lower, uses, senses, memory=int(min(memory, 1e9) * 1e9), seed=seed
    )
    check_output(output, overwrite)
    if senses > 1:
        check_output(contexts_file(output), overwrite)
    embedder = open_embedder(model, device)
    with several_times(inputs, raw) as text:
        plan = make_plan(embedder, text, settings)
        _say(plan)
        result = _distil(embedder, text, plan, settings)
    _write(output, result)
    typer.echo(f"{output} written: {len(result.words):,} vectors of {plan.dim:,} dimensions")


def contexts_file(output: Path) -> Path:
    """Where typical contexts of the senses go."""
    return output.with_name(f"{output.stem}.senses.tsv")


def _say(plan: DistilPlan) -> None:
    what = f"{len(plan.words):,} words, {plan.uses.sum():,} of {plan.counts.sum():,} uses"
    typer.echo(f"{what}; their vectors take {size(plan.bytes)} meanwhile", err=True)


def _distil(embedder: Embedder, text: Iterable[list[str]], plan: DistilPlan, settings: DistilSettings) -> Distilled:
    """Show how far it is: sentences read, those that need not be embedded among them."""
    from polyseme.corpus.distil import distil

    with Progress(0) as progress:

        def read() -> Iterator[list[str]]:
            for words in text:
                yield words
                progress.advance(words, Counter())

        return distil(embedder, read(), plan, settings)


def _write(output: Path, result: Distilled) -> None:
    from polyseme.files import atomic_write
    from polyseme.formats.vectors.text import write

    write(output, result.words, result.vectors, result.vectors.shape[1])
    if result.senses:
        lines = ["sense\tuses\tcontext"]
        lines += [f"{sense.key}\t{sense.uses}\t{context}" for sense in result.senses for context in sense.contexts]
        with atomic_write(contexts_file(output)) as file:
            file.write(("\n".join(lines) + "\n").encode("utf-8", "backslashreplace"))
