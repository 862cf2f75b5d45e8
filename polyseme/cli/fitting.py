"""How ``tag fit``, ``classify fit`` and ``pairs fit`` run: dev set, settings, progress, learned layer weights."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from polyseme.cli.options import FitOptions, PlotOptions
from polyseme.cli.output import decimals, file_size, percent, show_table
from polyseme.cli.progress import announce, note, nothing_to_resume, shown
from polyseme.errors import ConfigError, InputError, OutputError
from polyseme.files import check_restart, locked_output, recover_folder

if TYPE_CHECKING:
    from polyseme.embedding.layers import Mix
    from polyseme.tasks.fitting.loop import FitReport
    from polyseme.tasks.sentences.model import ExampleModel
    from polyseme.tasks.tagging.tagger import Tagger
    from polyseme.text.labelled import ColumnSpec, LabelledText

    AnyModel = Tagger | ExampleModel[Any, Any, Any]

SHIPPED = "english"
NO_ENCODER = "none"
Examples = tuple[list[Any], list[Any]]  # inputs as a model takes them, and their answers
Read = Callable[[Path, Any], Examples]  # of a file, with the settings of the model


def run_fit(
    model_class: type[AnyModel],
    train: Path,
    read: Read,
    options: FitOptions,
    result: PlotOptions,
    at_random: bool = True,
    **chosen: object,
) -> None:
    """Fit a task model as the options say, save it, and show the learned layer weights.

    Args:
        model_class: Tagger, Classifier or Pairs.
        train: The file to learn from.
        read: Reads it, and the dev set.
        options: What all tasks have.
        result: Where results go.
        at_random: Whether --held-out draws examples at random; otherwise it takes the last ones.
        chosen: Settings of the network for which the task has options of its own.
    """
    from polyseme.tasks.features.feature_cache import FeatureCache

    check_restart(options.resume, options.overwrite)
    if options.dev and options.held_out:
        raise ConfigError("--dev and --held-out both name a dev set; give one of them")
    result.check()
    chosen |= {"fine_tune": options.fine_tune, "mix": {"layers": options.layers}}
    chosen |= {"where": options.where} if options.where else {}
    settings, fit_settings = _settings(model_class, options, chosen)
    with locked_output(options.output):
        if _is_finished(options):
            announce(f"{options.output} is already finished")
            return
        checkpoint = _check_start(options)
        known, dev = read(train, settings), read(options.dev, settings) if options.dev else None
        if options.held_out:
            known, dev = hold_out(known, options.held_out, at_random)
        model = model_class(
            _encoders(options.encoder),
            words=options.words,
            settings=settings,
            fit_settings=fit_settings,
            cache=FeatureCache(options.cache, int(options.budget * 1e9)),
            device=options.device,
        )
        _watch(model, model.fitting(*known, dev=dev, checkpoint=checkpoint), checkpoint)
        model.save(options.output, options.bundle, options.overwrite or options.resume)
        _forget(checkpoint)
        _show_fitted(model, options.output, result)


def hold_out(examples: Examples, fraction: float, at_random: bool) -> tuple[Examples, Examples]:
    """Split off a fraction of the examples as a dev set: the last ones, or a sample drawn with a fixed seed."""
    count = len(examples[0])
    size = max(1, round(fraction * count))
    held_out = set(_sample(count, size) if at_random else range(count - size, count))
    return _rows(examples, set(range(count)) - held_out), _rows(examples, held_out)


def read_examples(path: Path | str, columns: ColumnSpec) -> Examples:
    """The sentences, or pairs of sentences, of a labelled file and their labels or numbers."""
    from polyseme.text.conll import looks_like_columns
    from polyseme.text.labelled import read_labelled_text

    if str(path) != "-" and looks_like_columns(path):
        raise InputError(
            f"{path} has one word per line and blank lines between sentences, as CoNLL files do, where one text per "
            "line was expected; `polyseme tag fit` learns labels of words"
        )
    found = list(read_labelled_text(path, columns))
    return [as_input(example) for example in found], [example.label for example in found]


def as_input(example: LabelledText) -> Any:  # noqa: ANN401 - a sentence, or a pair of them
    """A labelled example as a model takes it: one sentence, or a tuple of two."""
    first, *others = example.sentences
    return (first, *others) if others else first


def _checkpoint(options: FitOptions) -> Path:
    """The folder in which every epoch is saved."""
    return options.output.with_name(f"{options.output.name}.fitting")


def _is_finished(options: FitOptions) -> bool:
    """Whether --resume finds a whole model and nothing unfinished beside it."""
    checkpoint = _checkpoint(options)
    recover_folder(checkpoint.resolve())
    return options.resume and options.output.exists() and not checkpoint.exists()


def _check_start(options: FitOptions) -> Path:
    """Refuse what can be refused before hours of work; give the folder in which every epoch is saved."""
    from polyseme.tasks.folder import check_replaceable

    output, checkpoint = options.output, _checkpoint(options)
    check_replaceable(output.resolve(), options.overwrite or options.resume)
    if options.overwrite:
        _forget(checkpoint)
    if checkpoint.exists() and not options.resume:
        raise OutputError(f"{checkpoint} holds an interrupted run; give --resume to continue or --overwrite to discard")
    if options.resume and not checkpoint.exists():
        note(f"note: {nothing_to_resume(output)}")
    return checkpoint


def _encoders(given: Sequence[str] | None) -> list[str]:
    """What --encoder means: the English model where it is left out, and no encoder for ``none``."""
    if not given:
        return [SHIPPED]
    if len(given) > 1 and NO_ENCODER in given:
        raise ConfigError(f"--encoder {NO_ENCODER} means no contextual vectors; leave it or the others out")
    return [] if NO_ENCODER in given else list(given)


def _settings(model_class: type[AnyModel], options: FitOptions, chosen: Mapping[str, object]) -> list[Any]:
    """Settings of the network and of the fit: defaults, what the options say, and what --set says on top."""
    from polyseme.model.config import from_dict
    from polyseme.tasks.parameters import merged, parse_settings

    network = model_class.__name__.lower()  # as people type it: tagger.dropout=0.3
    defaults = {
        network: (model_class.settings_kind(), chosen),
        "fit": (model_class.default_fit, {"seed": options.seed}),
    }
    changes = parse_settings(options.settings or [], list(defaults))
    return [
        from_dict(type(default), merged(merged(dataclasses.asdict(default), values), changes[name]), name)
        for name, (default, values) in defaults.items()
    ]


def _watch(model: AnyModel, reports: Iterator[FitReport], checkpoint: Path) -> None:
    """Run a fit to its end, showing how far it is."""
    try:
        with shown():
            for _ in reports:
                for remark in model.cache_.remarks:
                    note(remark)
                model.cache_.remarks.clear()
    except KeyboardInterrupt:
        kept = "the same command with --resume continues after the last epoch"
        typer.echo(f"interrupted: {kept if checkpoint.exists() else 'no epoch was finished yet'}", err=True)
        raise SystemExit(130) from None


def _show_fitted(model: AnyModel, output: Path, result: PlotOptions) -> None:
    """Show the learned layer weights and the best dev score, as tables, JSON and a figure."""
    mixes = {
        place: list(zip(model.encoder_names, some, strict=True)) for place, some in model.mixes().items()
    }  # by the place where the vectors enter
    learned = {place: [{"encoder": name, **vars(mix)} for name, mix in pairs] for place, pairs in mixes.items()}
    best = {"score": model.best_score_, "epoch": model.best_epoch_}
    result.present({"model": output, "best": best, "mixes": learned}, lambda: _show_mixes(model, output, mixes))
    result.draw(lambda: _draw(mixes))


def _show_mixes(model: AnyModel, output: Path, mixes: Mapping[str, Sequence[tuple[str, Mix]]]) -> None:
    for name in dict.fromkeys(model.encoder_names):
        rows = [
            (f"{place}: {name}", *map(decimals, mix.weights), decimals(mix.gamma))
            for place, pairs in mixes.items()
            for other, mix in pairs
            if other == name
        ]
        layers = [f"s_{number}" for number in range(len(rows[0]) - 2)]
        show_table("learned layer weights s and scale γ", ("place", *layers, "γ"), rows)
    if model.best_score_ is not None:
        typer.echo(f"best epoch kept: {model.best_epoch_}, dev {percent(model.best_score_)}")
    total = sum(file.stat().st_size for file in output.rglob("*") if file.is_file())
    announce(f"{output} written ({file_size(total)})")


def _draw(mixes: Mapping[str, Sequence[tuple[str, Mix]]]) -> Any:  # noqa: ANN401 - a figure of matplotlib
    from polyseme.analysis.layers.mix_plot import draw_mixes

    series = {f"{name}, {place}": mix for place, pairs in mixes.items() for name, mix in pairs}
    if not series:
        raise ConfigError("there are no layers to draw: this model has no contextual vectors; leave --plot out")
    return draw_mixes(series)


def _forget(checkpoint: Path) -> None:
    """Remove the checkpoint of an unfinished fit."""
    from polyseme.tasks.fitting.checkpoint import FitCheckpoint

    FitCheckpoint(checkpoint, {}).remove()


def _rows(examples: Examples, numbers: set[int]) -> Examples:
    """The examples that have these numbers, in order."""
    inputs, answers = examples
    return [inputs[number] for number in sorted(numbers)], [answers[number] for number in sorted(numbers)]


def _sample(count: int, size: int) -> list[int]:
    """A random sample of row numbers, always the same for the same size."""
    import numpy as np

    return np.random.default_rng(0).choice(count, size, replace=False).tolist()
