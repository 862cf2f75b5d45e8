"""``polyseme classify``: fit a classifier, classify text with it, evaluate it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from polyseme.cli.options import (
    FILES,
    EncoderOptions,
    FitOptions,
    FormatOption,
    HeaderOption,
    PlotOptions,
    RawOption,
    ResultOptions,
    expand_options,
)

if TYPE_CHECKING:
    from polyseme.cli.fitting import Read
    from polyseme.text.labelled import ColumnSpec

classify = typer.Typer(
    name="classify",
    help="Label sentences: sentiment, topic, type of question.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_FILE = "One example per line: columns separated by tabs, or the label first. Plain or compressed."
FolderArgument = Annotated[Path, Argument(metavar="CLASSIFIER", help="The folder that `polyseme classify fit` wrote.")]


@dataclass(frozen=True)
class TextColumns:
    """Which columns of a file hold the text and its label."""

    text: Annotated[str | None, Option(help="Column of the text: a name or a number from 1.")] = None
    label: Annotated[str | None, Option(help="Column of the labels: a name or a number from 1.")] = None
    header: HeaderOption = None
    coarse: Annotated[bool, Option("--coarse", help="Shorten labels like DESC:manner to DESC.")] = False
    raw: RawOption = False

    def reader(self) -> Read:
        """Reads these columns of a file."""
        from polyseme.cli.fitting import read_examples
        from polyseme.text.labelled import ColumnSpec

        text = (self.text,) if self.text else None
        spec = ColumnSpec(1, text, self.label, coarse=self.coarse, raw=self.raw, header=self.header)
        return lambda path, _: read_examples(path, spec)


@classify.command("fit", no_args_is_help=True)
@expand_options
def fit_classifier(
    train: Annotated[Path, Argument(metavar="TRAIN", help=_FILE)],
    options: FitOptions,
    *,
    kind: Annotated[str, Option(help="lstm, or linear: logistic regression, which takes seconds.")] = "lstm",
    columns: TextColumns,
    result: PlotOptions,
) -> None:
    """Train a classifier on a file of labelled sentences.

    --held-out takes random sentences of TRAIN. --set changes a setting of the network, like classifier.dropout=0.3, or
    of the fit, like fit.rate=0.002.
    """
    from polyseme.cli.fitting import run_fit
    from polyseme.tasks.sentences.classifier import Classifier

    run_fit(Classifier, train, columns.reader(), options, result, kind=kind)


@classify.command("predict", no_args_is_help=True)
@expand_options
def predict_labels(
    folder: FolderArgument,
    inputs: Annotated[list[str], Argument(metavar="INPUT", help=f"{FILES}; one text per line.")],
    *,
    raw: RawOption = False,
    text: Annotated[str | None, Option(help="Column of the text, if there are several.")] = None,
    header: HeaderOption = None,
    form: FormatOption = None,
    encoders: EncoderOptions,
) -> None:
    """Label every line of a text.

    Output is coloured text on a terminal, and JSON lines or tab-separated columns elsewhere.
    """
    from polyseme.cli.predictions import ANSWER_FORMATS, check_format, format_answers
    from polyseme.tasks.sentences.classifier import Classifier
    from polyseme.text.corpus import expand
    from polyseme.text.labelled import ColumnSpec

    form = check_format(form, ANSWER_FORMATS)
    spec = ColumnSpec(1, (text,) if text else None, kind="none", raw=raw, header=header)
    sources = expand(inputs)
    classifier = encoders.open(Classifier, folder)
    sentences = (sentence for source in sources for sentence in _sentences(source, spec))
    for line in format_answers(classifier, sentences, form):
        typer.echo(line)


@classify.command("evaluate", no_args_is_help=True)
@expand_options
def evaluate_classifier(
    folder: FolderArgument,
    test: Annotated[Path, Argument(metavar="TEST", help=_FILE)],
    columns: TextColumns,
    encoders: EncoderOptions,
    result: ResultOptions,
) -> None:
    """Compare a classifier's labels with those of a file.

    Shows accuracy and macro F1, and precision, recall and F1 by label.
    """
    from polyseme.cli.evaluation import run_evaluation
    from polyseme.tasks.sentences.classifier import Classifier

    run_evaluation(Classifier, "classifier", folder, test, columns.reader(), encoders, result)


def _sentences(source: Path | str, spec: ColumnSpec) -> Iterator[list[str]]:
    """The sentences to label: whole lines, empty ones too, or one column."""
    from polyseme.text.corpus import open_text
    from polyseme.text.labelled import read_labelled_text, split_words

    if spec.text:
        yield from (example.sentences[0] for example in read_labelled_text(source, spec))
        return
    warned = False
    with open_text(source) as lines:
        for line in lines:
            if "\t" in line and not warned:
                warned = True
                typer.echo(f"{source} has tabs, but whole lines are labelled; --text names a column to read", err=True)
            yield split_words(line, spec.raw)
