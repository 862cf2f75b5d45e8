"""Where commands about uses of words find them: an index, text files, or the sentences that come with polyseme."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from polyseme.cli.options import MODELS, DeviceOption, RawOption
from polyseme.cli.output import open_embedder
from polyseme.cli.progress import warn_of_raw_text, working
from polyseme.errors import ConfigError, InputError

if TYPE_CHECKING:
    from polyseme.corpus.uses import Use, Uses


@dataclass(frozen=True)
class CorpusOptions:
    """The options that say in which corpus a word's uses are looked for, and with which model."""

    model: Annotated[str | None, Option(help=f"{MODELS}. [default: that of the index, or english]")] = None
    corpus: Annotated[list[str] | None, Option(help="Text to search: a file, folder or pattern; repeatable.")] = None
    index: Annotated[Path | None, Option(help="A corpus that `polyseme index` has embedded.")] = None
    raw: RawOption = False
    match_case: Annotated[bool, Option("--match-case", help="Distinguish Turkey from turkey.")] = False
    device: DeviceOption = "cpu"


class TextFiles:
    """Text files as an iterable of sentences, which can be read several times."""

    def __init__(self, paths: Sequence[str], raw: bool, limit: int | None = None) -> None:
        from polyseme.text.corpus import expand

        self.sources = expand(paths)  # once, so that an output inside a folder of inputs is not read
        self.raw, self.limit = raw, limit
        self._checked = False  # whether a reader has looked at the text already

    def __iter__(self) -> Iterator[list[str]]:
        return islice(self._read(), self.limit)

    def _read(self) -> Iterator[list[str]]:
        from polyseme.progress import reading
        from polyseme.text.corpus import plain_sizes, read_sentences

        checked, self._checked = self._checked, True
        found = (words for source in self.sources for words in read_sentences(source, self.raw) if words)
        with reading(plain_sizes(self.sources)):
            yield from found if checked else warn_of_raw_text(found, self.raw)

    def check_rereadable(self) -> None:
        """Refuse standard input, which can be read only once."""
        if "-" in self.sources:
            raise ConfigError("- (standard input) can be read only once, and a corpus is read twice here; give a file")


class CorpusSource:
    """Uses of words from an index, a corpus or the bundled sentences, and the encoder to embed them with."""

    def __init__(self, options: CorpusOptions) -> None:
        from polyseme.corpus.index import Index
        from polyseme.corpus.uses import bundled_sentences

        if options.corpus and options.index:
            raise ConfigError("--corpus and --index both say where to search; give one of them")
        self.index = Index(options.index) if options.index else None
        self.text = TextFiles(options.corpus, options.raw) if options.corpus else bundled_sentences()
        self.match_case = options.match_case
        self.encoder = open_embedder(options.model or (self.index.origin.path if self.index else None), options.device)
        if self.index:
            self.index.check(self.encoder)

    def find(self, word: str, limit: int) -> Uses:
        """A sample of the uses of one word, with their vectors."""
        from polyseme.corpus.uses import embed_uses, find_uses

        if self.index:
            return self.index.of(word, self.match_case, limit)
        try:
            with working(f"searching for {word}"):
                return embed_uses(self.encoder, find_uses(self.text, word, self.match_case, limit))
        except InputError:
            if isinstance(self.text, TextFiles):
                raise
            raise InputError(
                f"none of the {len(self.text)} sentences that come with polyseme has the word {word!r}; "
                "search a text of your own with --corpus FILE"
            ) from None

    def all_words(self) -> Uses:
        """The uses of all words of an index or of the bundled sentences."""
        from polyseme.corpus.uses import embed_all

        if self.index:
            return self.index.uses
        if isinstance(self.text, TextFiles):
            raise ConfigError(
                "--all-words searches every word of a corpus; index it first: polyseme index CORPUS -o DIR"
            )
        with working("embedding the sentences that come with polyseme"):
            return embed_all(self.encoder, self.text)


def format_use(use: Use, width: int = 12) -> str:
    """A use as one line: its word in brackets, with this many words of context on each side."""
    first, last = max(0, use.place - width), use.place + width + 1
    before, after = use.words[first : use.place], use.words[use.place + 1 : last]
    ends = ("… " if first else "", " …" if last < len(use.words) else "")
    return f"{ends[0]}{' '.join((*before, f'[{use.word}]', *after))}{ends[1]}"
