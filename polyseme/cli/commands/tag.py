"""``polyseme tag``: fit a tagger, tag text with it, see how good it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
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
    LayersOption,
    MovedOption,
    OutputOption,
    OverwriteOption,
    ResumeOption,
    WhereOption,
    WordsOption,
)
from polyseme.cli.output import (
    DeviceOption,
    JsonOption,
    PlotOption,
    SeedOption,
    percent,
    show_table,
    working,
    write_json,
)
from polyseme.errors import ConfigError, InputError

if TYPE_CHECKING:
    from polyseme.tasks.metrics import Counts
    from polyseme.tasks.tagging.network import TagScores
    from polyseme.tasks.tagging.tagger import Tagger
    from polyseme.text.conll import LabelledSentence

tag = typer.Typer(
    help="Taggers on top of any encoder: named entities, parts of speech, chunks.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_SURE = 4  # lines that end in a label, after which it is columns that are read

ColumnOption = Annotated[
    str | None, typer.Option(help="The labels: a number from 1, or a name as upos. [default: upos, or the last column]")
]
FeatureOption = Annotated[str | None, typer.Option(help="Or a feature of CoNLL-U, as Tense.")]
WordColumnOption = Annotated[int | None, typer.Option(help="The words. [default: 2 in CoNLL-U, else 1]")]
FolderArgument = Annotated[Path, typer.Argument(metavar="TAGGER", help="What `polyseme tag fit` has written.")]


@tag.command("fit", no_args_is_help=True)
def fit_tagger(
    train: Annotated[Path, typer.Argument(metavar="TRAIN", help="CoNLL columns or CoNLL-U, plain or compressed.")],
    output: OutputOption,
    dev: DevOption = None,
    held_out: Annotated[float, typer.Option(help="Or: the last share of TRAIN, as 0.1.", min=0, max=0.9)] = 0,
    encoder: EncoderOption = None,
    words: WordsOption = None,
    where: WhereOption = "input",
    layers: LayersOption = "all",
    fine_tune: FineTuneOption = False,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="tagger.dropout=0.3, fit.rate=0.002, ...")
    ] = None,
    column: ColumnOption = None,
    feature: FeatureOption = None,
    word_column: WordColumnOption = None,
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
    """Learn to label words from a file of labelled sentences."""
    from polyseme.cli.fitting import begin, checked_settings, encoders, finish, fit_table, watch
    from polyseme.tasks.features.feature_cache import FeatureCache
    from polyseme.tasks.tagging.network import TaggerSettings
    from polyseme.tasks.tagging.tagger import Tagger
    from polyseme.text.conll import LabelSpec

    checkpoint = begin(output, json, plot, resume, overwrite)
    chosen: dict[str, Any] = {"where": where, "fine_tune": fine_tune, "mix": {"layers": layers}}
    tables = {"tagger": (TaggerSettings, chosen), "fit": fit_table(Tagger, seed)}
    own, fitting = checked_settings(settings or [], tables)
    wanted = LabelSpec(column, feature, word_column)
    known, held = _read(train, wanted), _read(dev, wanted) if dev else []
    if dev and held_out:
        raise ConfigError("--dev and --held-out both say what to judge by; give one of them")
    if held_out:
        cut = len(known) - max(1, round(held_out * len(known)))
        known, held = known[:cut], known[cut:]
    with working("opening encoders"):
        tagger = Tagger(
            encoders(encoder),
            words=words,
            settings=own,
            fit_settings=fitting,
            cache=FeatureCache(cache, int(budget * 1e9)),
            device=device,
        )
    judge = _columns(held) if held else None
    watch(tagger, tagger.fitting(*_columns(known), dev=judge, checkpoint=checkpoint), checkpoint)
    tagger.save(output, bundle, overwrite)
    finish(tagger, output, checkpoint, json, plot)


@tag.command("predict", no_args_is_help=True)
def predict_tags(
    folder: FolderArgument,
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="INPUT", help="Text files, folders, patterns, or - (stdin); a sentence a line."),
    ],
    raw: Annotated[bool, typer.Option("--raw", help="Raw text: split it into sentences and words first.")] = False,
    form: Annotated[
        str | None,
        typer.Option("--format", help="text, json or conll. [default: text on a terminal, else json]"),
    ] = None,
    encoder: MovedOption = None,
    words: WordsOption = None,
    device: DeviceOption = "cpu",
) -> None:
    """Label the words of a text: in colour on a terminal, as JSON lines elsewhere, or as CoNLL columns."""
    from itertools import tee

    from polyseme.cli.tagged import check_form, shown
    from polyseme.text.corpus import expand, read_sentences

    form = check_form(form)
    sources = expand(inputs)
    tagger = _open(folder, encoder, words, device)
    sentences = (sentence for source in sources for sentence in read_sentences(source, raw))
    first, second = tee(sentences if raw else _no_columns(sentences, tagger.labels_.names))
    for sentence, labels in zip(first, tagger.tag(second), strict=True):
        typer.echo(shown(sentence, labels, tagger.labels_.has_entities, form))


@tag.command("evaluate", no_args_is_help=True)
def evaluate_tagger(
    folder: FolderArgument,
    test: Annotated[Path, typer.Argument(metavar="TEST", help="CoNLL columns or CoNLL-U, plain or compressed.")],
    column: ColumnOption = None,
    feature: FeatureOption = None,
    word_column: WordColumnOption = None,
    encoder: MovedOption = None,
    words: WordsOption = None,
    json: JsonOption = None,
    device: DeviceOption = "cpu",
) -> None:
    """Compare a tagger's labels with those of a file: accuracy; for entities precision, recall and F1 by type."""
    from polyseme.text.conll import LabelSpec

    gold = _read(test, LabelSpec(column, feature, word_column))
    tagger = _open(folder, encoder, words, device)
    with working("tagging"):
        scores = tagger.evaluate(*_columns(gold))
    if json:
        write_json(json, {"tagger": folder, "test": test, **_as_table(scores)})
    if json != "-":
        _show(scores, folder, test)


