"""``polyseme doctor``: a look at text before it is trained on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.cli.output import JsonOption, percent, show_table, size, working, write_json

if TYPE_CHECKING:
    from polyseme.training.doctor.advice import Advice
    from polyseme.training.doctor.statistics import TextStatistics

_SHOWN = (5_000, 10_000, 30_000, 100_000)  # sizes of vocabularies
_SCRIPTS = 5


def doctor(
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="TEXT", help="Text files, folders, patterns, or - (stdin); .gz .bz2 .xz .zst too."),
    ],
    tokenized: Annotated[
        bool, typer.Option("--tokenized", help="A sentence a line, words apart by spaces; else raw text.")
    ] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes.", show_default="one a core")] = None,
    time: Annotated[
        bool, typer.Option(help="Take a few steps of training, to say how long it would take here.")
    ] = True,
    json: JsonOption = None,
) -> None:
    """Say what a text is, what is wrong with it, and which settings to train with."""
    from polyseme.training.doctor.advice import advise
    from polyseme.training.doctor.statistics import examine

    with working("reading"):
        facts = examine(inputs, tokenized, workers)
    if time:
        from polyseme.training.doctor.timing import tokens_per_second

        with working("taking a few steps of training"):
            advice = advise(facts, tokens_per_second)
    else:
        advice = advise(facts)
    if json:
        write_json(json, {"facts": facts, "advice": advice})
    if json != "-":
        _show(" ".join(inputs), facts)
        _show_advice(facts, advice)


def _show(name: str, facts: TextStatistics) -> None:
    from polyseme.training.doctor.examine import SPELLING_LIMIT

    copies = "copies of earlier lines" + (", about" if facts.duplicates_estimated else "")
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
            (f"  the commonest {count:,} cover", "", percent(facts.coverage[count]))
            for count in _SHOWN
            if count < facts.types
        ),
        ("characters", f"{facts.characters:,}", ""),
        ("bytes a character", f"{facts.bytes / facts.characters:.2f}", ""),
        ("words a sentence", f"{facts.words / facts.sentences:.1f}", ""),
    ]
    show_table(f"{name}: {size(facts.bytes)} of text", ("", "number", "%"), rows)


def _scripts(facts: TextStatistics) -> list[tuple[str, int]]:
    """The commonest, the others together, and what has no letters at the end."""
    from polyseme.training.doctor.examine import NO_LETTERS

    letters = [(script, uses) for script, uses in facts.scripts.items() if script != NO_LETTERS]
    shown, rest = letters[:_SCRIPTS], sum(uses for _, uses in letters[_SCRIPTS:])
    return [*shown, *([("other scripts", rest)] if rest else []), (NO_LETTERS, facts.scripts.get(NO_LETTERS, 0))]


def _show_advice(facts: TextStatistics, advice: Advice) -> None:
    typer.echo("")
    for warning in advice.warnings:
        typer.echo(f"warning: {warning}")
    time = f"; about {_duration(advice.seconds)} here" if advice.seconds is not None else ""
    typer.echo(
        f"advice: preset {advice.preset}, a vocabulary of {advice.vocabulary:,} words ({percent(advice.coverage)} % of "
        f"the text), {advice.epochs} epochs, so {advice.epochs * facts.words:,} words to read{time}"
    )


def _duration(seconds: float) -> str:
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}s"
    return f"{max(1, round(seconds)):,} seconds"
