"""``polyseme neighbours``: the uses of a word most alike in context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.cli.corpus_source import (
    CaseOption,
    CorpusOption,
    CorpusSource,
    IndexOption,
    ModelOption,
    RawOption,
    shown,
)
from polyseme.cli.output import DeviceOption, JsonOption, check_outputs, counted_as, decimals, show_table, write_json
from polyseme.errors import ConfigError

if TYPE_CHECKING:
    from polyseme.corpus.neighbours import Neighbours, StaticNeighbours
    from polyseme.corpus.uses import Use


def neighbours(
    text: Annotated[str, typer.Argument(metavar="SENTENCE", help="The sentence that the word stands in.")],
    word: Annotated[str, typer.Option(help="The word in it.")],
    model: ModelOption = None,
    corpus: CorpusOption = None,
    index: IndexOption = None,
    static: Annotated[
        str | None, typer.Option(metavar="FILE", help="A file of static vectors, to show its neighbours beside.")
    ] = None,
    layer: Annotated[str, typer.Option(help="A number, top, average, or all: one table each.")] = "top",
    top: Annotated[int, typer.Option(help="How many.")] = 10,
    all_words: Annotated[
        bool, typer.Option("--all-words", help="Among the uses of all words, not of the same one only.")
    ] = False,
    occurrence: Annotated[
        int | None, typer.Option(min=1, help="Which one, where the word stands in the sentence several times.")
    ] = None,
    match_case: CaseOption = False,
    raw: RawOption = False,
    limit: Annotated[int, typer.Option(min=1, help="At most so many uses of the word, by lot.")] = 20_000,
    json: JsonOption = None,
    device: DeviceOption = "cpu",
) -> None:
    """Show the uses of a word that are most alike in context, from a corpus or from sentences that ship.

    A static vector has the same neighbours in every sentence; --static shows them beside.
    """
    from polyseme.corpus.neighbours import nearest_uses, static_neighbours
    from polyseme.embedding.layers import parse_choice

    use, choice = _use(text, word, occurrence), parse_choice(layer)
    if top < 1:
        raise ConfigError(f"--top must be 1 or more, not {top}")
    check_outputs(json)
    beside = static_neighbours(static, use.word, top) if static else None
    source = CorpusSource(model, device, corpus, index, raw)
    among = source.everything() if all_words else source.of(word, match_case, limit)
    layers = among.numbers if choice == "all" else [choice]
    results = [nearest_uses(source.encoder, use, among, one, top) for one in layers]
    if json:
        write_json(json, {"results": results, "static": beside})
    if json != "-":
        _show(use, results, beside)


def _use(text: str, word: str, occurrence: int | None) -> Use:
    from polyseme.corpus.uses import Use, find_place
    from polyseme.text.tokenizer import tokenize

    words = tuple(word for sentence in tokenize(text) for word in sentence.words)
    return Use(words, find_place(words, word, occurrence))


def _show(use: Use, results: list[Neighbours], beside: StaticNeighbours | None) -> None:
    for number, result in enumerate(results):
        gap, among = "\n" * (number > 0), counted_as(result.compared, "use")
        title = f"{gap}{shown(use)}  {result.model}, layer {result.layer}, among {among}"
        rows = [(shown(found.use), decimals(found.cosine)) for found in result.found]
        show_table(title, ("most alike", "cosine"), rows)
    if beside:
        rows = [(found.word, decimals(found.cosine)) for found in beside.found]
        show_table(f"\n{beside.word}, wherever it stands: {beside.name}", ("most alike", "cosine"), rows)
