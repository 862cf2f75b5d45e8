"""Base class of all task models: a scikit-learn estimator over encoders that is fitted, saved and loaded."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

import torch

from polyseme.embedding.device import find_device
from polyseme.embedding.layers import Mix
from polyseme.errors import ConfigError
from polyseme.formats import SHIPPED_MODEL, format_errors
from polyseme.model.config import from_dict
from polyseme.progress import Stage, remark, show_progress, stage
from polyseme.tasks.features.feature_cache import FeatureCache
from polyseme.tasks.features.mixing import TaskNetwork
from polyseme.tasks.features.reader import FeatureReader
from polyseme.tasks.fitting.checkpoint import FitCheckpoint
from polyseme.tasks.fitting.loop import FitReport, FitSettings, Task, fit
from polyseme.tasks.folder import EncoderLike, EncoderSource, check_network, load_model, reopen, save_model
from polyseme.tasks.parameters import Estimator


class TaskSettings(Protocol):
    """The settings that all tasks have in common; each task's are a frozen dataclass."""

    @property
    def fine_tune(self) -> bool:
        """Whether the encoders are fine-tuned."""
        ...


S = TypeVar("S", bound=TaskSettings)
N = TypeVar("N", bound=TaskNetwork)
M = TypeVar("M", bound="TaskModel[Any, Any]")