def _no_columns(sentences: Iterator[list[str]], labels: Sequence[str]) -> Iterator[list[str]]:
    """Refuse a file of columns, of which every line would be taken for a sentence."""
    first = list(islice(sentences, 2 * _SURE))
    filled = [words for words in first if words]
    if len(filled) >= _SURE and all(len(words) > 1 and words[-1] in labels for words in filled):
        raise InputError(
            "this looks like columns, a word a line with its label, and not like a sentence a line; "
            "`polyseme tag evaluate` reads columns"
        )
    return chain(first, sentences)


def _read(path: Path, wanted: Any) -> list[LabelledSentence]:  # noqa: ANN401 - LabelSpec, which is not imported here
    from polyseme.text.conll import read_labelled

    return list(read_labelled(path, wanted))


def _columns(sentences: Iterable[LabelledSentence]) -> tuple[list[list[str]], list[list[str | None]]]:
    pairs = list(sentences)
    return [words for words, _ in pairs], [labels for _, labels in pairs]


def _open(folder: Path, encoder: list[str] | None, words: Path | None, device: str) -> Tagger:
    from polyseme.tasks.tagging.tagger import Tagger

    with working(f"opening {folder}"):
        return Tagger.load(folder, encoder or None, words=words, device=device)


def _as_table(scores: TagScores) -> dict[str, Any]:
    table: dict[str, Any] = {"words": scores.words, "accuracy": scores.accuracy, "unseen": scores.unseen}
    if scores.entities:
        counts = {"all": scores.entities.overall, **scores.entities.types}
        table["entities"] = {
            kind: {**vars(each), "precision": each.precision, "recall": each.recall, "f1": each.f1}
            for kind, each in counts.items()
        }
    return table


def _show(scores: TagScores, folder: Path, test: Path) -> None:
    if scores.entities:
        counts = {**scores.entities.types, "all": scores.entities.overall}
        rows = [(kind, *_shares(each), f"{each.gold:,}") for kind, each in counts.items()]
        show_table(f"{folder.name} on {test.name}", ("entity", "precision", "recall", "F1", "there are"), rows)
    typer.echo(f"accuracy {percent(scores.accuracy)} % of {scores.words:,} words")
    if scores.unseen:
        missed = ", ".join(f"{label} ({count:,})" for label, count in list(scores.unseen.items())[:8])
        typer.echo(f"never seen in training, and counted as wrong: {missed}")


def _shares(counts: Counts) -> tuple[str, str, str]:
    """Precision, recall and F1; of what neither is there nor was found, nothing."""
    if not counts.gold and not counts.predicted:
        return ("–", "–", "–")
    return percent(counts.precision), percent(counts.recall), percent(counts.f1)
