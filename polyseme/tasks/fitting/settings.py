"""Validation of settings, and settings typed as NAME=VALUE on the command line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from polyseme.errors import ConfigError, nearest


def check_choice(settings: object, name: str, known: Sequence[str]) -> None:
    """Refuse a setting whose value is none of the known choices."""
    value = getattr(settings, name)
    if value not in known:
        raise ConfigError(f"{name} must be one of {', '.join(known)}, not {value!r}.{nearest(str(value), known)}")


def check_range(settings: object, name: str, least: float, below: float) -> None:
    """Refuse a setting that is no number within its range."""
    value = getattr(settings, name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value < below:
        limit = "" if below == float("inf") else f" and below {below:g}"
        raise ConfigError(f"{name} must be a number of {least:g} or more{limit}; got {value!r}")


def parse_settings(typed: Iterable[str], known: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Parse settings like ``tagger.mix.l2=0`` to a table for each of the known first names."""
    tables: dict[str, dict[str, Any]] = {name: {} for name in known}
    for setting in typed:
        path, equals, value = setting.partition("=")
        names = path.split(".")
        if not equals or len(names) < 2 or names[0] not in tables:
            begins = " or ".join(f"{name}." for name in known)
            raise ConfigError(f"a setting is typed as NAME=VALUE, its name starting with {begins}; got {setting!r}")
        table: Any = tables
        for name in names[:-1]:
            table = table.setdefault(name, {})
            if not isinstance(table, dict):
                raise ConfigError(f"{setting!r} contradicts a setting before it")
        table[names[-1]] = _value(value)
    return tables


def merged(defaults: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Merge changes into a table of settings, at any depth."""
    result = dict(defaults)
    for name, value in changes.items():
        before = result.get(name)
        both = isinstance(value, Mapping) and isinstance(before, Mapping)
        result[name] = merged(cast("Mapping[str, Any]", before), value) if both else value
    return result


def _value(text: str) -> Any:  # noqa: ANN401 - whatever was typed
    try:
        return json.loads(text)
    except ValueError:
        return text
