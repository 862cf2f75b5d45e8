"""From models and data to a page: every part measured or taken from the store, then told."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from polyseme.corpus.uses import bundled_sentences
from polyseme.errors import ConfigError, OutputError, PolysemeError
from polyseme.files import atomic_write, make_folder
from polyseme.report.claim import Findings
from polyseme.report.claims.claim_07_fine_tuning import TUNED, read_tuning
from polyseme.report.claims.listing import DATA_SETS, choose_claims, choose_measurements
from polyseme.report.measure.measurement import Measurement, Results, full, quick
from polyseme.report.measure.model_under_test import EvaluationData, ModelUnderTest
from polyseme.report.measure.result_store import ResultStore, plain
from polyseme.report.measure.task_results import TASKS, read_results, results_of
from polyseme.report.page.content import capital
from polyseme.report.page.html import ClaimSection, Page, write_page
from polyseme.report.tour import write_opening, write_tour

VERSION = 1  # of what parts measure; another one measures anew


@dataclass(frozen=True)
class ReportSettings:
    """What is reported, and where to.

    Attributes:
        output: The folder.
        data: The folder of labelled sets, as it was typed.
        tasks: The file of stored task results.
        only: Claims by number, or ``tour``; all where nothing is said.
        full: Look at everything instead of bounded samples.
    """

    output: Path
    data: str | None = None
    tasks: Path | None = None
    only: tuple[str, ...] = ()
    full: bool = False

    def check(self) -> None:
        """Refuse what cannot be, before anybody waits for a model."""
        choose_claims(self.only)
        if self.output.exists() and not self.output.is_dir():
            raise OutputError(f"{self.output} is a file; give a folder")
        if self.data is not None:
            self.open_data()
        if self.tasks is not None:
            read_results(self.tasks)

    def open_data(self) -> EvaluationData:
        """The folder of labelled sets; refused where it holds none of them."""
        if self.data is None:
            return EvaluationData(None)
        data = EvaluationData(Path(self.data))
        if not any(name in data for name in DATA_SETS):
            raise ConfigError(
                f"{Path(self.data)} holds none of the labelled sets; folders are expected: {', '.join(DATA_SETS)}"
            )
        return data


@dataclass(frozen=True)
class ReportStep:
    """One part of one model is done; seconds are by the clock, and those that the processor was busy with it."""

    number: int
    total: int
    model: str
    part: str
    seconds: float
    processor_seconds: float
    stored: bool
    missing: str | None = None


class Report:
    """A report in the making: go through `steps`, then `write`."""

    def __init__(self, subjects: Sequence[ModelUnderTest], settings: ReportSettings) -> None:
        settings.check()
        self._subjects, self._settings = subjects, settings
        self._claims = choose_claims(settings.only)
        self._measurements = choose_measurements(self._claims)
        self._sizes = full() if settings.full else quick()
        self._data = settings.open_data()
        self._results = read_results(settings.tasks) if settings.tasks else None
        make_folder(settings.output)
        self._store = ResultStore(settings.output / "parts")
        self._found: list[dict[str, Results]] = [{} for _ in subjects]
        self._missing: list[dict[str, str]] = [{} for _ in subjects]
        self._steps: list[ReportStep] = []
        self._speeds: dict[str, float] = {}

    def steps(self) -> Iterator[ReportStep]:
        """Measure part by part; each is kept as soon as it is done."""
        total = len(self._subjects) * len(self._measurements)
        for place, subject in enumerate(self._subjects):
            self._read(place, TASKS, lambda subject=subject: self._task_results(subject))
            self._read(place, TUNED, lambda subject=subject: read_tuning(subject.place))
            for part in self._measurements:
                begun, busy = time.monotonic(), time.process_time()
                stored = self._measure(place, subject, part)
                step = ReportStep(
                    len(self._steps) + 1,
                    total,
                    subject.typed,
                    part.name,
                    time.monotonic() - begun,
                    time.process_time() - busy,
                    stored,
                    self._missing[place].get(part.name),
                )
                self._steps.append(step)
                yield step
            self._speeds[subject.typed] = _speed(subject)

    @property
    def upcoming(self) -> str:
        """What is measured next."""
        model, part = divmod(len(self._steps), len(self._measurements))
        return (
            f"{self._subjects[model].typed}, {self._measurements[part].name}"
            if model < len(self._subjects)
            else "the page"
        )

    def write(self) -> list[Path]:
        """The page, the JSON beside it, and the times, which are the only thing that differs from run to run."""
        findings = [
            Findings(name, subject.typed, self._settings.data, self._settings.full, found, missing)
            for name, subject, found, missing in zip(
                self._names(), self._subjects, self._found, self._missing, strict=True
            )
        ]
        outcomes = tuple(
            ClaimSection(
                claim.number,
                claim.title,
                claim.explanation,
                claim.hint,
                tuple(claim.judge(each) for each in findings),
                claim.compare(findings) if claim.compare else (),
            )
            for claim in self._claims
        )
        page = Page(
            self._names(),
            write_opening(findings),
            tuple(map(write_tour, findings)),
            outcomes,
            self._made(),
        )
        output = self._settings.output
        files = {
            output / "report.html": write_page(page),
            output / "report.json": _json(self._summary(outcomes)),
            output / "timings.json": _json({"steps": [asdict(step) for step in self._steps], "words/s": self._speeds}),
        }
        for path, text in files.items():
            with atomic_write(path) as file:
                file.write(text.encode("utf-8", "backslashreplace"))
        return list(files)

    def _names(self) -> tuple[str, ...]:
        """What the models are called; as they were typed where two would have the same name."""
        names = tuple(subject.encoder.name for subject in self._subjects)
        return names if len({*names}) == len(names) else tuple(subject.typed for subject in self._subjects)

    def _read(self, place: int, name: str, reading: Callable[[], Results]) -> None:
        """Take what others measured and stored."""
        try:
            self._found[place][name] = plain(reading())
        except PolysemeError as error:
            self._missing[place][name] = str(error)

    def _task_results(self, subject: ModelUnderTest) -> Results:
        if self._results is None:
            raise ConfigError("Fitted tasks are needed, and no file of their results was given (--tasks FILE).")
        return results_of(self._results, subject.fingerprint)

    def _measure(self, place: int, subject: ModelUnderTest, part: Measurement) -> bool:
        """Fill in a part; true if it was in the store."""
        try:
            key = self._key(subject, part)
            found = self._store.get(part.name, key)
            stored = found is not None
            if found is None:
                found = self._store.put(part.name, key, part.measure(subject, self._data, self._sizes))
        except PolysemeError as error:
            self._missing[place][part.name] = _sentence(str(error))
            return False
        self._found[place][part.name] = found
        return stored

    def _key(self, subject: ModelUnderTest, part: Measurement) -> Results:
        """Everything that a part's numbers depend on."""
        return {
            "version": VERSION,
            "part": part.name,
            "model": subject.fingerprint,
            "head": subject.head if part.head else "",
            "sizes": {name: getattr(self._sizes, name) for name in part.sizes},
            "data": {
                **{name: self._data.hash(name) for name in part.needs},
                **{name: self._data.hash(name) for name in part.uses if name in self._data},
            },
        }

    def _summary(self, outcomes: Sequence[ClaimSection]) -> Results:
        return {
            "polyseme": version("polyseme"),
            "setting": "full" if self._settings.full else "quick",
            "sizes": asdict(self._sizes),
            "models": [
                {
                    "model": subject.typed,
                    "fingerprint": subject.fingerprint,
                    "claims": [
                        {
                            "number": outcome.number,
                            "title": outcome.title,
                            "verdict": outcome.verdicts[place].outcome,
                            "because": outcome.verdicts[place].reason,
                        }
                        for outcome in outcomes
                    ],
                    "found": self._found[place],
                    "missing": self._missing[place],
                }
                for place, subject in enumerate(self._subjects)
            ],
        }

    def _made(self) -> str:
        prints = ", ".join(
            f"{name} `{subject.fingerprint[:12]}`" for name, subject in zip(self._names(), self._subjects, strict=True)
        )
        sizes = "all of every set" if self._settings.full else "bounded samples, whose sizes stand beside the figures"
        return (
            f"Made by polyseme {version('polyseme')} from {sizes}. Fingerprints: {prints}. All numbers are in "
            "`report.json`; how long each part took is in `timings.json`."
        )


def _speed(subject: ModelUnderTest) -> float:
    """Words a second on short sentences, as this machine has them now."""
    sentences = bundled_sentences()
    begun = time.monotonic()
    for _ in subject.encoder.embed(sentences):
        pass
    return round(sum(map(len, sentences)) / max(1e-9, time.monotonic() - begun))


def _json(value: Results) -> str:
    return json.dumps(plain(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return f"{capital(text)}{'' if text.endswith('.') else '.'}"
