"""The models that a server has, opened from their paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polyseme
from polyseme.backends.elmo.encoder import ElmoEncoder
from polyseme.backends.static import StaticEncoder
from polyseme.embedding.encoder import Encoder
from polyseme.formats import open_model, open_softmax
from polyseme.lm import LanguageModel
from polyseme.loading import ELMO, backend_of, load
from polyseme.serving.engine.batcher import Engine
from polyseme.serving.http.errors import missing
from polyseme.tasks.tagging.tagger import Tagger

SHIPPED = Path(polyseme.__file__).parent / "models" / "english"


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A model under the name by which requests call it."""

    id: str
    encoder: Encoder
    language_model: LanguageModel | None = None

    @property
    def kind(self) -> str:
        """``elmo``, ``transformer`` or ``static``."""
        if isinstance(self.encoder, ElmoEncoder):
            return "elmo"
        return "static" if isinstance(self.encoder, StaticEncoder) else "transformer"

    @property
    def layer_names(self) -> list[str]:
        """What people call the layers."""
        first = {"elmo": "spelling", "transformer": "pieces", "static": "word"}[self.kind]
        return [first, *(f"layer {number}" for number in range(1, self.encoder.num_layers))]

    @cached_property
    def engine(self) -> Engine:
        """Sentences to arrays (layers, words, dim)."""
        return Engine(self.id, lambda sentences: list(self.encoder.embed(sentences)))

    def describe(self) -> dict[str, Any]:
        """As ``/v1/models`` shows it."""
        return {
            "id": self.id,
            "kind": self.kind,
            "layers": self.encoder.num_layers,
            "dim": self.encoder.dim,
            "language_model": self.language_model is not None,
            "layer_names": self.layer_names,
        }


class Catalogue:
    """All models by name, the first one for those who name none; and a tagger, where there is one."""

    def __init__(self, models: Sequence[ServedModel], tagger: Tagger | None = None, tagger_name: str = "") -> None:
        self.models = {model.id: model for model in models}
        self.default = models[0]
        self.tagger, self.tagger_name = tagger, tagger_name
        self.tag_engine = Engine(tagger_name, tagger.predict) if tagger else None

    def find(self, name: str | None) -> ServedModel:
        """The model of that name."""
        if name is None:
            return self.default
        if name not in self.models:
            known = ", ".join(self.models)
            raise missing(f"there is no such model; the models here are {known}", ["model"])
        return self.models[name]

    def describe(self) -> dict[str, Any]:
        """As ``/v1/models`` shows it."""
        return {"models": [model.describe() for model in self.models.values()], "tagger": self._describe_tagger()}

    def _describe_tagger(self) -> dict[str, Any] | None:
        if self.tagger is None:
            return None
        names = self.tagger.encoder_names
        mixes = {
            place: [
                {"encoder": name, "weights": list(mix.weights), "gamma": mix.gamma}
                for name, mix in zip(names, fitted, strict=False)
            ]
            for place, fitted in self.tagger.mixes().items()
        }
        return {"id": self.tagger_name, "labels": list(self.tagger.classes_), "mixes": mixes}


def open_catalogue(
    paths: Sequence[str | None], tagger: str | None = None, device: str = "cpu", precision: str = "float32"
) -> Catalogue:
    """Open models and a tagger; a path of None is the model that ships with the package."""
    models: list[ServedModel] = []
    for given in paths:
        path = SHIPPED if given is None and SHIPPED.is_dir() else given
        encoder = _open(path, device, precision)
        models.append(ServedModel(_unused(encoder.name, models), encoder, _language_model(path, encoder)))
    opened = Tagger.load(tagger, device=device) if tagger else None
    return Catalogue(models, opened, Path(tagger).resolve().name if tagger else "")


def _open(path: str | Path | None, device: str, precision: str) -> Encoder:
    """A model that is ready to embed; a precision other than the usual one is for ELMo alone."""
    is_elmo = path is not None and backend_of(path) is ELMO
    encoder = load(path, device=device, **({"precision": precision} if is_elmo else {})).eval()
    encoder.prepare()
    return encoder


def _language_model(path: str | Path | None, encoder: Encoder) -> LanguageModel | None:
    """The head of a model, on top of the weights that are there already."""
    if path is None or not isinstance(encoder, ElmoEncoder) or open_model(path).softmax is None:
        return None
    head = open_softmax(path)
    model = LanguageModel(encoder.bilm, head.build(), encoder.words, head.vocabulary, encoder.name)
    return model.to(encoder.device)


def _unused(name: str, models: Sequence[ServedModel]) -> str:
    taken, number, free = {model.id for model in models}, 2, name
    while free in taken:
        free, number = f"{name}-{number}", number + 1
    return free