class TaskModel(Estimator, ABC, Generic[S, N]):
    """A model on top of encoders, as a scikit-learn estimator.

    The constructor only stores its arguments; encoders are opened and settings are checked by `fit`.

    Args:
        encoder: What gives contextual vectors: a path, what `polyseme.load` gave, or several of them side by side; by
            default the English model that ships, and None for a model without any.
        words: Static word vectors beside them, as GloVe's.
        settings: The architecture; None for the defaults.
        fit_settings: The training settings; None for the defaults.
        cache: Where vectors of frozen encoders are kept; None for the user's cache.
        device: Where to compute.
        verbose: Whether `fit` shows on standard error how far it is, with a line for each epoch.

    Attributes:
        settings_: The settings of the fitted model; `fit_settings_` likewise.
        encoders_: The contextual encoders; `word_encoders_` has the static one, if there is one.
        network_: The fitted network.
        reader_: Reads sentences for the network.
        cache_: Where the vectors are kept.
        best_score_: The score on the dev set after `fit`, if there was one.
        best_epoch_: The epoch in which it was reached.
    """

    task: ClassVar[str]  # what its folder calls it
    settings_kind: ClassVar[type[Any]]
    default_fit: ClassVar[FitSettings] = FitSettings()
    settings_: S
    fit_settings_: FitSettings
    encoders_: list[EncoderSource]
    word_encoders_: list[EncoderSource]
    network_: N
    reader_: FeatureReader
    cache_: FeatureCache
    best_score_: float | None
    best_epoch_: int

    def __init__(
        self,
        encoder: EncoderLike | Sequence[EncoderLike] | None = SHIPPED_MODEL,
        *,
        words: EncoderLike | None = None,
        settings: S | None = None,
        fit_settings: FitSettings | None = None,
        cache: FeatureCache | None = None,
        device: str | torch.device = "cpu",
        verbose: int = 0,
    ) -> None:
        self.encoder, self.words = encoder, words
        self.settings, self.fit_settings = settings, fit_settings
        self.cache, self.device, self.verbose = cache, device, verbose

    @abstractmethod
    def fitting(
        self,
        examples: Iterable[Any],
        answers: Iterable[Any],
        dev: tuple[Iterable[Any], Iterable[Any]] | None = None,
        checkpoint: str | Path | None = None,
    ) -> Iterator[FitReport]:
        """Learn as `fit` does, and give a report of every step."""

    @abstractmethod
    def _make_network(self, reader: FeatureReader) -> N:
        """The network with random weights, sized for the labels of the training set."""

    @abstractmethod
    def _learned(self) -> dict[str, Any]:
        """What is learned besides weights (the labels), as JSON for config.json."""

    @abstractmethod
    def _take_learned(self, learned: Any) -> None:  # noqa: ANN401 - whatever a file says
        """Restore what `_learned` returned, out of config.json."""

    def fit(
        self: M,
        examples: Iterable[Any],
        answers: Iterable[Any],
        dev: tuple[Iterable[Any], Iterable[Any]] | None = None,
        checkpoint: str | Path | None = None,
    ) -> M:
        """Learn from examples and their answers; whatever was learned before is forgotten.

        Args:
            examples: Raw strings or word lists; pairs of them for a model of pairs.
            answers: A label or number for each; a tagger's are a label for each word of each sentence, entities in
                IOB1, IOB2 or BIOES.
            dev: The same to judge by: the loop stops when the dev score stops rising, and the best epoch is kept.
                Without it, all epochs are run and the last is kept.
            checkpoint: A folder in which every epoch is saved, and from which an interrupted fit resumes.
        """
        with show_progress() if self.verbose else nullcontext():
            for _ in self.fitting(examples, answers, dev, checkpoint):
                pass
        return self

    @property
    def encoder_names(self) -> list[str]:
        """The names of the contextual encoders."""
        return [source.encoder.name for source in self.encoders_]

    def mixes(self) -> dict[str, list[Mix]]:
        """Learned layer weights and γ: for each place where the layers enter, a mix for each encoder."""
        return self.network_.fitted_mixes()

    def save(self, path: str | Path, bundle: bool = False, overwrite: bool = False) -> None:
        """Save to a folder that `load` opens; it names its encoders, or with ``bundle`` holds copies of them."""
        config = {
            "task": self.task,
            "settings": dataclasses.asdict(cast("Any", self.settings_)),
            "fit": dataclasses.asdict(self.fit_settings_),
            "learned": self._learned(),
            "rounding": self.cache_.dtype,
            "best": {"score": self.best_score_, "epoch": self.best_epoch_},
        }
        sources = {"encoder": self.encoders_, "words": self.word_encoders_}
        save_model(path, config, self.network_.state_dict(), sources, bundle, overwrite)

    @classmethod
    def load(
        cls: type[M],
        path: str | Path,
        encoder: EncoderLike | Sequence[EncoderLike] | None = None,
        *,
        words: EncoderLike | None = None,
        device: str | torch.device = "cpu",
    ) -> M:
        """Load a fitted model from a folder that `save` wrote.

        Args:
            path: The folder.
            encoder: Its encoders, if they are no longer where they were; they must be the same.
            words: Its word vectors, likewise.
            device: Where to compute.
        """
        folder = Path(path)
        with format_errors(folder, f"a fitted {cls.task}"):
            config, weights = load_model(folder, cls.task)
            described = {"encoder": [], "words": [], **config.get("sources", {})}
            encoders = _reopen(described["encoder"], _several(encoder), folder, device)
            static = _reopen(described["words"], _several(words), folder, device)
            model = cls(
                _several(encoder) or [cast("str", source.path) for source in encoders],
                words=words or next((source.path for source in static), None),
                settings=from_dict(cls.settings_kind, config.get("settings"), f"{folder}: settings"),
                fit_settings=from_dict(FitSettings, config.get("fit"), f"{folder}: fit"),
                cache=FeatureCache(dtype=config.get("rounding", "float16")),
                device=device,
            )
            model._begin(encoders, static)
            model._take_learned(config.get("learned"))
            model._build(lambda build: check_network(build, weights, folder))
            model.network_.load_state_dict(weights)
            best = config.get("best", {})
            model.best_score_, model.best_epoch_ = best.get("score"), best.get("epoch", 0)
            return model

    from_pretrained = load  # the names that transformers' users type
    save_pretrained = save

    def _begin(
        self, encoders: Sequence[EncoderSource] | None = None, words: Sequence[EncoderSource] | None = None
    ) -> None:
        """Forget what was learned, settle the settings, and open the encoders unless they are given."""
        settings, device = self._resolved("settings"), find_device(self.device)
        opened = (
            [EncoderSource.open(one, device) for one in _several(self.encoder)] if encoders is None else [*encoders]
        )
        static = [EncoderSource.open(one, device) for one in _several(self.words)] if words is None else [*words]
        if settings.fine_tune and not opened:
            raise ConfigError("fine_tune trains the encoders, but there are none; give an encoder, or leave it out")
        vars(self).pop("network_", None)
        self.settings_, self.fit_settings_ = settings, self._resolved("fit_settings")
        self.cache_ = FeatureCache() if self.cache is None else self.cache
        self.encoders_, self.word_encoders_ = opened, static
        self.best_score_, self.best_epoch_ = None, 0

    def _build(self, check: Callable[[Callable[[], N]], None] | None = None) -> None:
        """Build the network with random weights from the seed; fine-tuned encoders are copies.

        Args:
            check: Looks at how it would be built, before memory is taken for it.
        """
        learns = self.settings_.fine_tune
        encoders = [copy.deepcopy(source.encoder) if learns else source.encoder for source in self.encoders_]
        words = self.word_encoders_[0].encoder if self.word_encoders_ else None
        self.reader_ = FeatureReader(encoders, words, learns, self.cache_)
        if check:
            check(lambda: self._make_network(self.reader_))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.fit_settings_.seed)
            self.network_ = self._make_network(self.reader_).to(find_device(self.device)).eval()

    def _run(self, task: Task, data: object, checkpoint: str | Path | None) -> Iterator[FitReport]:
        """Train the network that `_build` made, keeping the best score."""
        place = FitCheckpoint(checkpoint, self._about(data)) if checkpoint else None
        report = None
        with stage("training", unit="steps") as now:
            for report in fit(task, self.fit_settings_, place):
                self.best_score_, self.best_epoch_ = report.best, report.best_epoch
                self._show(report, now)
                yield report
        if report is None and place:  # the run that is resumed was killed after its last epoch
            self.best_score_, self.best_epoch_ = place.best
        self.network_.eval()

    def _show(self, report: FitReport, now: Stage) -> None:
        """Show how far a fit is, and print a line after each epoch, where progress is shown."""
        now.what, now.total, now.note = f"epoch {report.epoch}", report.steps, report.describe()
        now.done = report.step
        if report.step == 1:
            now.restart_clock()
        if report.step == report.steps:
            remark(f"epoch {report.epoch} of at most {self.fit_settings_.epochs}: {report.describe()}")

    def _about(self, data: object) -> dict[str, Any]:
        """What identifies a run, so that it is resumed only with the same settings, encoders and data."""
        sources = [source.fingerprint for source in (*self.encoders_, *self.word_encoders_)]
        settings = {"settings": dataclasses.asdict(cast("Any", self.settings_)), "fit settings": self.fit_settings_}
        return {
            "task": self.task,
            **{name: str(value) for name, value in settings.items()},
            "encoders": sources,
            "data": hashlib.sha256(json.dumps(data).encode()).hexdigest(),
        }


def _several(given: EncoderLike | Sequence[EncoderLike] | None) -> list[EncoderLike]:
    if given is None:
        return []
    return list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]


def _reopen(
    described: Sequence[Any], given: Sequence[EncoderLike], folder: Path, device: str | torch.device
) -> list[EncoderSource]:
    if given and len(given) != len(described):
        raise ConfigError(f"{folder} was fitted with {len(described)} of these encoders; {len(given)} were given")
    stand_ins = [*given] or [None] * len(described)
    return [reopen(about, folder, one, device) for about, one in zip(described, stand_ins, strict=True)]
