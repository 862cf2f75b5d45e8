"""Finished parts, kept in files of their own, so that an interruption costs one part and a second run costs none."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

from polyseme.files import make_folder, replacing

Found = dict[str, Any]  # what a part found, as JSON holds it


class Store:
    """A folder with a file for each part that was done.

    A file's name carries a digest of everything that its numbers depend on: the model, the part, the settings, the
    data. So nothing stale is ever taken for new.
    """

    def __init__(self, folder: Path) -> None:
        make_folder(folder)
        self._folder = folder

    def get(self, part: str, key: object) -> Found | None:
        """What was found before; None where it was not, or where its file is damaged."""
        try:
            kept = json.loads(self._path(part, key).read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return kept if isinstance(kept, dict) else None

    def put(self, part: str, key: object, found: Found) -> Found:
        """Keep what was found, and give it as it will be read again: the same to the last digit."""
        text = json.dumps(plain(found), indent=1, ensure_ascii=False, allow_nan=False)
        with replacing(self._path(part, key)) as file:
            file.write(text.encode("utf-8", "backslashreplace"))
        return json.loads(text)

    def _path(self, part: str, key: object) -> Path:
        digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
        return self._folder / f"{part}-{digest[:20]}.json"


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
