"""``polyseme tag``: fit a tagger, tag text with it, evaluate it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice, tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from polyseme.cli.options import (
    FILES,
    EncoderOptions,
    FitOptions,
    LabelColumns,
    PlotOptions,
    RawOption,
    ResultOptions,
    expand_options,
)
from polyseme.cli.progress import warn_of_raw_text
from polyseme.errors import InputError

if TYPE_CHECKING:
    from polyseme.cli.fitting import Examples, Read

tag = typer.Typer(
    name="tag",
    help="Label words: named entities, parts of speech, chunks.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_ENOUGH = 4  # lines that end in a label, after which a file is taken for CoNLL columns
_CONLL = "CoNLL columns or CoNLL-U, plain or compressed."
FolderArgument = Annotated[Path, Argument(metavar="TAGGER", help="The folder that `polyseme tag fit` wrote.")]


@tag.command("fit", no_args_is_help=True)
@expand_options
def fit_tagger(
    train: Annotated[Path, Argument(metavar="TRAIN", help=_CONLL)],
    options: FitOptions,
    columns: LabelColumns,
    result: PlotOptions,
) -> None:
    """Train a tagger on a file of labelled sentences.

    --held-out takes the last sentences of TRAIN. --set changes a setting of the network, like tagger.dropout=0.3, or of
    the fit, like fit.rate=0.002.
    """
    from polyseme.cli.fitting import run_fit
    from polyseme.tasks.tagging.tagger import Tagger

    run_fit(Tagger, train, _reader(columns), options, result, at_random=False)


@tag.command("predict", no_args_is_help=True)
@expand_options
def predict_tags(
    folder: FolderArgument,
    inputs: Annotated[list[str], Argument(metavar="INPUT", help=f"{FILES}; one sentence per line.")],
    *,
    raw: RawOption = False,
    form: Annotated[
        str | None, Option("--format", help="text, json or conll. [default: text on a terminal, else json]")
    ] = None,
    encoders: EncoderOptions,
) -> None:
    """Label the words of a text.

    Output is coloured text on a terminal, and JSON lines or CoNLL columns elsewhere.
    """
    from polyseme.cli.predictions import TAG_FORMATS, check_format, format_tags
    from polyseme.tasks.tagging.tagger import Tagger
    from polyseme.text.corpus import expand, read_sentences

    form = check_format(form, TAG_FORMATS)
    sources = expand(inputs)
    tagger = encoders.open(Tagger, folder)
    sentences = warn_of_raw_text((words for source in sources for words in read_sentences(source, raw)), raw)
    first, second = tee(sentences if raw else _refuse_columns(sentences, tagger.labels_.names))
    for sentence, labels in zip(first, tagger.tag(second), strict=True):
        typer.echo(format_tags(sentence, labels, tagger.labels_.has_entities, form))


@tag.command("evaluate", no_args_is_help=True)
@expand_options
def evaluate_tagger(
    folder: FolderArgument,
    test: Annotated[Path, Argument(metavar="TEST", help=_CONLL)],
    columns: LabelColumns,
    encoders: EncoderOptions,
    result: ResultOptions,
) -> None:
    """Compare a tagger's labels with those of a file.

    Shows accuracy; for entities also precision, recall and F1 by type.
    """
    from polyseme.cli.evaluation import run_evaluation
    from polyseme.tasks.tagging.tagger import Tagger

    run_evaluation(Tagger, "tagger", folder, test, _reader(columns), encoders, result)


def _refuse_columns(sentences: Iterator[list[str]], labels: Sequence[str]) -> Iterator[list[str]]:
    """Refuse a file of CoNLL columns, every line of which would be taken for a sentence."""
    first = list(islice(sentences, 2 * _ENOUGH))
    filled = [words for words in first if words]
    if len(filled) >= _ENOUGH and all(len(words) > 1 and words[-1] in labels for words in filled):
        raise InputError(
            "expected one sentence per line, but this looks like CoNLL columns, one word per line with its label; "
            "`polyseme tag evaluate` reads columns"
        )
    return chain(first, sentences)


def _reader(columns: LabelColumns) -> Read:
    """Reads the sentences of a CoNLL file and the labels of their words."""
    from polyseme.text.conll import read_labelled

    labels = columns.labels()

    def read(path: Path, _: object) -> Examples:
        found = list(read_labelled(path, labels))
        return [words for words, _ in found], [labels for _, labels in found]

    return read
