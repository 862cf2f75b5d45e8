"""`polyseme.load`: open a model of any format by its path, or the model that ships with the package."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from polyseme.backends.elmo.encoder import ElmoEncoder
from polyseme.backends.static import is_static, open_static
from polyseme.backends.transformer.files import is_hub_name, is_transformer, open_transformer
from polyseme.embedding.device import find_device
from polyseme.embedding.encoder import Encoder
from polyseme.embedding.interfaces import EmbedSettings
from polyseme.errors import ConfigError, FormatError, nearest
from polyseme.formats import native, resolve_model_path
from polyseme.formats.budget import read_model_json


class Backend(NamedTuple):
    """A kind of model: its name for people, the settings that only it has, and how it is opened with them."""

    kind: str
    settings: tuple[str, ...]
    open: Callable[..., Encoder]


ELMO = Backend("an ELMo model", ("vocabulary",), ElmoEncoder.load)
TRANSFORMER = Backend("a transformer", ("pooling",), open_transformer)
STATIC = Backend("a file of static vectors", ("vocabulary", "unknown", "trainable", "cache"), open_static)

_OWN = list(dict.fromkeys(name for backend in (ELMO, TRANSFORMER, STATIC) for name in backend.settings))
LOAD_SETTINGS = ["device", *_OWN, *(field.name for field in dataclasses.fields(EmbedSettings))]
# Fitted task models, by what their folder calls them.
_TASK_CLASSES = {"tagger": "Tagger", "classifier": "Classifier", "pair model": "Pairs"}
# Settings as older toolkits call them.
_ELSEWHERE = {
    "batch_size": "word_budget",
    "max_batch_size": "word_budget",
    "cuda_device": "device",
    "keep_sentence_boundaries": "boundaries",
    "num_output_representations": "num_mixes",
    "requires_grad": "trainable",
    "do_layer_norm": "layer_norm",
    "scalar_mix_parameters": "scores",
    "subtoken_pooling": "pooling",
}


def load(
    path: str | Path | None = None,
    *,
    device: str | torch.device = "cpu",
    **settings: Any,  # noqa: ANN401
) -> Encoder:
    """Open a model of any format; `polyseme.from_pretrained` is the same function.

    Args:
        path: A file, folder, zip or tar of an ELMo model: ours, bilm-tf's or AllenNLP's, ELMoForManyLangs'. Or a
            transformer's folder, or its name on Hugging Face's hub. Or a file of static vectors: GloVe's, word2vec's,
            fastText's ``.vec``, NumPy's ``.npy``. Nothing, or ``english``: the model that ships.
        device: Where to compute.
        **settings: How to embed: ``word_budget``, ``boundaries``, ``dtype``, ``precision``, ``cache_words``,
            ``workers``; see `EmbedSettings`. For a bilm-tf model that reads word ids, ``vocabulary``: the words,
            when ``vocab.txt`` is not beside it. For a transformer, ``pooling``: ``first``, ``last`` or ``mean`` of a
            word's pieces. For static vectors, ``unknown``, ``trainable``, ``vocabulary`` and ``cache``; see
            `open_static`.
    """
    for name in settings:
        check_setting(name, LOAD_SETTINGS, "load")
    path = resolve_model_path(path)
    refuse_task_model(Path(path))
    backend = backend_of(path)
    own = {name: settings.pop(name) for name in _OWN if name in settings}
    given = {name: value for name, value in own.items() if value is not None}
    for name in given:
        if name not in backend.settings:
            raise ConfigError(f"{path} is {backend.kind}, which has no setting {name!r}; leave it out")
    try:
        encoder = backend.open(path, EmbedSettings(**settings), **given).to(find_device(device))
    except MemoryError as error:
        raise FormatError(f"{path} cannot be opened: this machine has too little memory for it") from error
    encoder.check_precision()
    return encoder


from_pretrained = load


def backend_of(path: str | Path) -> Backend:
    """The backend that opens a model. Unknown files are left to ELMo's formats, which say what they looked for."""
    place = Path(resolve_model_path(path)).expanduser()
    if native.has_own_config(place):
        return ELMO
    if is_transformer(place) if place.exists() else is_hub_name(path):
        return TRANSFORMER
    return STATIC if is_static(place) else ELMO


def refuse_task_model(folder: Path) -> None:
    """Refuse the folder of a fitted task model, and say what opens it."""
    if not (folder / "manifest.json").is_file():
        return
    task = str(read_model_json(folder / "config.json").get("format")).removeprefix("polyseme ")
    if task in _TASK_CLASSES:
        raise FormatError(
            f"{folder} is a fitted {task}, which labels text and gives no vectors; open it with "
            f"polyseme.{_TASK_CLASSES[task]}.load({str(folder)!r})"
        )


def check_setting(name: str, known: Sequence[str], where: str) -> None:
    """Refuse an unknown setting, and say what it is called here."""
    if name not in known:
        remedy = f" It is called {_ELSEWHERE[name]!r} here." if name in _ELSEWHERE else nearest(name, known)
        raise ConfigError(f"{where} has no setting {name!r}; it knows {', '.join(known)}.{remedy}")
