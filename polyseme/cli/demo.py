"""``polyseme demo``: one word, many vectors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import numpy as np
    from rich.console import Console

    from polyseme.embedding.encoder import Encoder

EXAMPLES = {
    "put": ("I put my books in the bag .", "She put her book in my bag yesterday ."),
    "Paris": ("Paris is the capital of France .", "Paris Hilton was seen at the party ."),
    "bank": (
        "He sat on the bank of the river .",
        "She opened an account at the bank .",
        "They walked along the bank .",
    ),
}


def demo(
    model: Annotated[Path | None, typer.Option(help="A model of any format.", show_default=False)] = None,
) -> None:
    """Show that a word's vector depends on its sentence."""
    from rich.console import Console
    from rich.markup import escape

    from polyseme.cli.output import counted_as
    from polyseme.loading import load

    console = Console(highlight=False)
    encoder = load(model)
    parameters = sum(weight.numel() for weight in encoder.parameters())
    size = f"{counted_as(encoder.num_layers, 'layer')} of {encoder.dim} dimensions"
    size += f", {parameters:,} parameters" if parameters else ""
    console.print(f"[bold]{escape(encoder.name)}[/]: {size}")
    for word, sentences in EXAMPLES.items():
        _show(console, encoder, word, sentences)


def _show(console: Console, encoder: Encoder, word: str, sentences: tuple[str, ...]) -> None:
    """Cosines between the uses of one word, layer by layer."""
    from itertools import combinations

    from rich.table import Table

    split = [sentence.split() for sentence in sentences]
    uses = [vectors[:, words.index(word)] for vectors, words in zip(encoder.embed(split), split, strict=True)]
    console.print(f"\n[bold]{word}[/]")
    for number, sentence in enumerate(sentences, start=1):
        console.print(f"  {number}. {sentence.replace(word, f'[bold cyan]{word}[/]', 1)}")
    pairs = list(combinations(range(len(uses)), 2))
    cosines = [_cosines(uses[first], uses[second]) for first, second in pairs]
    table = Table("cosines", *(f"{first + 1} and {second + 1}" for first, second in pairs), box=None, padding=(0, 2))
    for layer, values in enumerate(zip(*cosines, strict=True)):
        table.add_row(f"layer {layer}" if layer else "layer 0, context-free", *(f"{value:.3f}" for value in values))
    console.print(table)


def _cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    import numpy as np

    norms = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return (first * second).sum(axis=1) / np.maximum(norms, 1e-12)
