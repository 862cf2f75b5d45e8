"""``polyseme neighbours``: the uses of a word that are most similar in context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from polyseme.cli.corpus_source import CorpusOptions, CorpusSource, format_use
from polyseme.cli.options import ResultOptions, expand_options
from polyseme.cli.output import decimals, plural, show_table
from polyseme.errors import ConfigError

if TYPE_CHECKING:
    from polyseme.corpus.neighbours import Neighbours, StaticNeighbours
    from polyseme.corpus.uses import Use


@expand_options
def neighbours(
    text: Annotated[str, Argument(metavar="SENTENCE", help="The sentence with the word.")],
    word: Annotated[str, Option(help="The word to look at.")],
    corpus: CorpusOptions,
    *,
    static: Annotated[str | None, Option(metavar="FILE", help="A file of static vectors, for comparison.")] = None,
    layer: Annotated[str, Option(help="A number, top, average, or all: one table per layer.")] = "top",
    top: Annotated[int, Option(help="How many to show.")] = 10,
    all_words: Annotated[bool, Option("--all-words", help="Search the uses of all words.")] = False,
    occurrence: Annotated[int | None, Option(min=1, help="Which one, if the word occurs several times.")] = None,
    limit: Annotated[int, Option(min=1, help="Sample at most this many uses of the word.")] = 20_000,
    output: ResultOptions,
) -> None:
    """Find the uses of a word that are most similar in context.

    They come from your corpus or index, or from some 400 sentences that come with polyseme. A static vector has the
    same neighbours in every sentence; --static shows them for comparison.
    """
    from polyseme.corpus.neighbours import nearest_uses, static_neighbours
    from polyseme.embedding.layers import parse_choice

    use, choice = _use(text, word, occurrence), parse_choice(layer)
    if top < 1:
        raise ConfigError(f"--top must be 1 or more, not {top}")
    output.check()
    beside = static_neighbours(static, use.word, top) if static else None
    source = CorpusSource(corpus)
    among = source.all_words() if all_words else source.find(word, limit)
    layers = among.numbers if choice == "all" else [choice]
    results = [nearest_uses(source.encoder, use, among, one, top) for one in layers]
    output.present({"results": results, "static": beside}, lambda: _show(use, results, beside))


def _use(text: str, word: str, occurrence: int | None) -> Use:
    from polyseme.corpus.uses import Use, find_place
    from polyseme.text.tokenizer import tokenize

    words = tuple(word for sentence in tokenize(text) for word in sentence.words)
    return Use(words, find_place(words, word, occurrence))


def _show(use: Use, results: list[Neighbours], beside: StaticNeighbours | None) -> None:
    for number, result in enumerate(results):
        gap, among = "\n" * (number > 0), plural(result.compared, "use")
        title = f"{gap}{format_use(use)}  {result.model}, layer {result.layer}, among {among}"
        rows = [(format_use(found.use), decimals(found.cosine)) for found in result.found]
        show_table(title, ("most similar", "cosine"), rows)
    if beside:
        rows = [(found.word, decimals(found.cosine)) for found in beside.found]
        show_table(f"\n{beside.word} in any sentence: {beside.name}", ("most similar", "cosine"), rows)
