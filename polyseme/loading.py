"""Any model, by its path."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from polyseme.backends.elmo import ElmoEncoder
from polyseme.embedding.interfaces import EmbedSettings
from polyseme.errors import ConfigError, nearest
from polyseme.formats import open_model

LOAD_SETTINGS = ["device", "vocabulary", *(field.name for field in dataclasses.fields(EmbedSettings))]
# What the older toolkits call things.
_ELSEWHERE = {
    "batch_size": "word_budget",
    "max_batch_size": "word_budget",
    "cuda_device": "device",
    "keep_sentence_boundaries": "boundaries",
    "num_output_representations": "num_mixes",
    "requires_grad": "trainable",
    "do_layer_norm": "layer_norm",
    "scalar_mix_parameters": "scores",
}


def load(
    path: str | Path | None = None,
    *,
    device: str | torch.device = "cpu",
    vocabulary: str | Path | None = None,
    **settings: Any,  # noqa: ANN401
) -> ElmoEncoder:
    """Open a model, whatever its format.

    Args:
        path: A file, folder, zip or tar of a model: ours, bilm-tf's or AllenNLP's, ELMoForManyLangs'.
        device: Where to compute.
        vocabulary: The words of a bilm-tf model that reads word numbers, when ``vocab.txt`` is not beside it.
        **settings: How to embed: ``word_budget``, ``boundaries``, ``dtype``, ``workers``; see `EmbedSettings`.
    """
    for name in settings:
        check_setting(name, LOAD_SETTINGS, "load")
    if path is None:
        raise ConfigError("no model ships with this version yet; give the path of one: polyseme.load('path/to/model')")
    stored = open_model(path, vocabulary)
    encoder = ElmoEncoder(stored.build(), stored.words, EmbedSettings(**settings), name=_name(Path(path)))
    return encoder.to(_device(device))


def check_setting(name: str, known: Sequence[str], where: str) -> None:
    """Refuse a setting that does not exist, and say what it is called here."""
    if name not in known:
        remedy = f" It is called {_ELSEWHERE[name]!r} here." if name in _ELSEWHERE else nearest(name, known)
        raise ConfigError(f"{where} has no setting {name!r}; it knows {', '.join(known)}.{remedy}")


def _name(path: Path) -> str:
    """What people would call the model: its folder, or its file where that says more than ``weights.hdf5``."""
    usual = path.is_file() and path.stem in ("options", "weights", "config", "model")
    return path.absolute().parent.name if usual else path.name


def _device(device: str | torch.device) -> torch.device:
    try:
        found = torch.device(device)
        torch.empty(1, device=found).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ConfigError(f"device {str(device)!r} cannot be used here: {str(error).splitlines()[0]}") from error
    return found
