"""Finished parts, kept in files of their own, so that an interruption costs one part and a second run costs none."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

from polyseme.files import atomic_write, make_folder
from polyseme.report.measure.measurement import Results


class ResultStore:
    """A folder with a file for each part that was done.

    A file's name carries a digest of everything that its numbers depend on: the model, the part, the settings, the
    data. So nothing stale is ever taken for new. And the file carries a digest of what it holds, so that whatever was
    altered is measured anew.
    """

    def __init__(self, folder: Path) -> None:
        make_folder(folder)
        self._folder = folder

    def get(self, part: str, key: object) -> Results | None:
        """What was found before; None where it was not, or where its file is damaged or altered."""
        path = self._path(part, key)
        try:
            kept = json.loads(path.read_text("utf-8"))
            found = kept["found"]
            return found if isinstance(found, dict) and kept["sha256"] == _digest(path, found) else None
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return None

    def put(self, part: str, key: object, found: Results) -> Results:
        """Keep what was found, and give it as it will be read again: the same to the last digit."""
        path, found = self._path(part, key), plain(found)
        kept = {"sha256": _digest(path, found), "found": found}
        text = json.dumps(kept, indent=1, ensure_ascii=False, allow_nan=False)
        with atomic_write(path) as file:
            file.write(text.encode("utf-8", "backslashreplace"))
        return json.loads(text)["found"]

    def _path(self, part: str, key: object) -> Path:
        digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
        return self._folder / f"{part}-{digest[:20]}.json"


def _digest(path: Path, found: Results) -> str:
    """A SHA-256 of what a file holds and of its name, so that no file can stand in for another."""
    text = json.dumps(found, sort_keys=True)
    return hashlib.sha256(f"{path.name}\n{text}".encode()).hexdigest()


def plain(value: Any) -> Any:  # noqa: ANN401 - whatever a part holds
    """The same as JSON can hold it: arrays as lists, numbers short and finite or None."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if to_list := getattr(value, "tolist", None):
        return plain(to_list())
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else None
    return value
