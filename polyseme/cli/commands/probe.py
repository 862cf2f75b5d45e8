"""``polyseme probe``: what a linear classifier finds in each layer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.cli.output import (
    DeviceOption,
    JsonOption,
    LayerOption,
    PlotOption,
    SeedOption,
    ShippedArgument,
    check_outputs,
    open_embedder,
    percent,
    show_table,
    working,
    write_json,
)

if TYPE_CHECKING:
    from polyseme.analysis.layers.probe import ProbeResult
    from polyseme.text.conll import LabelledSentence, LabelSpec


def probe(
    train: Annotated[Path, typer.Option(help="CoNLL columns or CoNLL-U, plain or compressed.")],
    test: Annotated[Path, typer.Option(help="The same, to measure on.")],
    model: ShippedArgument = None,
    dev: Annotated[Path | None, typer.Option(help="The same, to choose each layer's penalty by.")] = None,
    column: Annotated[
        str | None,
        typer.Option(help="The labels: a number from 1, or a name as upos. [default: upos, or the last column]"),
    ] = None,
    feature: Annotated[str | None, typer.Option(help="Or a feature of CoNLL-U, as Tense.")] = None,
    word_column: Annotated[int | None, typer.Option(min=1, help="The words. [default: 2 in CoNLL-U, else 1]")] = None,
    layer: LayerOption = "all",
    limit: Annotated[int | None, typer.Option(min=1, help="Use only the first so many sentences of each file.")] = None,
    penalty: Annotated[float, typer.Option("--inverse-penalty", help="scikit-learn's C.")] = 1.0,
    control: Annotated[bool, typer.Option(help="Fit the control task too.")] = True,
    seed: SeedOption = 0,
    json: JsonOption = None,
    plot: PlotOption = None,
    device: DeviceOption = "cpu",
) -> None:
    """Learn a column or feature of a CoNLL file from each layer, by logistic regression, with a control task.

    The control task gives each distinct word a label by lot; accuracy less its accuracy is selectivity.
    """
    from polyseme.analysis.layers.probe import ProbeSettings, draw_probe
    from polyseme.analysis.layers.probe import probe as run
    from polyseme.embedding.layers import parse_choice
    from polyseme.plots import save_figure
    from polyseme.text.conll import LabelSpec, label_name

    check_outputs(json, plot)
    wanted = LabelSpec(column, feature, word_column)
    settings = ProbeSettings(parse_choice(layer), control, penalty, seed, device)
    known, asked, judged = (path and _read(path, wanted, limit) for path in (train, test, dev))
    name = label_name(train, wanted)
    embedder = open_embedder(model, device)
    with working("embedding and fitting"):
        result = run(embedder, known or [], asked or [], settings, judged)
    if json:
        write_json(json, {**vars(result), "labelled": name, "train": train, "test": test, "dev": dev, "limit": limit})
    if json != "-":
        _show(result, name, limit)
    if plot:
        save_figure(draw_probe(result, name), plot)


def _read(path: Path, wanted: LabelSpec, limit: int | None) -> list[LabelledSentence]:
    from itertools import islice

    from polyseme.text.conll import read_labelled

    return list(islice(read_labelled(path, wanted), limit))


def _show(result: ProbeResult, labels: str, limit: int | None) -> None:
    rows = [
        (str(row.layer), percent(row.accuracy), percent(row.control), percent(row.selectivity)) for row in result.layers
    ]
    title = f"{result.model}: {labels} by a linear probe, % of {result.test_words:,} words"
    show_table(title, ("layer", "accuracy", "control", "selectivity"), rows)
    part = f" (the first {limit:,} sentences of each file)" if limit else ""
    typer.echo(
        f"{result.labels} labels, {result.train_words:,} words to learn from{part}; always the commonest label: "
        f"{percent(result.commonest)}, each word's usual label: {percent(result.by_word)}"
    )
    if result.unseen:
        missed = ", ".join(f"{label} ({count:,})" for label, count in list(result.unseen.items())[:8])
        typer.echo(f"labels that training does not have, counted as wrong: {missed}")
