"""How ``tag evaluate``, ``classify evaluate`` and ``pairs evaluate`` run, and their scores as tables and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from polyseme.cli.options import EncoderOptions, ResultOptions
from polyseme.cli.output import decimals, percent, show_table
from polyseme.cli.progress import working

if TYPE_CHECKING:
    from polyseme.cli.fitting import Read
    from polyseme.tasks.metrics import ClassScores, Counts, NumberScores
    from polyseme.tasks.sentences.model import ExampleModel
    from polyseme.tasks.tagging.tagger import Tagger, TagScores

    AnyModel = Tagger | ExampleModel[Any, Any, Any]
    AnyScores = TagScores | ClassScores | NumberScores

_MOST_UNSEEN = 8  # labels never seen in training that are named


def run_evaluation(
    model_class: type[AnyModel],
    name: str,
    folder: Path,
    test: Path,
    read: Read,
    encoders: EncoderOptions,
    result: ResultOptions,
) -> None:
    """Compare a fitted model's answers with those of a test file, and show the scores.

    Args:
        model_class: Tagger, Classifier or Pairs.
        name: What the JSON calls it.
        folder: Where it is.
        test: The file to compare with.
        read: Reads that file.
        encoders: How the model is opened.
        result: Where results go.
    """
    result.check()
    model = encoders.open(model_class, folder)
    gold = read(test, model.settings_)
    with working("predicting"):
        scores = model.evaluate(*gold)
    payload = {name: folder, "test": test, **_as_json(scores)}
    result.present(payload, lambda: show_scores(scores, f"{folder.name} on {test.name}"))


def show_scores(scores: AnyScores, title: str) -> None:
    """Print precision, recall and F1 by label or entity type, and accuracy; or correlations and error."""
    from polyseme.tasks.metrics import ClassScores, NumberScores

    if isinstance(scores, NumberScores):
        row = (f"{scores.count:,}", *map(decimals, (scores.pearson, scores.spearman, scores.squared_error)))
        show_table(title, ("count", "Pearson", "Spearman", "squared error"), [row])
        return
    if isinstance(scores, ClassScores):
        _show_counts(title, "label", scores.classes)
        typer.echo(f"accuracy {percent(scores.accuracy)} % of {scores.count:,}, macro F1 {percent(scores.macro_f1)}")
    else:
        if scores.entities:
            _show_counts(title, "entity", {**scores.entities.types, "all": scores.entities.overall})
        typer.echo(f"accuracy {percent(scores.accuracy)} % of {scores.words:,} words")
    if scores.unseen:
        unseen = ", ".join(f"{label} ({count:,})" for label, count in list(scores.unseen.items())[:_MOST_UNSEEN])
        typer.echo(f"never seen in training, and counted as wrong: {unseen}")


def _show_counts(title: str, what: str, counts: Mapping[str, Counts]) -> None:
    rows = [(name, *_rates(each), f"{each.gold:,}") for name, each in counts.items()]
    show_table(title, (what, "precision", "recall", "F1", "count"), rows)


def _rates(counts: Counts) -> tuple[str, str, str]:
    """Precision, recall and F1; dashes where nothing is there and nothing was predicted."""
    if not counts.gold and not counts.predicted:
        return ("–", "–", "–")
    return percent(counts.precision), percent(counts.recall), percent(counts.f1)


def _as_json(scores: AnyScores) -> dict[str, Any]:
    """Scores as a table for JSON, with precision, recall and F1 spelled out."""
    from polyseme.tasks.metrics import ClassScores, NumberScores

    if isinstance(scores, NumberScores):
        return vars(scores)
    if isinstance(scores, ClassScores):
        return {**vars(scores), "classes": _with_rates(scores.classes)}
    table = {"words": scores.words, "accuracy": scores.accuracy, "unseen": scores.unseen}
    if scores.entities:
        table["entities"] = _with_rates({"all": scores.entities.overall, **scores.entities.types})
    return table


def _with_rates(counts: Mapping[str, Counts]) -> dict[str, dict[str, float]]:
    return {
        name: {**vars(each), "precision": each.precision, "recall": each.recall, "f1": each.f1}
        for name, each in counts.items()
    }
