"""``polyseme pairs``: fit a model of sentence pairs, predict with it, evaluate it."""

from __future__ import annotations

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
from polyseme.errors import ConfigError

if TYPE_CHECKING:
    from polyseme.cli.fitting import Read
    from polyseme.text.labelled import ColumnSpec, Kind

pairs = typer.Typer(
    name="pairs",
    help="Compare two sentences: entailment, paraphrase, relatedness.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_FILE = "One pair per line, columns separated by tabs. Plain or compressed."
FolderArgument = Annotated[Path, Argument(metavar="MODEL", help="The folder that `polyseme pairs fit` wrote.")]


@dataclass(frozen=True)
class PairColumns:
    """Which columns of a file hold the two sentences of a pair."""

    first: Annotated[str | None, Option(help="Column of the first sentence: a name or a number from 1.")] = None
    second: Annotated[str | None, Option(help="Column of the second sentence: a name or a number from 1.")] = None
    header: HeaderOption = None
    raw: RawOption = False

    def spec(self, kind: Kind, label: str | None = None) -> ColumnSpec:
        """The same choice of columns, as the reader of labelled text takes it."""
        from polyseme.text.labelled import ColumnSpec

        given = tuple(column for column in (self.first, self.second) if column)
        if len(given) == 1:
            raise ConfigError("--first and --second name the columns of the two sentences; give both or neither")
        return ColumnSpec(2, given or None, label, kind, raw=self.raw, header=self.header)


@dataclass(frozen=True)
class LabelledPairColumns(PairColumns):
    """Which columns of a file hold the two sentences of a pair and their label or number."""

    label: Annotated[str | None, Option(help="Column of the labels: a name or a number from 1.")] = None

    def reader(self) -> Read:
        """Reads these columns of a file, labels or numbers as the model answers."""
        from polyseme.cli.fitting import read_examples

        return lambda path, settings: read_examples(path, self.spec(settings.answer, self.label))


@pairs.command("fit", no_args_is_help=True)
@expand_options
def fit_pairs(
    train: Annotated[Path, Argument(metavar="TRAIN", help=_FILE)],
    options: FitOptions,
    *,
    numbers: Annotated[bool, Option("--numbers", help="The answers are numbers, such as relatedness.")] = False,
    columns: LabelledPairColumns,
    result: PlotOptions,
) -> None:
    """Train a model on a file of labelled sentence pairs.

    The model answers with a label or, with --numbers, with a number. --held-out takes random pairs of TRAIN. --set
    changes a setting of the network, like pairs.dropout=0.3, or of the fit, like fit.rate=0.002.
    """
    from polyseme.cli.fitting import run_fit
    from polyseme.tasks.sentences.pairs import Pairs

    run_fit(Pairs, train, columns.reader(), options, result, answer="number" if numbers else "label")


@pairs.command("predict", no_args_is_help=True)
@expand_options
def predict_pairs(
    folder: FolderArgument,
    inputs: Annotated[list[str], Argument(metavar="INPUT", help=f"{FILES}; one pair per line.")],
    columns: PairColumns,
    *,
    form: FormatOption = None,
    encoders: EncoderOptions,
) -> None:
    """Predict the label or number of every pair of a file.

    Output is coloured text on a terminal, and JSON lines or tab-separated columns elsewhere.
    """
    from polyseme.cli.fitting import as_input
    from polyseme.cli.predictions import ANSWER_FORMATS, check_format, format_answers
    from polyseme.tasks.sentences.pairs import Pairs
    from polyseme.text.corpus import expand
    from polyseme.text.labelled import read_labelled_text

    form = check_format(form, ANSWER_FORMATS)
    spec = columns.spec("none")
    sources = expand(inputs)
    model = encoders.open(Pairs, folder)
    examples = (as_input(example) for source in sources for example in read_labelled_text(source, spec))
    for line in format_answers(model, examples, form):
        typer.echo(line)


@pairs.command("evaluate", no_args_is_help=True)
@expand_options
def evaluate_pairs(
    folder: FolderArgument,
    test: Annotated[Path, Argument(metavar="TEST", help=_FILE)],
    columns: LabelledPairColumns,
    encoders: EncoderOptions,
    result: ResultOptions,
) -> None:
    """Compare a model's answers with those of a file.

    Shows accuracy and F1 of labels, or correlation and squared error of numbers.
    """
    from polyseme.cli.evaluation import run_evaluation
    from polyseme.tasks.sentences.pairs import Pairs

    run_evaluation(Pairs, "model", folder, test, columns.reader(), encoders, result)
