"""A labelled sentence as people and machines read it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from polyseme.errors import ConfigError, nearest

FORMS = ("text", "json", "conll")
_COLOURS = (36, 33, 35, 32, 34, 31)  # of a terminal


def check_form(form: str | None, known: Sequence[str] = FORMS) -> str:
    """The form that is asked for, or the one that suits where the output goes."""
    if form is None:
        return "text" if sys.stdout.isatty() else "json"
    if form not in known:
        choices = f"{', '.join(known[:-1])} or {known[-1]}"
        raise ConfigError(f"--format must be {choices}, not {form!r}.{nearest(form, known)}")
    return form


def shown(words: Sequence[str], labels: Sequence[str], has_entities: bool, form: str) -> str:
    """One sentence; in columns a blank line follows it."""
    if form == "conll":
        return "".join(f"{word}\t{label}\n" for word, label in zip(words, labels, strict=True))
    if form == "json":
        entities = {"entities": _entities(words, labels)} if has_entities else {}
        return json.dumps({"words": list(words), "labels": list(labels), **entities}, ensure_ascii=False)
    return _entity_text(words, labels) if has_entities else _label_text(words, labels)


def _entities(words: Sequence[str], labels: Sequence[str]) -> list[dict[str, str | int]]:
    from polyseme.tasks.tagging.schemes import read_spans

    return [
        {"type": kind, "begin": begin, "end": end, "text": " ".join(words[begin:end])}
        for begin, end, kind in read_spans(labels)
    ]


def _entity_text(words: Sequence[str], labels: Sequence[str]) -> str:
    """Running text, entities in brackets, with their types: ``[New York LOC]``."""
    from polyseme.tasks.tagging.schemes import read_spans

    pieces, done = [], 0
    for begin, end, kind in read_spans(labels):
        pieces += [*words[done:begin], coloured(f"[{' '.join(words[begin:end])} {kind}]", kind)]
        done = end
    return " ".join([*pieces, *words[done:]])


def _label_text(words: Sequence[str], labels: Sequence[str]) -> str:
    return " ".join(f"{word}{coloured(f'/{label}', label)}" for word, label in zip(words, labels, strict=True))


def coloured(text: str, kind: str) -> str:
    """In a colour that is always the same for a kind; plain where nobody looks."""
    if not sys.stdout.isatty():
        return text
    return f"\x1b[{_COLOURS[sum(kind.encode()) % len(_COLOURS)]}m{text}\x1b[0m"
