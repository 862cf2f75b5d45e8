"""``polyseme spelling``: whether unseen words, derived or misspelt, lie near the words they come from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from polyseme.cli.options import DeviceOption, ResultOptions, SeedOption, ShippedArgument, expand_options
from polyseme.cli.output import open_embedder, percent, show_table
from polyseme.cli.progress import working

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polyseme.analysis.words.spelling import SpellingAnswer, SpellingResult, SpellingScore

KINDS = {"forms": "regular forms of frequent words", "misspellings": "frequent words, one letter wrong"}
SHOWN = 3  # examples of each kind, and neighbours of each


@expand_options
def spelling(
    *,
    model: ShippedArgument = None,
    words: Annotated[
        Path | None, Option(metavar="FILE", help="Known words, most frequent first. [default: the model's]")
    ] = None,
    seen: Annotated[Path | None, Option(metavar="FILE", help="More known words, such as the training text's.")] = None,
    count: Annotated[int, Option(min=1, help="Unseen words of each kind to make.")] = 500,
    nearest: Annotated[int, Option(min=1, help="Neighbours among which the right word must be.")] = 10,
    commonest: Annotated[int, Option(min=1, help="How many of the most frequent words to search.")] = 20_000,
    seed: SeedOption = 0,
    output: ResultOptions,
    device: DeviceOption = "cpu",
) -> None:
    """Test vectors of unseen words, derived or misspelt.

    Words are made by rule and at random, and embedded without context: is the base of haziness, or the word meant by
    hazuy, among the 10 nearest of the 20,000 most frequent words?
    """
    from polyseme.analysis.words.analogy import read_candidates
    from polyseme.analysis.words.spelling import SpellingSettings, known_words
    from polyseme.analysis.words.spelling import spelling as run
    from polyseme.formats import resolve_model_path

    output.check()
    settings = SpellingSettings(count, nearest, commonest, seed)
    given = read_candidates(words) if words else None
    excluded = read_candidates(seen) if seen else ()
    embedder = open_embedder(model, device)
    with working("making words and searching for them"):
        known = given or known_words(resolve_model_path(model), embedder)
        result = run(embedder, known, excluded, settings)
    output.present(result, lambda: _show(result))


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
    title = f"{result.model}: % of unseen words whose origin is among the {result.nearest} nearest"
    show_table(title, ("unseen words", "metric", "made", "readable", "found", "95 % interval", "nearest of all"), rows)
    typer.echo(f"searched the {result.among:,} most frequent words; {result.excluded:,} known words were left out")
    if not any(score.readable for score in result.scores):
        typer.echo(f"{result.model} has vectors only for the words of its list, so it finds nothing, by construction")
        return
    for score in result.scores:
        if score.metric == "cosine":
            typer.echo("")
            _show_rules(score)
            for line in _examples(score, result.nearest):
                typer.echo(line)


def _show_rules(score: SpellingScore) -> None:
    rates = ", ".join(f"{rule.rule} {percent(rule.found / rule.count)}" for rule in score.rules)
    typer.echo(f"{KINDS[score.kind]}, by rule: {rates}")


def _examples(score: SpellingScore, nearest: int) -> Iterator[str]:
    hits = [answer for answer in score.answers if 0 < answer.rank <= nearest]
    misses = [answer for answer in score.answers if answer.rank > nearest]
    for what, answers in (("found", hits), ("missed", misses)):
        for answer in answers[:SHOWN]:
            yield f"  {what}: {_line(answer)}"


def _line(answer: SpellingAnswer) -> str:
    place = f"{answer.made.base} is number {answer.rank:,}"
    return f"{answer.made.word} ({place}): {', '.join(answer.nearest[:SHOWN])}"
