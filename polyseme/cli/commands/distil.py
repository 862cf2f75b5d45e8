"""``polyseme distil``: static word vectors, distilled from a contextual model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from polyseme.cli.commands.static import OutputOption, TextArgument, check_output, rereadable
from polyseme.cli.options import DeviceOption, ModelArgument, OverwriteOption, RawOption, SeedOption
from polyseme.cli.output import file_size, open_embedder
from polyseme.cli.progress import announce, note, shown
from polyseme.files import atomic_write, locked_output

if TYPE_CHECKING:
    from polyseme.corpus.distil import Distilled, DistilPlan


def distil(
    model: ModelArgument,
    inputs: TextArgument,
    output: OutputOption,
    raw: RawOption = False,
    layer: Annotated[str, Option(help="A number, average, top, or a mix like 0.2,0.5,0.3.")] = "average",
    min_count: Annotated[int, Option(help="Minimum number of uses of a word or sense.")] = 5,
    max_words: Annotated[int, Option(help="Keep at most this many words, the most frequent ones.")] = 50_000,
    lower: Annotated[bool, Option("--lower", help="Ignore case: one vector for Bank and bank.")] = False,
    uses: Annotated[int | None, Option(help="Uses of a word to sample. [default: all; 100 with --senses]")] = None,
    senses: Annotated[int, Option(help="At most this many vectors per word, one per cluster of its uses.")] = 1,
    memory: Annotated[float, Option(min=0, help="GB of memory that the vectors may take.")] = 4.0,
    seed: SeedOption = 0,
    device: DeviceOption = "cpu",
    overwrite: OverwriteOption = False,
) -> None:
    """Make static vectors from a contextual model.

    A word gets the average of its vectors over all its contexts, or with --senses several vectors, one per sense: words
    are then called bank#1, bank#2, ..., and OUTPUT.senses.tsv shows typical contexts of each. Takes 8 bytes of memory
    for each number of an average, 4 for each number of a use that is clustered.
    """
    from polyseme.corpus.distil import DistilSettings, make_plan
    from polyseme.corpus.distil import distil as run
    from polyseme.embedding.layers import parse_choice
    from polyseme.progress import stage

    settings = DistilSettings(
        parse_choice(layer), min_count, max_words, lower, uses, senses, memory=int(min(memory, 1e9) * 1e9), seed=seed
    )
    with locked_output(output):
        check_output(output, overwrite)
        if senses > 1:
            check_output(contexts_file(output), overwrite)
        embedder = open_embedder(model, device)
        with shown(), rereadable(inputs, raw) as text:
            with stage("counting words"):
                plan = make_plan(embedder, text, settings)
            _show_plan(plan)
            result = run(embedder, text, plan, settings)
        _write(output, result)
    announce(f"{output} written: {len(result.words):,} vectors of {plan.dim:,} dimensions")


def contexts_file(output: Path) -> Path:
    """The file for typical contexts of each sense."""
    return output.with_name(f"{output.stem}.senses.tsv")


def _show_plan(plan: DistilPlan) -> None:
    what = f"{len(plan.words):,} words, {plan.uses.sum():,} of {plan.counts.sum():,} uses"
    note(f"{what}; their vectors take {file_size(plan.bytes)} of memory")


def _write(output: Path, result: Distilled) -> None:
    from polyseme.formats.vectors.text import write

    write(output, result.words, result.vectors, result.vectors.shape[1])
    if result.senses:
        lines = ["sense\tuses\tcontext"]
        lines += [f"{sense.key}\t{sense.uses}\t{context}" for sense in result.senses for context in sense.contexts]
        with atomic_write(contexts_file(output)) as file:
            file.write(("\n".join(lines) + "\n").encode("utf-8", "backslashreplace"))
