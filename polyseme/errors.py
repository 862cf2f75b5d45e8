"""What can go wrong, as a tree. Each message says what was expected, what came, and what to do.

    PolysemeError
    ├── InputError        sentences, words or text that cannot be embedded
    ├── ConfigError       settings that contradict each other or do not exist
    ├── FormatError       a file that is not what it should be
    ├── OutputError       a result that cannot be written
    ├── TrainingError     a training run that cannot go on
    ├── ServerError       a server that cannot be reached, or cannot answer
    └── MissingExtraError an optional package is not installed

The library raises these and never prints; the command line shows one as a single line and exits with status 2.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable
from types import ModuleType


class PolysemeError(Exception):
    """Anything that a user can mend."""


class InputError(PolysemeError, ValueError):
    """Sentences, words or text that cannot be embedded."""


class ConfigError(PolysemeError, ValueError):
    """Settings that contradict each other or do not exist."""


class FormatError(PolysemeError, ValueError):
    """A file that is not what it should be."""


class OutputError(PolysemeError, OSError):
    """A result that cannot be written."""


class TrainingError(PolysemeError, RuntimeError):
    """A training run that cannot go on."""


class ServerError(PolysemeError, ConnectionError):
    """A server that cannot be reached, or cannot answer."""


class MissingExtraError(PolysemeError, ImportError):
    """An optional package is not installed."""


def nearest(wrong: str, known: Iterable[str]) -> str:
    """End a message with the known name that is most like the wrong one: ``" Did you mean 'average'?"``."""
    matches = difflib.get_close_matches(wrong, list(known), n=1)
    return f" Did you mean {matches[0]!r}?" if matches else ""


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module, or say which extra brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{module} is needed for this and is not installed: pip install 'polyseme[{extra}]'"
        ) from error
