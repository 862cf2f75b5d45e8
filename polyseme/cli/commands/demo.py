"""``polyseme demo``: what the vectors know, on classic examples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from polyseme.cli.options import PlotOptions, ShippedOption
from polyseme.cli.output import open_embedder, plural
from polyseme.errors import FormatError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from polyseme.corpus.uses import Use
    from polyseme.embedding.encoder import Encoder
    from polyseme.lm import LanguageModel
    from polyseme.report.demo import Expected

WIDTH = 100  # characters, where there is no terminal
MOST_LAYERS = 4  # shown beside layer 0
CANDIDATES = 5_000  # most frequent words, among which related ones are looked for


def demo(
    model: ShippedOption = None,
    plot: Annotated[Path | None, Option(metavar="FILE", help="Draw a map of senses: *.png, *.svg or *.pdf.")] = None,
) -> None:
    """Show what the vectors know, on classic examples.

    One word with many senses, words never seen in training, and what the language model expects in a gap.
    """
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=WIDTH)
    plot = _drawable(console, plot)
    encoder = open_embedder(model, "cpu")
    language = _language_model(encoder, model)
    _show_model(console, encoder, language)
    _show_compared(console, encoder)
    _show_nearest(console, encoder)
    _show_relatives(console, encoder, language)
    if language:
        _show_expected(console, language)
    if plot:
        _draw(console, encoder, plot)


def _drawable(console: Console, plot: Path | None) -> Path | None:
    """The name of the figure, or None and a message if it cannot be drawn; checked before any work."""
    try:
        PlotOptions(plot=plot).check()
    except MissingExtraError as error:
        console.print(f"no figure: {error}", markup=False)
        return None
    return plot


def _language_model(encoder: Encoder, model: str | None) -> LanguageModel | None:
    """The encoder's network with its softmax head, if it has one; its weights are not read twice."""
    from polyseme.backends.elmo.encoder import ElmoEncoder
    from polyseme.formats import open_softmax, resolve_model_path
    from polyseme.lm import LanguageModel

    if not isinstance(encoder, ElmoEncoder):
        return None
    try:
        head = open_softmax(resolve_model_path(model))
    except FormatError:
        return None  # published models have none
    return LanguageModel(encoder.bilm, head.build(), encoder.words, head.vocabulary, encoder.name)


def _show_model(console: Console, encoder: Encoder, language: LanguageModel | None) -> None:
    from rich.markup import escape

    parameters = sum(weight.numel() for weight in encoder.parameters())
    facts = [f"{plural(encoder.num_layers, 'layer')} of {encoder.dim} dimensions"]
    facts += [f"{parameters:,} parameters"] if parameters else []
    facts += [f"predicts {len(language.vocabulary):,} words"] if language else []
    console.print(f"[bold]{escape(encoder.name)}[/]  {', '.join(facts)}")


def _show_compared(console: Console, encoder: Encoder) -> None:
    """Cosine similarity with the first sentence of each word, layer by layer."""
    from polyseme.report.demo import compare

    top = encoder.num_layers - 1
    layers = sorted({round(top * part / MOST_LAYERS) for part in range(MOST_LAYERS + 1)})
    names = [f"layer {layer}" if layer else "no context" for layer in layers]
    table = _table("a word, and the cosine similarity of its vectors to the first", names)
    previous = None
    for pair in compare(encoder):
        if pair.first != previous:
            table.add_row(_marked(pair.first))
        previous = pair.first
        table.add_row(_marked(pair.second, indent=2), *(_shade(pair.cosines[layer]) for layer in layers))
    _print(console, table)


def _show_nearest(console: Console, encoder: Encoder) -> None:
    from polyseme.report.demo import nearest_in_bundle

    table = _table("a use, and the most similar ones in some 400 sentences, by the top layer", ["cosine"])
    for query in nearest_in_bundle(encoder):
        table.add_row(_marked(query.use))
        for one in query.found:
            table.add_row(_marked(one.use, indent=2), _shade(one.cosine))
    _print(console, table)


def _show_relatives(console: Console, encoder: Encoder, language: LanguageModel | None) -> None:
    from rich.text import Text

    from polyseme.corpus.uses import bundled_sentences
    from polyseme.report.demo import relatives

    common = language.vocabulary if language else dict.fromkeys(w for words in bundled_sentences() for w in words)
    among = [word for word in common if word.isalpha()][:CANDIDATES]
    table = _table(f"a word made up or misspelt, and the nearest of {len(among):,} frequent ones, without context", [])
    for one in relatives(encoder, among):
        found = ", ".join(f"{word} {cosine:.2f}" for word, cosine in one.found)
        line = Text.assemble(
            (one.word, "bold cyan"), f" ({one.how}): ", found or "nothing: the model has no vector for it"
        )
        table.add_row(line)
    _print(console, table)


def _show_expected(console: Console, language: LanguageModel) -> None:
    from rich.table import Table
    from rich.text import Text

    from polyseme.report.demo import expect

    expected = expect(language)
    before, after = expected.words[: expected.place], expected.words[expected.place + 1 :]
    console.print()
    console.print(Text.assemble(" ".join(before), (" ___ ", "bold cyan"), " ".join(after).replace(" .", ".")))
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for name in ("  from the words before", "from the words after", "from both"):
        table.add_column(name, header_style="bold")
    ends = {language.vocabulary.bos: "(sentence start)", language.vocabulary.eos: "(sentence end)"}
    for row in zip(*_columns(expected), strict=False):
        cells = [f"{ends.get(word, word)} {100 * share:.1f} %" for word, share in row]
        table.add_row(f"  {cells[0]}", *cells[1:])
    console.print(table)


def _columns(expected: Expected) -> Sequence[Sequence[tuple[str, float]]]:
    return expected.forward, expected.backward, expected.both


def _draw(console: Console, encoder: Encoder, plot: Path) -> None:
    from polyseme.plots import save_figure
    from polyseme.report.demo import draw_uses

    save_figure(draw_uses(encoder), plot)
    console.print(f"\nmap of senses: {plot}", markup=False)


def _print(console: Console, table: Table) -> None:
    console.print()
    console.print(table)


def _table(title: str, columns: Sequence[str]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    table.add_column(title, overflow="fold", ratio=1)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _marked(use: Use, indent: int = 0) -> Text:
    """A sentence as plain text, with the word in colour."""
    from rich.text import Text

    text = Text(" " * indent)
    for place, word in enumerate(use.words):
        closing = word[0] in ".,;:?!" or word == "n't" or word.startswith("'")
        text.append("" if closing or not place else " ")
        text.append(word, "bold cyan" if place == use.place else "")
    return text


def _shade(cosine: float) -> Text:
    """A cosine similarity in colour, brighter where it is higher."""
    from rich.text import Text

    return Text(f"{cosine:.2f}", "bold green" if cosine > 0.7 else "green" if cosine > 0.5 else "yellow")
