"""Where the commands about uses of words find them: an index, files of text, or the sentences that ship."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol, TypeVar

import typer

from polyseme.cli.output import MODELS, Progress, open_embedder
from polyseme.errors import ConfigError

if TYPE_CHECKING:
    from polyseme.corpus.uses import Use, Uses

Item = TypeVar("Item", bound="Worded")

ModelOption = Annotated[
    str | None,
    typer.Option(help=f"{MODELS}. [default: that of the index, or the one that ships]", show_default=False),
]
CorpusOption = Annotated[
    list[str] | None,
    typer.Option(help="Text to look in, a sentence a line: a file, folder or pattern; may be given several times."),
]
IndexOption = Annotated[Path | None, typer.Option(help="A corpus that `polyseme index` made ready.")]
RawOption = Annotated[bool, typer.Option("--raw", help="Raw text: split it into sentences and words first.")]
CaseOption = Annotated[bool, typer.Option("--match-case", help="Tell Turkey from turkey.")]


class Worded(Protocol):
    """A sentence of any kind."""

    @property
    def words(self) -> Sequence[str]:
        """Its words."""
        ...


class TextFiles:
    """Files of text as sentences, which can be read several times."""

    def __init__(self, paths: Sequence[str], raw: bool, limit: int | None = None) -> None:
        from polyseme.text.corpus import expand

        self.sources = expand(paths)  # once, so that an output inside a folder of inputs is not read
        self.raw, self.limit = raw, limit

    def __iter__(self) -> Iterator[list[str]]:
        from polyseme.text.corpus import read_sentences

        filled = (words for source in self.sources for words in read_sentences(source, self.raw) if words)
        return islice(filled, self.limit)

    def check_twice(self) -> None:
        """Refuse what can be read only once."""
        if "-" in self.sources:
            raise ConfigError("- (standard input) can be read only once, and this reads a corpus twice; give a file")


class CorpusSource:
    """Uses out of an index, a corpus or the bundled sentences, and the model that they are looked at with."""

    def __init__(self, model: str | None, device: str, corpus: list[str] | None, index: Path | None, raw: bool) -> None:
        from polyseme.corpus.index import Index
        from polyseme.corpus.uses import bundled_sentences

        if corpus and index:
            raise ConfigError("--corpus and --index both say where to look; give one of them")
        self.index = Index(index) if index else None
        self.text = TextFiles(corpus, raw) if corpus else bundled_sentences()
        self.encoder = open_embedder(model or (self.index.origin.path if self.index else None), device)
        if self.index:
            self.index.check(self.encoder)

    def of(self, word: str, match_case: bool, limit: int) -> Uses:
        """The uses of one word."""
        from polyseme.corpus.uses import embed_uses, find_uses

        if self.index:
            return self.index.of(word, match_case, limit)
        return embed_uses(self.encoder, find_uses(self.text, word, match_case, limit))

    def everything(self) -> Uses:
        """Every word there is as a use."""
        from polyseme.corpus.uses import embed_all

        if self.index:
            return self.index.uses
        if isinstance(self.text, TextFiles):
            raise ConfigError(
                "--all-words searches every word of a corpus; index it first: polyseme index CORPUS -o DIR"
            )
        return embed_all(self.encoder, self.text)


def counted(items: Iterable[Item]) -> Iterator[Item]:
    """The same, with a line on the terminal that says how far it is."""
    with Progress(0) as progress:
        for item in items:
            yield item
            progress.advance(list(item.words), Counter())


def shown(use: Use, width: int = 12) -> str:
    """A use as a line: its word in brackets, with so many words around it."""
    first, last = max(0, use.place - width), use.place + width + 1
    before, after = use.words[first : use.place], use.words[use.place + 1 : last]
    ends = ("… " if first else "", " …" if last < len(use.words) else "")
    return f"{ends[0]}{' '.join((*before, f'[{use.word}]', *after))}{ends[1]}"
