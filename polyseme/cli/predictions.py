"""Predictions of taggers, classifiers and pair models as text in colour, JSON lines, TSV or CoNLL columns."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import tee
from typing import TYPE_CHECKING, Any

from polyseme.cli.output import decimals
from polyseme.errors import ConfigError, nearest

if TYPE_CHECKING:
    import numpy as np

    from polyseme.tasks.sentences.model import ExampleModel

    AnyModel = ExampleModel[Any, Any, Any]

TAG_FORMATS = ("text", "json", "conll")
ANSWER_FORMATS = ("text", "json", "tsv")
_COLOURS = (36, 33, 35, 32, 34, 31)  # ANSI codes


def check_format(name: str | None, known: Sequence[str]) -> str:
    """The output format given with --format, by default text on a terminal and JSON elsewhere."""
    if name is None:
        return "text" if sys.stdout.isatty() else "json"
    if name not in known:
        choices = f"{', '.join(known[:-1])} or {known[-1]}"
        raise ConfigError(f"--format must be {choices}, not {name!r}.{nearest(name, known)}")
    return name


def format_tags(words: Sequence[str], labels: Sequence[str], has_entities: bool, form: str) -> str:
    """One tagged sentence in the given format; a blank line follows CoNLL columns."""
    if form == "conll":
        return "".join(f"{word}\t{label}\n" for word, label in zip(words, labels, strict=True))
    if form == "json":
        entities = {"entities": _entities(words, labels)} if has_entities else {}
        return json.dumps({"words": list(words), "labels": list(labels), **entities}, ensure_ascii=False)
    return _entity_text(words, labels) if has_entities else _label_text(words, labels)


def format_answers(model: AnyModel, examples: Iterable[Any], form: str) -> Iterator[str]:
    """One line per example with the predicted label or number, in order, while examples arrive."""
    first, second = tee(examples)
    outputs = model.outputs(second)
    return (_format_answer(model, example, output, form) for example, output in zip(first, outputs, strict=True))


def coloured(text: str, kind: str) -> str:
    """Text in a colour that is always the same for a label; plain text where output is no terminal."""
    if not sys.stdout.isatty():
        return text
    return f"\x1b[{_COLOURS[sum(kind.encode()) % len(_COLOURS)]}m{text}\x1b[0m"


def _entities(words: Sequence[str], labels: Sequence[str]) -> list[dict[str, str | int]]:
    from polyseme.tasks.tagging.schemes import read_spans

    return [
        {"type": kind, "begin": begin, "end": end, "text": " ".join(words[begin:end])}
        for begin, end, kind in read_spans(labels)
    ]


def _entity_text(words: Sequence[str], labels: Sequence[str]) -> str:
    """Running text with entities and their types in brackets: ``[New York LOC]``."""
    from polyseme.tasks.tagging.schemes import read_spans

    parts, done = [], 0
    for begin, end, kind in read_spans(labels):
        parts += [*words[done:begin], coloured(f"[{' '.join(words[begin:end])} {kind}]", kind)]
        done = end
    return " ".join([*parts, *words[done:]])


def _label_text(words: Sequence[str], labels: Sequence[str]) -> str:
    return " ".join(f"{word}{coloured(f'/{label}', label)}" for word, label in zip(words, labels, strict=True))


def _format_answer(model: AnyModel, example: Any, output: np.ndarray, form: str) -> str:  # noqa: ANN401
    """The prediction for one example as a line of text, JSON or TSV."""
    from polyseme.tasks.sentences.targets import LabelTarget

    target = model.target_
    answer = target.decode(output[None])[0]
    sentences: Sequence[Sequence[str]] = example if model.width > 1 else [example]
    texts = [" ".join(words) for words in sentences]
    probabilities: dict[Any, float] = {}
    if isinstance(target, LabelTarget):
        probabilities = dict(zip(target.names, target.probabilities(output).tolist(), strict=True))
    label = str(answer) if probabilities else decimals(answer)
    if form == "tsv":
        return "\t".join([label, *texts])
    if form == "json":
        result = {"label": answer, "probabilities": probabilities} if probabilities else {"number": answer}
        names = ("words",) if len(sentences) == 1 else ("first", "second")
        return json.dumps({**result, **dict(zip(names, sentences, strict=True))}, ensure_ascii=False)
    certainty = f" {100 * probabilities[answer]:3.0f} %" if probabilities else ""
    return f"{coloured(label, label if probabilities else '')}{certainty}  {'  |  '.join(texts)}"
