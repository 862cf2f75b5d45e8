"""The texts that the English model is measured on, out of the folder that ../shared/DATA.md describes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from polyseme.lm.documents import Document
from polyseme.text.corpus import expand, open_text, split_lines

HELD_OUT = "00"  # how the SHA-256 of a held-out document begins
UNKNOWN, PLACEHOLDER = "<unk>", "Qunkq"  # WikiText's unknown word, and a word that the tokenizer leaves whole


def documents(path: Path) -> Iterator[list[str]]:
    """The lines of each document of a file; blank lines part them."""
    with open_text(path) as lines:
        for filled, group in groupby(lines, key=lambda line: bool(line.strip())):
            if filled:
                yield list(group)


def is_held_out(lines: list[str]) -> bool:
    """DATA.md's rule: lines joined by one newline, UTF-8, a hash that begins with 00."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest().startswith(HELD_OUT)


def held_out(data: Path) -> Iterator[Document]:
    """The held-out documents of Wikipedia, split into sentences and words as training text is."""
    for path in expand(str(data / "corpora" / "en" / "wikipedia-*")):
        for lines in filter(is_held_out, documents(Path(path))):
            yield Document(list(split_lines(lines, raw=True)), sum(map(len, lines)) + len(lines))


def seen_words(data: Path) -> set[str]:
    """Every run of letters in the training text, in lower case: a word that is not among them was never seen."""
    found: set[str] = set()
    for path in expand(str(data / "corpora" / "en")):
        wikipedia = Path(path).name.startswith("wikipedia-")
        for lines in documents(Path(path)):
            if not (wikipedia and is_held_out(lines)):
                found.update(re.findall("[a-z]+", "\n".join(lines).lower()))
    return found


def wikitext(data: Path) -> Iterator[Document]:
    """The articles of WikiText-103's valid part, its tokens joined again where its makers cut them."""
    lines: list[str] = []
    with open_text(data / "eval" / "lm-wikitext103" / "wiki.valid.tokens") as text:
        for line in text:
            if re.match(r" = [^=].* = $", line) and lines:
                yield _article(lines)
                lines = []
            if line.strip():
                lines.append(_joined(line))
    yield _article(lines)


def _joined(line: str) -> str:
    return re.sub(r" @(.)@ ", r"\1", line.strip()).replace(UNKNOWN, PLACEHOLDER)


def _article(lines: list[str]) -> Document:
    sentences = [
        [word.replace(PLACEHOLDER, UNKNOWN) for word in words]
        for line in lines
        for words in split_lines([line], raw=True)
    ]
    shortened = sum(line.count(PLACEHOLDER) for line in lines) * (len(PLACEHOLDER) - len(UNKNOWN))
    return Document(sentences, sum(map(len, lines)) + len(lines) - shortened)
