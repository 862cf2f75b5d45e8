"""Statistics of one text chunk, computed in a worker process; imports no torch, so that it starts quickly."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

import numpy as np

from polyseme.text.corpus import split_lines
from polyseme.training.shards.sources import TextChunk

SPELLING_LIMIT = 48  # bytes of a word that published models read, besides the begin and end marks
LONG_SENTENCE = 400  # words; training splits longer ones
NO_LETTERS = "no letters"
MIXED = "look-alike scripts mixed"

_SCRIPTS = {"CJK": "Han", "IDEOGRAPHIC": "Han", "FULLWIDTH": "Latin", "HALFWIDTH": "Katakana"}
_NO_SCRIPT = ("MASCULINE", "FEMININE", "MICRO", "MODIFIER", "KATAKANA-HIRAGANA")  # ª º µ ʰ ー
_ALIKE = {"Latin", "Cyrillic", "Greek"}  # whose letters look alike

# Signs of trouble in a line, by name; a normal line may match now and then.
_SIGNS = {
    "markup": re.compile(r"</?[A-Za-z][^<>]{0,200}>|&(?:[a-z]{2,8}|#\d{2,6});|\{\{|\[\["),
    "tables": re.compile(r"(?:[^\t]*\t){3}|(?:[^|]*\|){3}"),
    "carriage_returns": re.compile(r"\r"),
    "controls": re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"),
    "replacements": re.compile("\ufffd"),
    "decoded_twice": re.compile(r"Ã[\x80-\xbf©¨ª«¢¤§´¶¼]|â€[™œ“”\x9d\x99]|Ð[°-¿]|Ø[§-¹]"),
    "spaced": re.compile(r"\S ,(?: |$)|\S \.$"),
    "glued": re.compile(r"[^\W\d][,;!?](?=\s|$)"),
}
_ANCHORED = {"tables"}


class ChunkStatistics(NamedTuple):
    """Statistics of one text chunk.

    Attributes:
        words: The distinct words, joined by newlines.
        counts: Frequency of each word.
        lines: A 64-bit hash of each line.
        amounts: Plain sums, by name.
        scripts: Running words by script.
        longest: Words of the longest sentence.
    """

    words: str
    counts: np.ndarray
    lines: np.ndarray
    amounts: Counter[str]
    scripts: Counter[str]
    longest: int


def examine_chunk(chunk: TextChunk, tokenized: bool) -> ChunkStatistics:
    """Compute the statistics of one text chunk."""
    words: Counter[str] = Counter()
    amounts: Counter[str] = Counter(bytes=chunk.size, documents=sum(chunk.starts))
    hashes: list[bytes] = []
    longest = 0
    for text in chunk.texts:
        lines = text.split("\n")
        lengths = []
        for sentence in split_lines(lines, raw=not tokenized):
            words.update(sentence)
            lengths.append(len(sentence))
        longest = max([longest, *lengths])
        amounts["sentences"] += len(lengths)
        amounts["long_sentences"] += sum(length > LONG_SENTENCE for length in lengths)
        amounts["characters"] += len(text) + 1
        amounts["lines"] += len(lines)
        amounts.update(count_signs(lines))
        hashes += [hashlib.blake2b(line.encode(), digest_size=8).digest() for line in lines]
    counts = np.fromiter(words.values(), np.int64, len(words))
    amounts["words"] += int(counts.sum())
    amounts.update(_cropped(words.items()))
    line_hashes = np.frombuffer(b"".join(hashes), np.uint64)
    return ChunkStatistics("\n".join(words), counts, line_hashes, amounts, count_scripts(words.items()), longest)


def count_signs(lines: Iterable[str]) -> Counter[str]:
    """Count lines with signs of trouble, by kind."""
    found: Counter[str] = Counter()
    for line in lines:
        for name, pattern in _SIGNS.items():
            if pattern.match(line) if name in _ANCHORED else pattern.search(line):
                found[name] += 1
    return found


def count_scripts(words: Iterable[tuple[str, int]]) -> Counter[str]:
    """Count running words by script."""
    scripts: Counter[str] = Counter()
    for word, count in words:
        scripts[script_of(word)] += count
    return scripts


def script_of(word: str) -> str:
    """The script of a word's first letter, or `MIXED` where it has letters of scripts that look alike."""
    if word.isascii():
        return "Latin" if any(map(str.isalpha, word)) else NO_LETTERS
    scripts = [script for script in map(_script, filter(str.isalpha, word)) if script]
    if len(_ALIKE.intersection(scripts)) > 1:
        return MIXED
    return scripts[0] if scripts else NO_LETTERS


@cache
def _script(letter: str) -> str:
    """Script of a letter, by the first word of its Unicode name."""
    name = unicodedata.name(letter, "").split(" ")[0]
    return "" if name in _NO_SCRIPT else _SCRIPTS.get(name, name.capitalize())


def is_cropped(word: str, by_bytes: bool) -> bool:
    """Whether a word is longer than a model reads, counted in bytes or in characters."""
    if len(word) > SPELLING_LIMIT:
        return True
    return by_bytes and len(word) * 4 > SPELLING_LIMIT and len(word.encode()) > SPELLING_LIMIT


def _cropped(words: Iterable[tuple[str, int]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for word, count in words:
        if is_cropped(word, by_bytes=True):
            found["cropped_by_bytes"] += count
            found["cropped_by_characters"] += count * is_cropped(word, by_bytes=False)
    return found
