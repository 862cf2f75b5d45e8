"""``polyseme classify``: fit a classifier, classify text with it, see how good it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyseme.cli.options import (
    BudgetOption,
    BundleOption,
    CacheOption,
    DevOption,
    EncoderOption,
    FineTuneOption,
    FormOption,
    HeaderOption,
    LayersOption,
    LotOption,
    MovedOption,
    OutputOption,
    OverwriteOption,
    RawOption,
    ResumeOption,
    WhereOption,
    WordsOption,
)
from polyseme.cli.output import DeviceOption, JsonOption, PlotOption, SeedOption, working

if TYPE_CHECKING:
    from polyseme.tasks.sentences.classifier import Classifier
    from polyseme.text.labelled import ColumnSpec

classify = typer.Typer(
    help="Classifiers on top of any encoder: sentiment, kinds of questions, topics.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_FILE = "A line each: columns apart by tabs, or label first. Plain or compressed."
TextOption = Annotated[str | None, typer.Option(help="The column of the text: a name, or a number from 1.")]
LabelOption = Annotated[str | None, typer.Option(help="The column of the labels, likewise.")]
CoarseOption = Annotated[bool, typer.Option("--coarse", help="Of DESC:manner take DESC.")]
FolderArgument = Annotated[Path, typer.Argument(metavar="CLASSIFIER", help="What `polyseme classify fit` has written.")]


@classify.command("fit", no_args_is_help=True)
def fit_classifier(
    train: Annotated[Path, typer.Argument(metavar="TRAIN", help=_FILE)],
    output: OutputOption,
    dev: DevOption = None,
    held_out: LotOption = 0,
    encoder: EncoderOption = None,
    words: WordsOption = None,
    kind: Annotated[str, typer.Option(help="lstm, or linear: logistic regression, in seconds.")] = "lstm",
    where: WhereOption = "input",
    layers: LayersOption = "all",
    fine_tune: FineTuneOption = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="classifier.dropout=0.3, fit.rate=0.002, ..."),
    ] = None,
    text: TextOption = None,
    label: LabelOption = None,
    header: HeaderOption = None,
    coarse: CoarseOption = False,
    raw: RawOption = False,
    seed: SeedOption = 0,
    bundle: BundleOption = False,
    resume: ResumeOption = False,
    overwrite: OverwriteOption = False,
    cache: CacheOption = None,
    budget: BudgetOption = 16,
    json: JsonOption = None,
    plot: PlotOption = None,
    device: DeviceOption = "cpu",
) -> None:
    """Learn to label sentences from a file of labelled ones."""
    from polyseme.cli.examples import read_sets
    from polyseme.cli.fitting import begin, checked_settings, encoders, finish, fit_table, watch
    from polyseme.tasks.features.feature_cache import FeatureCache
    from polyseme.tasks.sentences.classifier import Classifier
    from polyseme.tasks.sentences.networks import ClassifierSettings

    checkpoint = begin(output, json, plot, resume, overwrite)
    chosen: dict[str, Any] = {"kind": kind, "where": where, "fine_tune": fine_tune, "mix": {"layers": layers}}
    tables = {"classifier": (ClassifierSettings, chosen), "fit": fit_table(Classifier, seed)}
    own, fitting = checked_settings(settings or [], tables)
    known, held = read_sets(train, dev, held_out, _wanted(text, label, header, coarse, raw))
    with working("opening encoders"):
        classifier = Classifier(
            encoders(encoder),
            words=words,
            settings=own,
            fit_settings=fitting,
            cache=FeatureCache(cache, int(budget * 1e9)),
            device=device,
        )
    watch(classifier, classifier.fitting(*known, dev=held, checkpoint=checkpoint), checkpoint)
    classifier.save(output, bundle, overwrite)
    finish(classifier, output, checkpoint, json, plot)


@classify.command("predict", no_args_is_help=True)
def predict_labels(
    folder: FolderArgument,
    inputs: Annotated[
        list[str], typer.Argument(metavar="INPUT", help="Text files, folders, patterns, or - (stdin); a text a line.")
    ],
    raw: RawOption = False,
    text: Annotated[str | None, typer.Option(help="The text is this column: a name, or a number from 1.")] = None,
    header: HeaderOption = None,
    form: FormOption = None,
    encoder: MovedOption = None,
    words: WordsOption = None,
    device: DeviceOption = "cpu",
) -> None:
    """Label every line of a text: in colour on a terminal, as JSON lines elsewhere, or as columns apart by tabs."""
    from polyseme.cli.examples import FORMS, answers
    from polyseme.cli.tagged import check_form
    from polyseme.text.corpus import expand
    from polyseme.text.labelled import ColumnSpec

    form = check_form(form, FORMS)
    wanted = ColumnSpec(1, (text,) if text else None, kind="none", raw=raw, header=header)
    sources = expand(inputs)
    classifier = _open(folder, encoder, words, device)
    sentences = (sentence for source in sources for sentence in _sentences(source, wanted))
    for line in answers(classifier, sentences, form):
        typer.echo(line)


@classify.command("evaluate", no_args_is_help=True)
def evaluate_classifier(
    folder: FolderArgument,
    test: Annotated[Path, typer.Argument(metavar="TEST", help=_FILE)],
    text: TextOption = None,
    label: LabelOption = None,
    header: HeaderOption = None,
    coarse: CoarseOption = False,
    raw: RawOption = False,
    encoder: MovedOption = None,
    words: WordsOption = None,
    json: JsonOption = None,
    device: DeviceOption = "cpu",
) -> None:
    """Compare a classifier's labels with those of a file: accuracy, macro F1; precision, recall and F1 by label."""
    from polyseme.cli.examples import read_columns, show_scores, write_scores

    gold = read_columns(test, _wanted(text, label, header, coarse, raw))
    classifier = _open(folder, encoder, words, device)
    with working("classifying"):
        scores = classifier.evaluate(*gold)
    if json:
        write_scores(json, scores, {"classifier": folder, "test": test})
    if json != "-":
        show_scores(scores, f"{folder.name} on {test.name}")


def _wanted(text: str | None, label: str | None, header: bool | None, coarse: bool, raw: bool) -> ColumnSpec:
    from polyseme.text.labelled import ColumnSpec

    return ColumnSpec(1, (text,) if text else None, label, coarse=coarse, raw=raw, header=header)


def _sentences(source: Path | str, wanted: ColumnSpec) -> Iterator[list[str]]:
    """Line by line, the empty ones too; or a column."""
    from polyseme.text.corpus import open_text
    from polyseme.text.labelled import read_labelled_text, split_words

    if wanted.text:
        yield from (example.sentences[0] for example in read_labelled_text(source, wanted))
        return
    told = False
    with open_text(source) as lines:
        for line in lines:
            if "\t" in line and not told:
                told = True
                typer.echo(
                    f"{source} has tabs, and whole lines are labelled; --text says which column to read", err=True
                )
            yield split_words(line, wanted.raw)


def _open(folder: Path, encoder: list[str] | None, words: Path | None, device: str) -> Classifier:
    from polyseme.tasks.sentences.classifier import Classifier

    with working(f"opening {folder}"):
        return Classifier.load(folder, encoder or None, words=words, device=device)
