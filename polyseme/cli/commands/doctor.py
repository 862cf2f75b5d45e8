"""``polyseme doctor``: a check of text before a model is trained on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from polyseme.cli.options import TEXT_FILES, ResultOptions, TokenizedOption, expand_options
from polyseme.cli.output import file_size, percent, show_table
from polyseme.cli.progress import working

if TYPE_CHECKING:
    from polyseme.training.doctor.advice import Advice
    from polyseme.training.doctor.statistics import TextStatistics

_VOCABULARY_SIZES = (5_000, 10_000, 30_000, 100_000)  # whose coverage is shown
_MOST_SCRIPTS = 5


@expand_options
def doctor(
    inputs: Annotated[list[str], Argument(metavar="TEXT", help=TEXT_FILES)],
    *,
    tokenized: TokenizedOption = False,
    workers: Annotated[int | None, Option(min=1, help="Processes.", show_default="one per core")] = None,
    time: Annotated[bool, Option(help="Run a few training steps, to estimate how long training takes.")] = True,
    output: ResultOptions,
) -> None:
    """Check a text before training, and suggest settings."""
    from polyseme.training.doctor.advice import advise
    from polyseme.training.doctor.statistics import examine

    output.check()
    with working("reading"):
        facts = examine(inputs, tokenized, workers)
    if time:
        from polyseme.training.doctor.timing import tokens_per_second

        with working("running a few training steps"):
            advice = advise(facts, tokens_per_second)
    else:
        advice = advise(facts)
    output.present({"facts": facts, "advice": advice}, lambda: _show(" ".join(inputs), facts, advice))


def _show(name: str, facts: TextStatistics, advice: Advice) -> None:
    from polyseme.training.doctor.examine import SPELLING_LIMIT

    copies = "duplicate lines" + (", about" if facts.duplicates_estimated else "")
    rows = [
        ("documents", f"{facts.documents:,}", ""),
        ("lines", f"{facts.lines:,}", ""),
        (copies, "", percent(facts.duplicate_lines)),
        ("sentences", f"{facts.sentences:,}", ""),
        ("words", f"{facts.words:,}", ""),
        *((f"  {script}", f"{uses:,}", percent(uses / facts.words)) for script, uses in _scripts(facts)),
        (f"  over {SPELLING_LIMIT} bytes", f"{facts.cropped:,}", percent(facts.cropped / facts.words)),
        (
            f"  over {SPELLING_LIMIT} characters",
            f"{facts.cropped_by_characters:,}",
            percent(facts.cropped_by_characters / facts.words),
        ),
        ("distinct words", f"{facts.types:,}", ""),
        ("  seen once", f"{facts.types_once:,}", percent(facts.types_once / facts.types)),
        *(
            (f"  covered by the {count:,} most frequent", "", percent(facts.coverage[count]))
            for count in _VOCABULARY_SIZES
            if count < facts.types
        ),
        ("characters", f"{facts.characters:,}", ""),
        ("bytes per character", f"{facts.bytes / facts.characters:.2f}", ""),
        ("words per sentence", f"{facts.words / facts.sentences:.1f}", ""),
    ]
    show_table(f"{name}: {file_size(facts.bytes)} of text", ("", "number", "%"), rows)
    _show_advice(facts, advice)


def _scripts(facts: TextStatistics) -> list[tuple[str, int]]:
    """Words by script: the most frequent scripts, all others together, and words without letters."""
    from polyseme.training.doctor.examine import NO_LETTERS

    letters = [(script, uses) for script, uses in facts.scripts.items() if script != NO_LETTERS]
    shown, rest = letters[:_MOST_SCRIPTS], sum(uses for _, uses in letters[_MOST_SCRIPTS:])
    return [*shown, *([("other scripts", rest)] if rest else []), (NO_LETTERS, facts.scripts.get(NO_LETTERS, 0))]


def _show_advice(facts: TextStatistics, advice: Advice) -> None:
    typer.echo("")
    for warning in advice.warnings:
        typer.echo(f"warning: {warning}")
    time = f"; about {_duration(advice.seconds)} on this machine" if advice.seconds is not None else ""
    typer.echo(
        f"advice: preset {advice.preset}, a vocabulary of {advice.vocabulary:,} words ({percent(advice.coverage)} % of "
        f"the text), {advice.epochs} epochs, so {advice.epochs * facts.words:,} words to read{time}"
    )


def _duration(seconds: float) -> str:
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}s"
    return f"{max(1, round(seconds)):,} seconds"
