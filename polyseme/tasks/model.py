"""What all tasks share: encoders that are opened, frozen or not; fitting; a folder to save to and load from."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

import torch

from polyseme.embedding.layers import Mix
from polyseme.errors import ConfigError
from polyseme.model.config import from_dict
from polyseme.tasks.features.encoders import Given, Source, reopen
from polyseme.tasks.features.feature_cache import FeatureCache
from polyseme.tasks.features.mixing import TaskNetwork
from polyseme.tasks.features.reader import Reader
from polyseme.tasks.fitting.checkpoint import Checkpoint
from polyseme.tasks.fitting.loop import FitSettings, Report, Task, fit
from polyseme.tasks.folder import fill, load_model, save_model


class TaskSettings(Protocol):
    """What every task's settings have; they are frozen dataclasses."""

    @property
    def fine_tune(self) -> bool:
        """Whether the encoders learn too."""
        ...


S = TypeVar("S", bound=TaskSettings)
N = TypeVar("N", bound=TaskNetwork)
M = TypeVar("M", bound="TaskModel[Any, Any]")


class TaskModel(ABC, Generic[S, N]):
    """A model on top of encoders, in scikit-learn's manners.

    Args:
        encoder: What gives contextual vectors: a path, what `polyseme.load` gave, or several of them side by side; none
            for a model without any.
        words: Static word vectors beside them, as GloVe's.
        settings: What the model is made of.
        fit_settings: How it is fitted.
        cache: Where vectors of frozen encoders are kept; the user's cache, if nothing is said.
        device: Where to compute.

    Attributes:
        best_score_: The score on the dev set after `fit`, if there was one.
        best_epoch_: The epoch in which it was reached.
    """

    task: ClassVar[str]  # what its folder calls it
    settings_kind: ClassVar[type[Any]]
    default_fit: ClassVar[FitSettings] = FitSettings()
    best_score_: float | None = None
    best_epoch_: int = 0

    def __init__(
        self,
        encoder: Given | Sequence[Given] | None = None,
        *,
        words: Given | None = None,
        settings: S | None = None,
        fit_settings: FitSettings | None = None,
        cache: FeatureCache | None = None,
        device: str | torch.device = "cpu",
    ) -> None:
        self.settings = cast("S", settings or self.settings_kind())
        self.fit_settings = fit_settings or self.default_fit
        self.cache = cache or FeatureCache()
        self.device = device
        self.sources = [Source.open(one, device) for one in _several(encoder)]
        self.word_sources = [Source.open(one, device) for one in _several(words)]
        if self.settings.fine_tune and not self.sources:
            raise ConfigError("fine_tune lets encoders learn, but there is none; give one, or leave it out")
        self._reader: Reader | None = None
        self._network: N | None = None

    @abstractmethod
    def _make_network(self, reader: Reader) -> N:
        """The network, with random weights, for what is to be told apart."""

    @abstractmethod
    def _learned(self) -> dict[str, Any]:
        """What is learned besides weights (the names of labels), as JSON can hold it."""

    @abstractmethod
    def _take_learned(self, learned: Any) -> None:  # noqa: ANN401 - whatever a file says
        """The reverse of `_learned`."""

    @property
    def encoder_names(self) -> list[str]:
        """What people call the contextual encoders."""
        return [source.encoder.name for source in self.sources]

    @property
    def network(self) -> N:
        """The fitted network."""
        if self._network is None:
            raise ConfigError(f"this {self.task} has learned nothing yet; call fit first, or load one")
        return self._network

    @property
    def reader(self) -> Reader:
        """What reads sentences for the fitted network."""
        assert self.network is self._network
        assert self._reader is not None
        return self._reader

    def mixes(self) -> dict[str, list[Mix]]:
        """What was learned of the layers: for each place where they enter, weights and γ for each encoder."""
        return self.network.fitted_mixes()

    def save(self, path: str | Path, bundle: bool = False, overwrite: bool = False) -> None:
        """Write a folder that `load` opens; it names its encoders, or holds copies of them if they are bundled."""
        config = {
            "task": self.task,
            "settings": dataclasses.asdict(cast("Any", self.settings)),
            "fit": dataclasses.asdict(self.fit_settings),
            "learned": self._learned(),
            "rounding": self.cache.dtype,
            "best": {"score": self.best_score_, "epoch": self.best_epoch_},
        }
        sources = {"encoder": self.sources, "words": self.word_sources}
        save_model(path, config, self.network.state_dict(), sources, bundle, overwrite)

    @classmethod
    def load(
        cls: type[M],
        path: str | Path,
        encoder: Given | Sequence[Given] | None = None,
        *,
        words: Given | None = None,
        device: str | torch.device = "cpu",
    ) -> M:
        """Open a folder that `save` wrote.

        Args:
            path: The folder.
            encoder: Its encoders, if they are no longer where they were; they must be the same.
            words: Its word vectors, likewise.
            device: Where to compute.
        """
        folder = Path(path)
        config, weights = load_model(folder, cls.task)
        described = {"encoder": [], "words": [], **config.get("sources", {})}
        model = cls(
            _reopen(described["encoder"], _several(encoder), folder, device),
            words=next(iter(_reopen(described["words"], _several(words), folder, device)), None),
            settings=from_dict(cls.settings_kind, config.get("settings"), f"{folder}: settings"),
            fit_settings=from_dict(FitSettings, config.get("fit"), f"{folder}: fit"),
            cache=FeatureCache(dtype=config.get("rounding", "float16")),
            device=device,
        )
        model._take_learned(config.get("learned"))
        model._build()
        fill(model.network, weights, folder)
        best = config.get("best", {})
        model.best_score_, model.best_epoch_ = best.get("score"), best.get("epoch", 0)
        return model

    def _build(self) -> None:
        """A network that has learned nothing, its random weights by the seed. Encoders that learn are copies."""
        learns = self.settings.fine_tune
        encoders = [copy.deepcopy(source.encoder) if learns else source.encoder for source in self.sources]
        words = self.word_sources[0].encoder if self.word_sources else None
        self._reader = Reader(encoders, words, learns, self.cache)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.fit_settings.seed)
            self._network = self._make_network(self._reader).to(self.device).eval()

    def _run(self, task: Task, data: object, checkpoint: str | Path | None) -> Iterator[Report]:
        """Fit what `_build` made."""
        place = Checkpoint(checkpoint, self._about(data)) if checkpoint else None
        self.best_score_, self.best_epoch_ = None, 0
        for report in fit(task, self.fit_settings, place):
            self.best_score_, self.best_epoch_ = report.best, report.best_epoch
            yield report
        self.network.eval()

    def _about(self, data: object) -> dict[str, Any]:
        """What a run is of, so that it is gone on with only as it was begun."""
        sources = [source.fingerprint for source in (*self.sources, *self.word_sources)]
        settings = {"settings": dataclasses.asdict(cast("Any", self.settings)), "fit settings": self.fit_settings}
        return {
            "task": self.task,
            **{name: str(value) for name, value in settings.items()},
            "encoders": sources,
            "data": hashlib.sha256(json.dumps(data).encode()).hexdigest(),
        }


def _several(given: Given | Sequence[Given] | None) -> list[Given]:
    if given is None:
        return []
    return list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]


def _reopen(described: Sequence[Any], given: Sequence[Given], folder: Path, device: str | torch.device) -> list[Source]:
    if given and len(given) != len(described):
        raise ConfigError(f"{folder} was fitted with {len(described)} of these encoders; {len(given)} were given")
    stand_ins = [*given] or [None] * len(described)
    return [reopen(about, folder, one, device) for about, one in zip(described, stand_ins, strict=True)]
