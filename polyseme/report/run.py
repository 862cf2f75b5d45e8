"""Make a report: run or reload every measurement, judge the claims, write the page and its numbers."""

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
from polyseme.report.claims.claim_07_fine_tuning import read_tuning
from polyseme.report.claims.listing import DATA_SETS, choose_claims, choose_measurements
from polyseme.report.measure.measurement import Measurement, Results, SampleSizes, full_sizes
from polyseme.report.measure.model_under_test import EvaluationData, ModelUnderTest
from polyseme.report.measure.result_store import ResultStore, as_json
from polyseme.report.measure.task_results import TASKS, TUNED, read_results, results_of_model
from polyseme.report.page.content import capitalize_first
from polyseme.report.page.html import ClaimSection, Page, write_page
from polyseme.report.tour import write_opening, write_tour

VERSION = 3  # of what measurements store; results of another version are measured again


@dataclass(frozen=True)
class ReportSettings:
    """Settings of a report: what it covers and where it is written.

    Attributes:
        output: The output folder.
        data: The folder of labelled data sets, as the user typed it.
        tasks: A file of stored task results (`polyseme.report.measure.task_results` describes it).
        only: Numbers of claims, or ``tour``; empty for all claims.
        full: Use all of every data set instead of samples.
        sizes: Other sample sizes than those of the quick or the full report.
    """

    output: Path
    data: str | None = None
    tasks: Path | None = None
    only: tuple[str, ...] = ()
    full: bool = False
    sizes: SampleSizes | None = None

    def check(self) -> None:
        """Validate the settings before anybody waits for a model to load."""
        choose_claims(self.only)
        if self.output.exists() and not self.output.is_dir():
            raise OutputError(f"{self.output} is a file; give a folder")
        self.open_data()
        if self.tasks is not None:
            read_results(self.tasks)

    def open_data(self) -> EvaluationData:
        """Open the folder of labelled data sets; an error if none of them is in it."""
        if self.data is None:
            return EvaluationData(None)
        data = EvaluationData(Path(self.data))
        if not any(map(data.in_folder, DATA_SETS)):
            raise ConfigError(
                f"{Path(self.data)} contains none of the labelled data sets; expected folders named "
                f"{', '.join(DATA_SETS)}"
            )
        return data


@dataclass(frozen=True)
class ReportStep:
    """One finished measurement (a part) of one model, with its wall-clock and its processor seconds."""

    number: int
    total: int
    model: str
    part: str
    seconds: float
    processor_seconds: float
    stored: bool
    missing: str | None = None


