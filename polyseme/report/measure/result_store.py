"""On-disk store of finished measurements: an interruption costs one of them, and a second run costs none."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

from polyseme.files import atomic_write, make_folder
from polyseme.report.measure.measurement import Results


class ResultStore:
    """A folder with one JSON file for each finished measurement.

    A file's name contains a digest of everything its numbers depend on (model, measurement, settings, data), so stale
    results are never reused. The file also contains a digest of its contents, so an altered file is measured again.
    """

    def __init__(self, folder: Path) -> None:
        make_folder(folder)
        self._folder = folder

    def get(self, name: str, key: object) -> Results | None:
        """Stored results of a measurement; None if there are none, or if the file is damaged or altered."""
        path = self._path(name, key)
        try:
            stored = json.loads(path.read_text("utf-8"))
            results = stored["found"]
            return results if isinstance(results, dict) and stored["sha256"] == _digest(path, results) else None
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return None

    def put(self, name: str, key: object, results: Results) -> Results:
        """Store results, and return them exactly as `get` will read them."""
        path, results = self._path(name, key), as_json(results)
        stored = {"sha256": _digest(path, results), "found": results}
        text = json.dumps(stored, indent=1, ensure_ascii=False, allow_nan=False)
        with atomic_write(path) as file:
            file.write(text.encode("utf-8", "backslashreplace"))
        return json.loads(text)["found"]

    def _path(self, name: str, key: object) -> Path:
        digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
        return self._folder / f"{name}-{digest[:20]}.json"


def _digest(path: Path, results: Results) -> str:
    """SHA-256 of a file's results and its name, so that no file can stand in for another."""
    text = json.dumps(results, sort_keys=True)
    return hashlib.sha256(f"{path.name}\n{text}".encode()).hexdigest()


def as_json(value: Any) -> Any:  # noqa: ANN401 - anything that results hold
    """A value as JSON can hold it: arrays become lists, numbers have 7 digits, NaN and infinity become None."""
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if to_list := getattr(value, "tolist", None):
        return as_json(to_list())
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else None
    return value
