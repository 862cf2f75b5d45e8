"""Advice on training settings for a text, and warnings about what to fix in it first; all rules of thumb."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

from polyseme.training.doctor.examine import LONG_SENTENCE, MIXED, NO_LETTERS, SPELLING_LIMIT
from polyseme.training.doctor.statistics import TextStatistics

# Least number of running words, the preset for them, and the largest vocabulary that is worth its softmax.
PRESETS = ((500e6, "original", 800_000), (100e6, "medium", 200_000), (20e6, "small", 100_000), (0, "tiny", 30_000))
EPOCHS = ((1e9, 3), (100e6, 5), (0, 10))
OFTEN = 5  # least frequency of a word that is worth predicting
TOGETHER = ("Han", "Hiragana", "Katakana", "Hangul")  # scripts that occur together
WITHOUT_SPACES = ("Thai", "Lao", "Khmer", "Myanmar")


@dataclass(frozen=True)
class Advice:
    """Recommended training settings, and warnings about the text.

    Attributes:
        preset: tiny, small, medium or original.
        vocabulary: Vocabulary size.
        coverage: Fraction of running words in that vocabulary.
        epochs: Passes over the text.
        seconds: Training time, where the speed was measured.
        warnings: Problems of the text, each with a remedy.
    """

    preset: str
    vocabulary: int
    coverage: float
    epochs: int
    seconds: float | None
    warnings: tuple[str, ...]


def advise(facts: TextStatistics, tokens_per_second: Callable[[str], float] | None = None) -> Advice:
    """Recommend a preset, a vocabulary size and a number of epochs for a text.

    Args:
        facts: Statistics of the text.
        tokens_per_second: Measures the training speed of a preset on this machine; None leaves out the time.
    """
    preset, largest = next((name, most) for least, name, most in PRESETS if facts.words >= least)
    epochs = next(times for least, times in EPOCHS if facts.words >= least)
    smallest, *others = facts.coverage
    vocabulary = max([smallest, *(size for size in others if size <= min(largest, facts.frequent[OFTEN]))])
    seconds = None
    if tokens_per_second is not None:
        seconds = (facts.words + facts.sentences) * epochs / tokens_per_second(preset)
    remarks = chain(_about_amount(facts), _about_reading(facts), _about_words(facts), _about_lines(facts))
    return Advice(preset, vocabulary, facts.coverage[vocabulary], epochs, seconds, tuple(remarks))


def _about_amount(facts: TextStatistics) -> Iterator[str]:
    if facts.words < 1_000_000:
        yield f"{facts.words:,} words are few: the model will learn only common ones. A usable model needs millions."
    if facts.documents == 1 and facts.lines >= 1_000:
        yield "There is no blank line, so all of the text counts as one document. Separate documents by blank lines."
    if facts.duplicate_lines > 0.05:
        yield (
            f"{_percent(facts.duplicate_lines)} of the lines are copies of an earlier line, and the model memorises "
            "copies. awk '!NF || !seen[$0]++' keeps the first of each."
        )


def _about_reading(facts: TextStatistics) -> Iterator[str]:
    spaced, glued = (facts.signs.get(sign, 0) / facts.lines for sign in ("spaced", "glued"))
    unspaced = sum(facts.scripts.get(script, 0) for script in WITHOUT_SPACES) / facts.words
    if not facts.tokenized and spaced > 0.3:
        yield "The text looks tokenised (spaces before commas and full stops). Give --tokenized to keep its words."
    if facts.tokenized and glued > 0.3:
        yield "The text looks raw (no spaces before punctuation). Leave out --tokenized."
    if unspaced > 0.01:
        yield (
            f"{_percent(unspaced)} of the words are in a script without spaces, but the tokeniser splits at spaces. "
            "Run a word segmenter first, and give --tokenized."
        )
    if facts.long_sentences > 0.001 * facts.sentences:
        yield (
            f"{_count(facts.long_sentences, 'sentence')} of over {LONG_SENTENCE} words (the longest has "
            f"{facts.longest_sentence:,}), which training splits. Is punctuation missing, or are these lists?"
        )


def _about_words(facts: TextStatistics) -> Iterator[str]:
    first, *others = [script for script in facts.scripts if script not in (NO_LETTERS, MIXED)] or [""]
    shares = {script: facts.scripts[script] / facts.words for script in others if {first, script} - {*TOGETHER}}
    if notable := [f"{script} ({_percent(share)})" for script, share in shares.items() if share > 0.05]:
        yield f"The text is {first} and {', '.join(notable)}. Is that intended? One model per language is better."
    if facts.scripts.get(MIXED, 0) > 0.001 * facts.words:
        yield (
            f"{_count(facts.scripts[MIXED], 'word')} with letters of several scripts that look alike, such as a "
            "Cyrillic а in a Latin word. Convert them to one script first."
        )
    if facts.scripts.get(NO_LETTERS, 0) > 0.4 * facts.words:
        share = facts.scripts[NO_LETTERS] / facts.words
        yield f"{_percent(share)} of the words have no letters. Does the text contain tables?"
    if facts.cropped > 0.001 * facts.words:
        helps = 2 * facts.cropped_by_characters < facts.cropped
        remedy = (
            'Set characters = "code points" to count characters instead of bytes.'
            if helps
            else "Are these addresses, or words run together?"
        )
        yield (
            f"{_count(facts.cropped, 'word')} longer than {SPELLING_LIMIT} bytes, which the model reads in part. "
            f"{remedy}"
        )


_SIGNS = (
    ("markup", 0.005, "look like markup (tags, entities, templates). Strip it, or the model will learn it."),
    ("tables", 0.01, "look like tables (tabs, bars). Remove them: they are not sentences."),
    (
        "replacements",
        0.0,
        "contain U+FFFD, which replaces characters that could not be decoded. Convert the original again.",
    ),
    ("decoded_twice", 0.001, "look decoded with the wrong encoding (Ã©, â€™). Convert the original again, as UTF-8."),
    (
        "controls",
        0.0,
        "contain control characters, which only separate words; tr -d '\\000-\\010' removes most of them.",
    ),
    ("carriage_returns", 0.0, "contain a carriage return inside the line. tr '\\r' '\\n' turns them into line ends."),
)


def _about_lines(facts: TextStatistics) -> Iterator[str]:
    for sign, share, what in _SIGNS:
        found = facts.signs.get(sign, 0)
        if found > share * facts.lines:
            yield f"{found:,} of {_count(facts.lines, 'line')} {what}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
