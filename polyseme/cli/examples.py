"""What ``polyseme classify`` and ``polyseme pairs`` share: reading examples, showing answers, showing scores."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from polyseme.cli.output import decimals, percent, show_table, write_json
from polyseme.cli.tagged import coloured
from polyseme.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np

    from polyseme.tasks.metrics import ClassScores, NumberScores
    from polyseme.tasks.sentences.model import ExampleModel
    from polyseme.text.labelled import ColumnSpec, LabelledText

    AnyModel = ExampleModel[Any, Any, Any]

FORMS = ("text", "json", "tsv")
Columns = tuple[list[Any], list[Any]]  # examples as a model takes them, and their answers


def read_columns(path: Path | str, wanted: ColumnSpec) -> Columns:
    """The examples of a file and their answers."""
    from polyseme.text.labelled import read_labelled_text

    found = list(read_labelled_text(path, wanted))
    return [as_given(example) for example in found], [example.label for example in found]


def as_given(example: LabelledText) -> Any:  # noqa: ANN401 - a sentence, or a pair of them
    """An example as a model takes it."""
    (first, *more) = example.sentences
    return (first, *more) if more else first


def read_sets(train: Path, dev: Path | None, held_out: float, wanted: ColumnSpec) -> tuple[Columns, Columns | None]:
    """What to learn from, and what to judge by: a file, a share drawn by lot (always the same), or nothing."""
    if dev and held_out:
        raise ConfigError("--dev and --held-out both say what to judge by; give one of them")
    known = read_columns(train, wanted)
    if dev:
        return known, read_columns(dev, wanted)
    if not held_out:
        return known, None
    count = len(known[0])
    held = set(_lot(count, max(1, round(held_out * count))))
    parts = [[n for n in range(count) if (n in held) == wanted_part] for wanted_part in (False, True)]
    left, taken = (([known[0][n] for n in part], [known[1][n] for n in part]) for part in parts)
    return left, taken


def answers(model: AnyModel, examples: Iterable[Any], form: str) -> Iterator[str]:
    """A line of output for each example, in order, while examples come."""
    from itertools import tee

    first, second = tee(examples)
    return (_shown(model, example, output, form) for example, output in zip(first, model.outputs(second), strict=True))


def write_scores(target: str, scores: ClassScores | NumberScores, about: dict[str, Path]) -> None:
    """All of it, as JSON."""
    from polyseme.tasks.metrics import ClassScores

    table: dict[str, Any] = {**about, **vars(scores)}
    if isinstance(scores, ClassScores):
        table["classes"] = {
            name: {**vars(each), "precision": each.precision, "recall": each.recall, "f1": each.f1}
            for name, each in scores.classes.items()
        }
    write_json(target, table)


def show_scores(scores: ClassScores | NumberScores, title: str) -> None:
    """Each label by itself, and all; or correlations and error."""
    from polyseme.tasks.metrics import NumberScores

    if isinstance(scores, NumberScores):
        row = (f"{scores.count:,}", *map(decimals, (scores.pearson, scores.spearman, scores.squared_error)))
        show_table(title, ("there are", "Pearson", "Spearman", "squared error"), [row])
        return
    rows = [
        (name, percent(each.precision), percent(each.recall), percent(each.f1), f"{each.gold:,}")
        for name, each in scores.classes.items()
    ]
    show_table(title, ("label", "precision", "recall", "F1", "there are"), rows)
    typer.echo(f"accuracy {percent(scores.accuracy)} % of {scores.count:,}, macro F1 {percent(scores.macro_f1)}")
    if scores.unseen:
        missed = ", ".join(f"{label} ({count:,})" for label, count in list(scores.unseen.items())[:8])
        typer.echo(f"never seen in training, and counted as wrong: {missed}")


def _shown(model: AnyModel, example: Any, output: np.ndarray, form: str) -> str:  # noqa: ANN401
    """One answer as people and machines read it."""
    from polyseme.tasks.sentences.targets import LabelTarget

    goal = model.target_
    answer = goal.decode(output[None])[0]
    sentences: Sequence[Sequence[str]] = example if model.width > 1 else [example]
    texts = [" ".join(words) for words in sentences]
    shares = (
        dict(zip(goal.names, goal.probabilities(output).tolist(), strict=True)) if isinstance(goal, LabelTarget) else {}
    )
    said = answer if shares else decimals(answer)
    if form == "tsv":
        return "\t".join([said, *texts])
    if form == "json":
        told = {"label": answer, "probabilities": shares} if shares else {"number": answer}
        names = ("words",) if len(sentences) == 1 else ("first", "second")
        return json.dumps({**told, **dict(zip(names, sentences, strict=True))}, ensure_ascii=False)
    sure = f" {100 * shares[answer]:3.0f} %" if shares else ""
    return f"{coloured(said, said if shares else '')}{sure}  {'  |  '.join(texts)}"


def _lot(count: int, wanted: int) -> list[int]:
    import numpy as np

    return np.random.default_rng(0).choice(count, wanted, replace=False).tolist()
