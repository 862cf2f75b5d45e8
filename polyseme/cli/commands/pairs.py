"""``polyseme pairs``: fit a model of pairs of sentences, ask it, see how good it is."""

from __future__ import annotations

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
from polyseme.errors import ConfigError

if TYPE_CHECKING:
    from polyseme.tasks.sentences.pairs import Pairs
    from polyseme.text.labelled import ColumnSpec, Kind

pairs = typer.Typer(
    help="Models of pairs of sentences on top of any encoder: entailment, paraphrase, relatedness.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_FILE = "A pair a line, columns apart by tabs. Plain or compressed."
FirstOption = Annotated[str | None, typer.Option(help="The column of the first sentence: a name, or a number from 1.")]
SecondOption = Annotated[str | None, typer.Option(help="The column of the second, likewise.")]
LabelOption = Annotated[str | None, typer.Option(help="The column of the labels or numbers, likewise.")]
FolderArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="What `polyseme pairs fit` has written.")]


@pairs.command("fit", no_args_is_help=True)
def fit_pairs(
    train: Annotated[Path, typer.Argument(metavar="TRAIN", help=_FILE)],
    output: OutputOption,
    dev: DevOption = None,
    held_out: LotOption = 0,
    numbers: Annotated[bool, typer.Option("--numbers", help="The answers are numbers, as relatedness.")] = False,
    encoder: EncoderOption = None,
    words: WordsOption = None,
    where: WhereOption = "both",
    layers: LayersOption = "all",
    fine_tune: FineTuneOption = False,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="pairs.dropout=0.3, fit.rate=0.002, ...")
    ] = None,
    first: FirstOption = None,
    second: SecondOption = None,
    label: LabelOption = None,
    header: HeaderOption = None,
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
    """Learn what is to be said of two sentences, a label or a number, from a file of pairs."""
    from polyseme.cli.examples import read_sets
    from polyseme.cli.fitting import begin, checked_settings, encoders, finish, fit_table, watch
    from polyseme.tasks.features.feature_cache import FeatureCache
    from polyseme.tasks.sentences.networks import PairsSettings
    from polyseme.tasks.sentences.pairs import Pairs

    checkpoint = begin(output, json, plot, resume, overwrite)
    answer = "number" if numbers else "label"
    chosen: dict[str, Any] = {"answer": answer, "where": where, "fine_tune": fine_tune, "mix": {"layers": layers}}
    tables = {"pairs": (PairsSettings, chosen), "fit": fit_table(Pairs, seed)}
    own, fitting = checked_settings(settings or [], tables)
    known, held = read_sets(train, dev, held_out, _wanted((first, second), label, own.answer, header, raw))
    with working("opening encoders"):
        model = Pairs(
            encoders(encoder),
            words=words,
            settings=own,
            fit_settings=fitting,
            cache=FeatureCache(cache, int(budget * 1e9)),
            device=device,
        )
    watch(model, model.fitting(*known, dev=held, checkpoint=checkpoint), checkpoint)
    model.save(output, bundle, overwrite)
    finish(model, output, checkpoint, json, plot)


@pairs.command("predict", no_args_is_help=True)
def predict_pairs(
    folder: FolderArgument,
    inputs: Annotated[
        list[str], typer.Argument(metavar="INPUT", help="Files, folders, patterns, or - (stdin); a pair a line.")
    ],
    first: FirstOption = None,
    second: SecondOption = None,
    header: HeaderOption = None,
    raw: RawOption = False,
    form: FormOption = None,
    encoder: MovedOption = None,
    words: WordsOption = None,
    device: DeviceOption = "cpu",
) -> None:
    """Answer for every pair: in colour on a terminal, as JSON lines elsewhere, or as columns apart by tabs."""
    from polyseme.cli.examples import FORMS, answers, as_given
    from polyseme.cli.tagged import check_form
    from polyseme.text.corpus import expand
    from polyseme.text.labelled import read_labelled_text

    form = check_form(form, FORMS)
    wanted = _wanted((first, second), None, "none", header, raw)
    sources = expand(inputs)
    model = _open(folder, encoder, words, device)
    found = (as_given(example) for source in sources for example in read_labelled_text(source, wanted))
    for line in answers(model, found, form):
        typer.echo(line)


@pairs.command("evaluate", no_args_is_help=True)
def evaluate_pairs(
    folder: FolderArgument,
    test: Annotated[Path, typer.Argument(metavar="TEST", help=_FILE)],
    first: FirstOption = None,
    second: SecondOption = None,
    label: LabelOption = None,
    header: HeaderOption = None,
    raw: RawOption = False,
    encoder: MovedOption = None,
    words: WordsOption = None,
    json: JsonOption = None,
    device: DeviceOption = "cpu",
) -> None:
    """Compare a model's answers with those of a file: accuracy and F1 of labels, correlation of numbers."""
    from polyseme.cli.examples import read_columns, show_scores, write_scores

    model = _open(folder, encoder, words, device)
    gold = read_columns(test, _wanted((first, second), label, model.settings_.answer, header, raw))
    with working("comparing"):
        scores = model.evaluate(*gold)
    if json:
        write_scores(json, scores, {"model": folder, "test": test})
    if json != "-":
        show_scores(scores, f"{folder.name} on {test.name}")


def _wanted(
    columns: tuple[str | None, str | None], label: str | None, kind: Kind, header: bool | None, raw: bool
) -> ColumnSpec:
    from polyseme.text.labelled import ColumnSpec

    given = tuple(column for column in columns if column)
    if len(given) == 1:
        raise ConfigError("--first and --second are the columns of the two sentences; give both or neither")
    return ColumnSpec(2, given or None, label, kind, raw=raw, header=header)


def _open(folder: Path, encoder: list[str] | None, words: Path | None, device: str) -> Pairs:
    from polyseme.tasks.sentences.pairs import Pairs

    with working(f"opening {folder}"):
        return Pairs.load(folder, encoder or None, words=words, device=device)
