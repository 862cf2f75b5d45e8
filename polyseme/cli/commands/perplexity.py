"""``polyseme perplexity``: the perplexity of a language model on a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from polyseme.cli.options import TEXT_FILES, DeviceOption, RawOption, ResultOptions, expand_options
from polyseme.cli.output import decimals, percent, plural, show_table
from polyseme.cli.progress import shown, warn_of_raw_text, working

if TYPE_CHECKING:
    from polyseme.lm import LanguageModel, Perplexity
    from polyseme.text.corpus import Source

STATES = {False: "reset at each sentence", True: "carried within a document"}


@expand_options
def perplexity(
    model: Annotated[str, Argument(metavar="MODEL", help="A model with a softmax, such as `english`.")],
    inputs: Annotated[list[str], Argument(metavar="TEXT", help=TEXT_FILES)],
    *,
    raw: RawOption = False,
    carried: Annotated[bool | None, Option("--carried/--fresh", help="State of the LSTMs. [default: both]")] = None,
    output: ResultOptions,
    device: DeviceOption = "cpu",
) -> None:
    """Measure a language model's perplexity on a text.

    The text has one sentence per line and blank lines between documents; every word is scored by the full softmax. The
    state of the LSTMs is reset at each sentence, as in embedding, or carried through each document, as in training.
    """
    from polyseme.lm import LanguageModel
    from polyseme.text.corpus import expand

    output.check()
    sources = expand(inputs)
    with working(f"opening {model}"):
        opened = LanguageModel.load(model, device=device)
    with shown():
        results = _measure(opened, sources, raw, [*STATES] if carried is None else [carried])
    about = {"model": opened.name, "softmax": "full", "known_words": opened.softmax.config.num_words}
    output.present({**about, "results": results}, lambda: _show(opened, results))


def _measure(model: LanguageModel, sources: list[Source], raw: bool, states: list[bool]) -> list[Perplexity]:
    """Measure all states in one pass over the text, so that it may be standard input."""
    from polyseme.lm import read_documents
    from polyseme.lm.documents import Document, number_documents
    from polyseme.lm.perplexity import PerplexityMeter
    from polyseme.progress import reading, stage
    from polyseme.text.corpus import plain_sizes

    documents = (
        document if isinstance(document, Document) else warn_of_raw_text(document, raw or number > 0)
        for number, document in enumerate(read_documents(sources, raw))
    )  # the first tells whether the text looks raw
    measures = [PerplexityMeter(model, carried) for carried in states]
    with reading(plain_sizes(sources)), stage("scoring", unit="words") as now:
        for window in number_documents(documents, model.window):
            reader = model.scorer(window.words)
            for measure in measures:
                measure.add(window, reader)
            now.advance(sum(len(sentence) for document in window.documents for sentence in document))
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
        f"{text.tokens:,} tokens: {plural(text.words, 'word')} and a boundary for each of "
        f"{plural(text.sentences, 'sentence')}, in {plural(text.documents, 'document')} of "
        f"{text.characters:,} characters; {percent(text.unknown)} % of the words are "
        "unknown and count as <UNK>"
    )
