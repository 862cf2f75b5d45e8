"""JSON, read with a sentence for every fault."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from polyseme.errors import FormatError


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path} is not JSON: {error}") from error
    if not isinstance(values, dict):
        raise FormatError(f"{path} should hold a JSON object, not {type(values).__name__}")
    return values
