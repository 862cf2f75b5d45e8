"""Any model, by its path."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import torch

from polyseme.backends.elmo import ElmoEncoder
from polyseme.embedding.interfaces import EmbedSettings
from polyseme.errors import ConfigError, nearest
from polyseme.formats import open_model


def load(
    path: str | Path | None = None,
    *,
    device: str | torch.device = "cpu",
    vocabulary: str | Path | None = None,
    **settings: object,
) -> ElmoEncoder:
    """Open a model, whatever its format.

    Args:
        path: A file, folder, zip or tar of a model: ours, bilm-tf's or AllenNLP's, ELMoForManyLangs'.
        device: Where to compute.
        vocabulary: The words of a bilm-tf model that reads word numbers, when ``vocab.txt`` is not beside it.
        **settings: How to embed: ``word_budget``, ``boundaries``, ``dtype``, ``workers``; see `EmbedSettings`.
    """
    known = [field.name for field in dataclasses.fields(EmbedSettings)]
    for name in settings:
        if name not in known:
            raise ConfigError(
                f"load has no setting {name!r}; it knows device, vocabulary, {', '.join(known)}.{nearest(name, known)}"
            )
    if path is None:
        raise ConfigError("no model ships with this version yet; give the path of one: polyseme.load('path/to/model')")
    stored = open_model(path, vocabulary)
    encoder = ElmoEncoder(stored.build(), stored.words, EmbedSettings(**settings), name=Path(path).name)  # pyright: ignore[reportArgumentType]
    return encoder.to(_device(device))


def _device(device: str | torch.device) -> torch.device:
    try:
        found = torch.device(device)
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ConfigError(f"device {str(device)!r} cannot be used here: {str(error).splitlines()[0]}") from error
    return found
