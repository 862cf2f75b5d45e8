"""Exception hierarchy of polyseme. Each message says what was expected, what came, and what to do.

    PolysemeError
    ├── InputError        sentences, words or text that cannot be embedded
    ├── ConfigError       settings that contradict each other or do not exist
    ├── FormatError       a file that is not what it should be
    ├── OutputError       a result that cannot be written
    ├── TrainingError     a training run that cannot continue
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
    """Base class of all polyseme errors: anything that a user can fix."""


class InputError(PolysemeError, ValueError):
    """Invalid input: sentences, words or text that cannot be embedded."""


class ConfigError(PolysemeError, ValueError):
    """Invalid settings: they contradict each other or do not exist."""


class FormatError(PolysemeError, ValueError):
    """Invalid file format: a file that is not what it should be."""


class OutputError(PolysemeError, OSError):
    """Output that cannot be written, or would overwrite something."""


class TrainingError(PolysemeError, RuntimeError):
    """Training run that cannot continue."""


class ServerError(PolysemeError, ConnectionError):
    """Server that cannot be reached, or cannot answer."""


class MissingExtraError(PolysemeError, ImportError):
    """Optional dependency that is not installed."""


def nearest(wrong: str, known: Iterable[str]) -> str:
    """Suggest the known name that is most like a misspelt one, to end a message: ``" Did you mean 'average'?"``."""
    matches = difflib.get_close_matches(wrong, list(known), n=1)
    return f" Did you mean {matches[0]!r}?" if matches else ""


def require(module: str, extra: str) -> ModuleType:
    """Import an optional dependency, or say which extra installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{module} is needed for this and is not installed: pip install 'polyseme[{extra}]'"
        ) from error