class Report:
    """A report on some models: iterate over `steps` to measure, then `write` it."""

    def __init__(self, models: Sequence[ModelUnderTest], settings: ReportSettings) -> None:
        settings.check()
        self._models, self._settings = models, settings
        self._claims = choose_claims(settings.only)
        self._sizes = settings.sizes or (full_sizes() if settings.full else SampleSizes())
        self._data = settings.open_data()
        self._measurements = choose_measurements(self._claims, self._data)
        self._tasks = read_results(settings.tasks) if settings.tasks else None
        make_folder(settings.output)
        self._store = ResultStore(self.parts)
        self._results: list[dict[str, Results]] = [{} for _ in models]
        self._missing: list[dict[str, str]] = [{} for _ in models]
        self._steps: list[ReportStep] = []
        self._speeds: dict[str, float] = {}

    def steps(self) -> Iterator[ReportStep]:
        """Run one measurement after the other; each is stored as soon as it is done."""
        total = len(self._models) * len(self._measurements)
        for place, model in enumerate(self._models):
            self._read(place, TASKS, lambda model=model: self._task_results(model))
            self._read(place, TUNED, lambda model=model: read_tuning(model.path))
            for measurement in self._measurements:
                started, busy = time.monotonic(), time.process_time()
                stored = self._measure(place, measurement)
                step = ReportStep(
                    len(self._steps) + 1,
                    total,
                    model.typed,
                    measurement.name,
                    time.monotonic() - started,
                    time.process_time() - busy,
                    stored,
                    self._missing[place].get(measurement.name),
                )
                self._steps.append(step)
                yield step
            self._speeds[model.typed] = _words_per_second(model)

    @property
    def upcoming(self) -> str:
        """The measurement that comes next and its number, for a progress display."""
        done, each = len(self._steps), len(self._measurements)
        if done == len(self._models) * each:
            return "writing the page"
        model, name = self._models[done // each].typed, self._measurements[done % each].name
        return f"[{done + 1}/{len(self._models) * each}] {model}: measuring {name}"

    @property
    def page(self) -> Path:
        """The path of the HTML page."""
        return self._settings.output / "report.html"

    @property
    def parts(self) -> Path:
        """The folder of finished measurements."""
        return self._settings.output / "parts"

    def write(self) -> list[Path]:
        """Write the page, its numbers as JSON, and the timings, which alone differ from run to run."""
        sections = self._judge()
        page = Page(
            self._names(),
            write_opening(self._findings()),
            tuple(map(write_tour, self._findings())),
            sections,
            self._footer(),
        )
        output = self._settings.output
        files = {
            self.page: write_page(page),
            output / "report.json": _json(self._summary(sections)),
            output / "timings.json": _json({"steps": [asdict(step) for step in self._steps], "words/s": self._speeds}),
        }
        for path, text in files.items():
            with atomic_write(path) as file:
                file.write(text.encode("utf-8", "backslashreplace"))
        return list(files)

    def _findings(self) -> list[Findings]:
        data, full = self._settings.data, self._settings.full
        rows = zip(self._names(), self._models, self._results, self._missing, strict=True)
        return [Findings(name, model.typed, data, full, results, missing) for name, model, results, missing in rows]

    def _judge(self) -> tuple[ClaimSection, ...]:
        findings = self._findings()
        return tuple(
            ClaimSection(
                claim.number,
                claim.title,
                claim.explanation,
                claim.hint,
                tuple(map(claim.judge, findings)),
                claim.compare(findings) if claim.compare else (),
            )
            for claim in self._claims
        )

    def _names(self) -> tuple[str, ...]:
        """Names of the models; as the user typed them if two would have the same name."""
        names = tuple(model.encoder.name for model in self._models)
        return names if len({*names}) == len(names) else tuple(model.typed for model in self._models)

    def _read(self, place: int, name: str, read: Callable[[], Results]) -> None:
        """Take results that were measured elsewhere and stored in a file."""
        try:
            self._results[place][name] = as_json(read())
        except PolysemeError as error:
            self._missing[place][name] = str(error)

    def _task_results(self, model: ModelUnderTest) -> Results:
        if self._tasks is None:
            raise ConfigError("Scores of tasks that were fitted beforehand can be given with --tasks FILE.")
        return results_of_model(self._tasks, model.fingerprint)

    def _measure(self, place: int, measurement: Measurement) -> bool:
        """Run a measurement or take its results from the store; true if they were stored."""
        model, name = self._models[place], measurement.name
        try:
            key = self._key(model, measurement)
            results = self._store.get(name, key)
            stored = results is not None
            if results is None:
                results = self._store.put(name, key, measurement.measure(model, self._data, self._sizes))
        except PolysemeError as error:
            self._missing[place][name] = _sentence(str(error))
            return False
        self._results[place][name] = results
        return stored

    def _key(self, model: ModelUnderTest, measurement: Measurement) -> Results:
        """Everything that the numbers of a measurement depend on."""
        return {
            "version": VERSION,
            "part": measurement.name,
            "model": model.fingerprint,
            "head": model.head if measurement.head else "",
            "sizes": {name: getattr(self._sizes, name) for name in measurement.sizes},
            "data": {
                **{name: self._data.hash(name) for name in measurement.needs},
                **{name: self._data.hash(name) for name in measurement.uses if name in self._data},
            },
        }

    def _summary(self, sections: Sequence[ClaimSection]) -> Results:
        return {
            "polyseme": version("polyseme"),
            "setting": "full" if self._settings.full else "quick",
            "sizes": asdict(self._sizes),
            "models": [
                {
                    "model": model.typed,
                    "fingerprint": model.fingerprint,
                    "claims": [
                        {
                            "number": section.number,
                            "title": section.title,
                            "verdict": section.verdicts[place].outcome,
                            "because": section.verdicts[place].reason,
                        }
                        for section in sections
                    ],
                    "found": self._results[place],
                    "missing": self._missing[place],
                }
                for place, model in enumerate(self._models)
            ],
        }

    def _footer(self) -> str:
        rows = zip(self._names(), self._models, strict=True)
        fingerprints = ", ".join(f"{name} `{model.fingerprint[:12]}`" for name, model in rows)
        sizes = "all of every data set" if self._settings.full else "samples, whose sizes are given with the figures"
        bundled = "" if self._settings.data else " The labelled text comes with polyseme; --data DIR uses more."
        return (
            f"Made by polyseme {version('polyseme')} from {sizes}.{bundled} Model fingerprints: {fingerprints}. All "
            "numbers are in `report.json`, the time that each measurement took in `timings.json`."
        )


def _words_per_second(model: ModelUnderTest) -> float:
    """Embedding speed in words per second on short sentences, on this machine now."""
    sentences = bundled_sentences()
    started = time.monotonic()
    for _ in model.encoder.embed(sentences):
        pass
    return round(sum(map(len, sentences)) / max(1e-9, time.monotonic() - started))


def _json(value: Results) -> str:
    return json.dumps(as_json(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return f"{capitalize_first(text)}{'' if text.endswith('.') else '.'}"
