"""What a claim of the report is, and the findings from which it is judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote

from polyseme.report.measure.measurement import Measurement, Results
from polyseme.report.measure.task_results import COMMAND, TASKS
from polyseme.report.page.content import UNTESTED, Block, Command, Paragraph, Verdict


@dataclass(frozen=True)
class Findings:
    """All results of the measurements on one model.

    Attributes:
        name: The model's name.
        model: The model as the user typed it.
        data: The data folder as the user typed it; None if there is none.
        full: Whether the data sets were used whole.
        results: The results by name of the measurement.
        missing: Why measurements were not done, by their name.
    """

    name: str
    model: str
    data: str | None
    full: bool
    results: Mapping[str, Results] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)

    def why_missing(self, *names: str) -> str:
        """Why some measurements were not done, each reason once."""
        return " ".join(dict.fromkeys(self.missing[name] for name in names if name in self.missing))

    def rerun(self, claim: int | str) -> Command:
        """The command that measures a claim or the tour again, into a folder of its own so that no page is lost."""
        data = f" --data {quote(self.data)}" if self.data else ""
        full = " --full" if self.full else ""
        output = f"claim-{claim}" if isinstance(claim, int) else claim
        return Command(f"polyseme report {quote(self.model)}{data} --only {claim}{full} -o {output}")

    def data_path(self, path: str) -> str:
        """Path of a data file as one would type it in a shell."""
        return quote(f"{self.data or 'DATA'}/{path}")

    def task_command(self) -> tuple[Block, ...]:
        """The benchmark command that fits the tasks whose stored scores a claim reads."""
        stored = "These scores come from tasks that were fitted with this model beforehand. To fit them again:"
        return (
            Paragraph(stored if TASKS in self.results else "To fit the tasks that this claim needs:"),
            Command(COMMAND.format(model=quote(self.model)), ""),
        )


@dataclass(frozen=True)
class Claim:
    """One common claim about contextual word vectors, and how it is tested.

    Attributes:
        number: Its number in the list of claims.
        title: The claim as a short sentence.
        explanation: What the claim says, for a reader who has never heard of it.
        measurements: What has to be measured.
        judge: The verdict on one model.
        compare: Page content that compares all models.
        hint: A few words for the list of claims, if the title needs explaining.
    """

    number: int
    title: str
    explanation: str
    measurements: tuple[Measurement, ...]
    judge: Callable[[Findings], Verdict]
    compare: Callable[[Sequence[Findings]], tuple[Block, ...]] | None = None
    hint: str = ""


def not_tested(findings: Findings, names: Sequence[str], blocks: tuple[Block, ...] = ()) -> Verdict:
    """The verdict on a claim that could not be tested because these measurements are missing."""
    return Verdict(UNTESTED, findings.why_missing(*names) or "The data that this claim needs was not given.", blocks)
