"""``polyseme spelling``: words never seen, and whether their spelling leads to those that they come from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.cli.output import (
    DeviceOption,
    JsonOption,
    SeedOption,
    ShippedArgument,
    check_outputs,
    open_embedder,
    percent,
    show_table,
    working,
    write_json,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polyseme.analysis.words.spelling import SpellingAnswer, SpellingResult, SpellingScore

KINDS = {"forms": "regular forms of common words", "misspellings": "common words, one letter wrong"}
SHOWN = 3  # examples of each sort, and neighbours of one


def spelling(
    model: ShippedArgument = None,
    words: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Known words, commonest first, one a line. [default: the model's own list]"),
    ] = None,
    seen: Annotated[
        Path | None, typer.Option(metavar="FILE", help="More words of the training text, one a line: never made.")
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="Words of each kind that are made.")] = 500,
    nearest: Annotated[int, typer.Option(min=1, help="Neighbours among which the right one may be.")] = 10,
    commonest: Annotated[int, typer.Option(min=1, help="Words that are looked among.")] = 20_000,
    seed: SeedOption = 0,
    json: JsonOption = None,
    device: DeviceOption = "cpu",
) -> None:
    """Make words that were never seen, by rule and by lot, and look for where they come from, without context.

    Is the base of haziness, or the word meant by hazuy, among the 10 nearest of the 20,000 commonest words?
    """
    from polyseme.analysis.words.analogy import read_candidates
    from polyseme.analysis.words.spelling import SpellingSettings, known_words
    from polyseme.analysis.words.spelling import spelling as run
    from polyseme.formats import resolve_model_path

    check_outputs(json)
    settings = SpellingSettings(count, nearest, commonest, seed)
    given = read_candidates(words) if words else None
    excluded = read_candidates(seen) if seen else ()
    embedder = open_embedder(model, device)
    with working("making words and looking for them"):
        known = given or known_words(resolve_model_path(model), embedder)
        result = run(embedder, known, excluded, settings)
    if json:
        write_json(json, result)
    if json != "-":
        _show(result)


def _show(result: SpellingResult) -> None:
    rows = [
        (
            KINDS[score.kind],
            score.metric,
            f"{score.count:,}",
            f"{score.readable:,}",
            percent(score.share),
            f"{percent(score.low)} to {percent(score.high)}",
            percent(score.first),
        )
        for score in result.scores
    ]
    title = f"{result.model}: % of words never seen whose origin is among the {result.nearest} nearest"
    show_table(title, ("made words", "metric", "made", "readable", "found", "95 % interval", "nearest of all"), rows)
    typer.echo(f"looked among the {result.among:,} commonest words; {result.excluded:,} words were not to be made")
    if not any(score.readable for score in result.scores):
        typer.echo(f"{result.model} has vectors for the words of its list alone, so it finds nothing, by construction")
        return
    for score in result.scores:
        if score.metric == "cosine":
            typer.echo("")
            _show_rules(score)
            for line in _examples(score, result.nearest):
                typer.echo(line)


def _show_rules(score: SpellingScore) -> None:
    shares = ", ".join(f"{rule.rule} {percent(rule.found / rule.count)}" for rule in score.rules)
    typer.echo(f"{KINDS[score.kind]}, by rule: {shares}")


def _examples(score: SpellingScore, nearest: int) -> Iterator[str]:
    hits = [answer for answer in score.answers if 0 < answer.rank <= nearest]
    misses = [answer for answer in score.answers if answer.rank > nearest]
    for what, answers in (("found", hits), ("missed", misses)):
        for answer in answers[:SHOWN]:
            yield f"  {what}: {_line(answer)}"


def _line(answer: SpellingAnswer) -> str:
    place = f"{answer.made.base} is number {answer.rank:,}"
    return f"{answer.made.word} ({place}): {', '.join(answer.nearest[:SHOWN])}"
