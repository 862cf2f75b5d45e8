"""``polyseme perplexity``: how surprised a language model is by a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.cli.corpus_source import RawOption
from polyseme.cli.output import (
    DeviceOption,
    JsonOption,
    counted_as,
    decimals,
    percent,
    show_table,
    working,
    write_json,
)

if TYPE_CHECKING:
    from polyseme.lm import LanguageModel, Perplexity
    from polyseme.text.corpus import Source

STATES = {False: "fresh at each sentence", True: "carried within a document"}


def perplexity(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A model with a softmax; english is the one that ships.")
    ],
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="TEXT", help="Text files, folders, patterns, or - (stdin); .gz .bz2 .xz .zst too."),
    ],
    raw: RawOption = False,
    carried: Annotated[
        bool | None,
        typer.Option("--carried/--fresh", help="Measure only so. [default: both]", show_default=False),
    ] = None,
    json: JsonOption = None,
    device: DeviceOption = "cpu",
) -> None:
    """Measure a text, a sentence a line, by the full softmax; blank lines part documents.

    State is fresh at each sentence, as when sentences are embedded, or carried through each document, as in training.
    """
    from polyseme.lm import LanguageModel
    from polyseme.text.corpus import expand

    sources = expand(inputs)
    with working(f"opening {model}"):
        opened = LanguageModel.load(model, device=device)
    with working("reading"):
        results = _measure(opened, sources, raw, [*STATES] if carried is None else [carried])
    if json:
        words = opened.softmax.config.num_words
        write_json(json, {"model": opened.name, "softmax": "full", "known_words": words, "results": results})
    if json != "-":
        _show(opened, results)


def _measure(model: LanguageModel, sources: list[Source], raw: bool, states: list[bool]) -> list[Perplexity]:
    """In one reading, so that standard input will do."""
    from polyseme.lm import read_documents
    from polyseme.lm.documents import number_documents
    from polyseme.lm.perplexity import PerplexityMeter

    measures = [PerplexityMeter(model, carried) for carried in states]
    for window in number_documents(read_documents(sources, raw), model.window):
        reader = model.scorer(window.words)
        for measure in measures:
            measure.add(window, reader)
    return [measure.result() for measure in measures]


def _show(model: LanguageModel, results: list[Perplexity]) -> None:
    rows = [
        (
            STATES[result.carried],
            *(decimals(value, 2) for value in (result.forward, result.backward, result.both)),
            decimals(result.bits_per_character),
        )
        for result in results
    ]
    words = model.softmax.config.num_words
    title = f"{model.name}: perplexity, by the full softmax over {words:,} words"
    show_table(title, ("state", "forward", "backward", "both", "bits per character"), rows)
    text = results[0]
    typer.echo(
        f"{text.tokens:,} tokens: {counted_as(text.words, 'word')} and a boundary for each of "
        f"{counted_as(text.sentences, 'sentence')}, in {counted_as(text.documents, 'document')} of "
        f"{text.characters:,} characters; {percent(text.unknown)} % of the words are "
        "not known and count as <UNK>"
    )
