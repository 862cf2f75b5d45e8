"""The model that ships with the package: where it is, and what it is called."""

from __future__ import annotations

from pathlib import Path

from polyseme.errors import ConfigError

ENGLISH = "english"
FOLDER = Path(__file__).parents[1] / "models"


def resolve(model: str | Path | None) -> str | Path:
    """The path of a model: of the one that ships for nothing or its name, else what is given.

    A file or folder of that name in the working folder comes first.
    """
    if model is not None and (str(model) != ENGLISH or Path(model).exists()):
        return model
    place = FOLDER / ENGLISH
    if not place.is_dir():
        raise ConfigError(
            f"no model ships with this install: there is no {place}; give the path of one: "
            "polyseme.load('path/to/model'), or --model"
        )
    return place
