"""``polyseme probe``: what a linear classifier finds in each layer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from polyseme.cli.options import (
    DeviceOption,
    LabelColumns,
    LayerOption,
    PlotOptions,
    SeedOption,
    ShippedArgument,
    expand_options,
)
from polyseme.cli.output import open_embedder, percent, show_table
from polyseme.cli.progress import working

if TYPE_CHECKING:
    from polyseme.analysis.layers.probe import ProbeResult
    from polyseme.text.conll import LabelledSentence, LabelSpec


@expand_options
def probe(
    train: Annotated[Path, Option(help="CoNLL columns or CoNLL-U to learn from, plain or compressed.")],
    test: Annotated[Path, Option(help="A file like TRAIN to measure on.")],
    columns: LabelColumns,
    *,
    model: ShippedArgument = None,
    dev: Annotated[Path | None, Option(help="A file like TRAIN, to choose each layer's penalty on.")] = None,
    layer: LayerOption = "all",
    limit: Annotated[int | None, Option(min=1, help="Use at most this many sentences of each file.")] = None,
    penalty: Annotated[float, Option("--inverse-penalty", help="Inverse of the L2 penalty, scikit-learn's C.")] = 1.0,
    control: Annotated[bool, Option(help="Fit the control task too.")] = True,
    seed: SeedOption = 0,
    output: PlotOptions,
    device: DeviceOption = "cpu",
) -> None:
    """Measure what a linear classifier finds in each layer.

    Logistic regression predicts a column or feature of a CoNLL file from each layer's vectors. A control task gives
    each distinct word a random label; selectivity is the accuracy minus that of the control task.
    """
    from polyseme.analysis.layers.probe import ProbeSettings, draw_probe
    from polyseme.analysis.layers.probe import probe as run
    from polyseme.embedding.layers import parse_choice
    from polyseme.text.conll import label_name

    output.check()
    labels = columns.labels()
    settings = ProbeSettings(parse_choice(layer), control, penalty, seed, device)
    training, testing, tuning = (path and _read(path, labels, limit) for path in (train, test, dev))
    name = label_name(train, labels)
    embedder = open_embedder(model, device)
    with working("embedding and fitting"):
        result = run(embedder, training or [], testing or [], settings, tuning)
    table = {**vars(result), "labelled": name, "train": train, "test": test, "dev": dev, "limit": limit}
    output.present(table, lambda: _show(result, name, limit))
    output.draw(lambda: draw_probe(result, name))


def _read(path: Path, labels: LabelSpec, limit: int | None) -> list[LabelledSentence]:
    from itertools import islice

    from polyseme.text.conll import read_labelled

    return list(islice(read_labelled(path, labels), limit))


def _show(result: ProbeResult, labels: str, limit: int | None) -> None:
    rows = [
        (str(row.layer), percent(row.accuracy), percent(row.control), percent(row.selectivity)) for row in result.layers
    ]
    title = f"{result.model}: {labels} by a linear probe, % of {result.test_words:,} words"
    show_table(title, ("layer", "accuracy", "control", "selectivity"), rows)
    part = f" (the first {limit:,} sentences of each file)" if limit else ""
    typer.echo(
        f"{result.labels} labels, {result.train_words:,} words to learn from{part}; baselines: most frequent label "
        f"{percent(result.commonest)}, most frequent label of each word {percent(result.by_word)}"
    )
    if result.unseen:
        missed = ", ".join(f"{label} ({count:,})" for label, count in list(result.unseen.items())[:8])
        typer.echo(f"never seen in training, and counted as wrong: {missed}")
