"""What a claim of the report is, and what it reads its verdict from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote

from polyseme.report.measure.measurement import Measurement, Results
from polyseme.report.measure.task_results import COMMAND, TASKS
from polyseme.report.page.content import UNTESTED, Block, Command, Paragraph, Verdict


@dataclass(frozen=True)
class Findings:
    """What the parts found for one model.

    Attributes:
        name: What the model is called.
        model: As it was typed.
        data: The folder of data as it was typed; None where there is none.
        full: Whether everything was looked at.
        results: By measurement.
        missing: For parts that were not done, why.
    """

    name: str
    model: str
    data: str | None
    full: bool
    results: Mapping[str, Results] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)

    def why_missing(self, *parts: str) -> str:
        """Why some parts were not done, in one sentence."""
        return " ".join(dict.fromkeys(self.missing[part] for part in parts if part in self.missing))

    def rerun(self, *claims: int | str) -> Command:
        """The command that gives a claim's numbers again, in a folder of its own, so that no page is replaced."""
        data = f" --data {quote(self.data)}" if self.data else ""
        only = "".join(f" --only {claim}" for claim in claims)
        output = "-".join(["claim", *map(str, claims)]) if any(isinstance(claim, int) for claim in claims) else "tour"
        full = " --full" if self.full else ""
        return Command(f"polyseme report {quote(self.model)}{data}{only}{full} -o {output}")

    def data_path(self, path: str) -> str:
        """A file of the data, as it would be typed."""
        return quote(f"{self.data or 'DATA'}/{path}")

    def task_command(self) -> tuple[Block, ...]:
        """Where numbers of fitted tasks come from."""
        read = "Read from stored results of tasks that were fitted with this very model; made with:"
        return (
            Paragraph(read if TASKS in self.results else "Such results are made with:"),
            Command(COMMAND.format(model=self.model), ""),
        )


@dataclass(frozen=True)
class Claim:
    """One thing that is said of such vectors.

    Attributes:
        number: As in the list of claims.
        title: In plain words, as a sentence.
        explanation: What the articles assert, and a word of explanation for somebody who has never heard of it.
        measurements: What must be measured.
        judge: What comes of it for one model.
        compare: What is to be said of all models together.
        hint: A few words for the list of claims, where the title has words that nobody knows yet.
    """

    number: int
    title: str
    explanation: str
    measurements: tuple[Measurement, ...]
    judge: Callable[[Findings], Verdict]
    compare: Callable[[Sequence[Findings]], tuple[Block, ...]] | None = None
    hint: str = ""


def not_tested(findings: Findings, parts: Sequence[str], blocks: tuple[Block, ...] = ()) -> Verdict:
    """A claim that could not be tested."""
    return Verdict(UNTESTED, findings.why_missing(*parts) or "Nothing that this needs was given.", blocks)
