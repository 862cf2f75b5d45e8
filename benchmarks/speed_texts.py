"""The sentences that speed.py embeds: lists of words, by nothing but the standard library."""

from __future__ import annotations

import itertools
import lzma
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

UD_EWT = Path(__file__).parents[2] / "shared" / "eval" / "pos-ud-ewt" / "en_ewt-ud-dev.conllu.xz"
MADE_WORDS = 20_000  # different ones, to draw from
SYLLABLES = [first + vowel + last for first in "bdfgklmnprst" for vowel in "aeiou" for last in ("", "n", "r", "s")]


def find_sentences(path: Path | None = None) -> tuple[str, list[list[str]]]:
    """A name and sentences: of a file, a sentence a line; else of UD-EWT dev; else made by rule."""
    if path:
        return path.name, read_sentences(path)
    if UD_EWT.is_file():
        return "UD-EWT dev", list(_read_conllu(UD_EWT))
    return "made by rule", make_sentences(2000)


def read_sentences(path: Path) -> list[list[str]]:
    """One sentence a line, words apart by spaces."""
    return [line.split() for line in path.read_text("utf-8").splitlines() if line.strip()]


def make_sentences(count: int) -> list[list[str]]:
    """Sentences of one to 40 words, the word of rank r drawn in proportion to 1/r, common words short."""
    rng = random.Random(0)
    words = [_spell(number) for number in range(MADE_WORDS)]
    shares = list(itertools.accumulate(1 / (rank + 1) for rank in range(MADE_WORDS)))
    lengths = [max(1, min(40, round(rng.expovariate(1 / 12.5)))) for _ in range(count)]
    return [rng.choices(words, cum_weights=shares, k=length) for length in lengths]


def cut(sentences: Sequence[Sequence[str]], length: int, count: int | None = None) -> list[list[str]]:
    """The running text in pieces of just so many words, each piece other text; at most so many pieces."""
    words = list(itertools.chain.from_iterable(sentences))
    pieces = [words[first : first + length] for first in range(0, len(words) - length + 1, length)]
    return pieces[:count]


def head(sentences: Sequence[list[str]], words: int, boundaries: int = 0) -> list[list[str]]:
    """The first sentences, until there are so many words, the words around each sentence counted if need be."""
    totals = itertools.accumulate((len(sentence) + boundaries for sentence in sentences), initial=0)
    return [sentence for sentence, before in zip(sentences, totals, strict=False) if before < words]


def _read_conllu(path: Path) -> Iterator[list[str]]:
    sentence: list[str] = []
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            number, _, rest = line.partition("\t")
            if number.isdigit():
                sentence.append(rest.partition("\t")[0].replace(" ", ""))
            elif not line.strip() and sentence:
                yield sentence
                sentence = []


def _spell(number: int) -> str:
    """A word for a number: the number in syllables, so that rare words are longer ones."""
    number, last = divmod(number, len(SYLLABLES))
    return (_spell(number - 1) if number else "") + SYLLABLES[last]
