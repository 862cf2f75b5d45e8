"""The model catalogue of a server: models and a tagger, opened from paths and found by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import polyseme
from polyseme.backends.elmo.encoder import ElmoEncoder
from polyseme.backends.static import StaticEncoder
from polyseme.embedding.encoder import Encoder
from polyseme.errors import ConfigError, InputError
from polyseme.formats import open_model, open_softmax
from polyseme.lm import LanguageModel
from polyseme.loading import ELMO, backend_of, load
from polyseme.serving.engine.batcher import BatchFunction
from polyseme.tasks.tagging.tagger import Tagger

SHIPPED = Path(polyseme.__file__).parent / "models" / "english"


class UnknownModelError(ConfigError):
    """A request names a model that the server does not have."""


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A model that the server has, under the id that requests use."""

    id: str
    encoder: Encoder
    language_model: LanguageModel | None = None

    @property
    def kind(self) -> str:
        """The kind of encoder: ``elmo``, ``transformer`` or ``static``."""
        if isinstance(self.encoder, ElmoEncoder):
            return "elmo"
        return "static" if isinstance(self.encoder, StaticEncoder) else "transformer"

    @property
    def layer_names(self) -> list[str]:
        """The names of the layers, as the page shows them."""
        first = {"elmo": "spelling", "transformer": "pieces", "static": "word"}[self.kind]
        return [first, *(f"layer {number}" for number in range(1, self.encoder.num_layers))]

    @cached_property
    def embedding(self) -> BatchFunction:
        """The function from sentences to arrays (layers, words, dim)."""
        return BatchFunction(self.id, lambda sentences: [_finite(each) for each in self.encoder.embed(sentences)])

    @cached_property
    def prediction(self) -> BatchFunction | None:
        """The function from (words, position, top) to the likeliest words there; None without a language model."""
        model = self.language_model
        if model is None:
            return None
        return BatchFunction(self.id, lambda requests: [_predict(model, *request) for request in requests])

    def describe(self) -> dict[str, Any]:
        """The description of the model in ``/v1/models``."""
        return {
            "id": self.id,
            "kind": self.kind,
            "layers": self.encoder.num_layers,
            "dim": self.encoder.dim,
            "language_model": self.language_model is not None,
            "layer_names": self.layer_names,
        }


class Catalogue:
    """The models by id, of which the first is the default, and an optional tagger."""

    def __init__(self, models: Sequence[ServedModel], tagger: Tagger | None = None, tagger_name: str = "") -> None:
        self.models = {model.id: model for model in models}
        self.default = models[0]
        self.tagger, self.tagger_name = tagger, tagger_name
        self.tagging = BatchFunction(tagger_name, tagger.predict) if tagger else None

    def find(self, name: str | None) -> ServedModel:
        """The model with that id, or the default for None; raises `UnknownModelError`."""
        if name is None:
            return self.default
        if name not in self.models:
            raise UnknownModelError(f"there is no such model; choose one of {', '.join(self.models)}")
        return self.models[name]

    def describe(self) -> dict[str, Any]:
        """The description of all models and the tagger in ``/v1/models``."""
        return {"models": [model.describe() for model in self.models.values()], "tagger": self._describe_tagger()}

    def _describe_tagger(self) -> dict[str, Any] | None:
        if self.tagger is None:
            return None
        names = self.tagger.encoder_names
        mixes = {
            place: [
                {"encoder": name, "weights": list(mix.weights), "gamma": mix.gamma}
                for name, mix in zip(names, learned, strict=False)
            ]
            for place, learned in self.tagger.mixes().items()
        }
        return {"id": self.tagger_name, "labels": list(self.tagger.classes_), "mixes": mixes}


def open_catalogue(
    paths: Sequence[str | None], tagger: str | None = None, device: str = "cpu", precision: str = "float32"
) -> Catalogue:
    """Open models and an optional tagger; a path of None is the model that ships with the package."""
    models: list[ServedModel] = []
    for given in paths:
        path = SHIPPED if given is None and SHIPPED.is_dir() else given
        encoder = _open(path, device, precision)
        models.append(ServedModel(_unique_id(encoder.name, models), encoder, _language_model(path, encoder)))
    opened = Tagger.load(tagger, device=device) if tagger else None
    return Catalogue(models, opened, Path(tagger).resolve().name if tagger else "")


def _open(path: str | Path | None, device: str, precision: str) -> Encoder:
    """Load an encoder and prepare it for inference; the precision applies to ELMo only."""
    is_elmo = path is not None and backend_of(path) is ELMO
    encoder = load(path, device=device, **({"precision": precision} if is_elmo else {})).eval()
    encoder.prepare()
    return encoder


def _language_model(path: str | Path | None, encoder: Encoder) -> LanguageModel | None:
    """The language model of an ELMo encoder: its softmax on top of the weights that are already loaded."""
    if path is None or not isinstance(encoder, ElmoEncoder) or open_model(path).softmax is None:
        return None
    softmax = open_softmax(path)
    model = LanguageModel(encoder.bilm, softmax.build(), encoder.words, softmax.vocabulary, encoder.name)
    return model.to(encoder.device)


def _finite(vectors: np.ndarray) -> np.ndarray | InputError:
    if np.isfinite(vectors).all():
        return vectors
    return InputError("the model gives NaN or infinity for a sentence of this request")


def _predict(model: LanguageModel, words: list[str], position: int, top: int) -> dict[str, Any]:
    """The likeliest words at a position: by the forward model, the backward model, and both together."""
    forward, backward = ("forward" in model.directions), ("backward" in model.directions)
    return {
        "forward": _guesses(model.predict_next(words[:position], top)) if forward else [],
        "backward": _guesses(model.predict_previous(words[position + 1 :], top)) if backward else [],
        "both": _guesses(model.substitutes(words, position, top)) if forward and backward else [],
    }


def _guesses(guesses: Sequence[tuple[str, float]]) -> list[dict[str, Any]]:
    return [{"word": word, "probability": probability} for word, probability in guesses]


def _unique_id(name: str, models: Sequence[ServedModel]) -> str:
    taken, number, free = {model.id for model in models}, 2, name
    while free in taken:
        free, number = f"{name}-{number}", number + 1
    return free
