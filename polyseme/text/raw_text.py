"""Raw text where tokenised text is expected: punctuation glued to words, or lines of hundreds of words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

ENOUGH = 200  # lines with words, after which the question is decided
LONG_LINE = 100  # words in a typical line, above which lines are paragraphs rather than sentences

_GLUED = re.compile(r"\w[\w'’-]*[,;:!?][\"”’)\]]*|\w+[。，！？；].*")
_GLUED_AT_END = re.compile(r"\w[\w'’-]*[.!?…][\"”’)\]]*|\w+[。！？]")
_SEPARATE = re.compile(r"[.,;:!?…。，！？；]+")


class RawTextDetector:
    """Counts punctuation in the first lines of a text, and decides whether the text looks raw.

    It does if more words have a punctuation mark glued to them than marks stand by themselves, or if a typical line is
    longer than a sentence.
    """

    def __init__(self) -> None:
        self._lengths: list[int] = []
        self._glued = self._separate = 0

    @property
    def has_enough(self) -> bool:
        """Whether more lines would not change the decision."""
        return len(self._lengths) >= ENOUGH

    def add(self, words: Sequence[str]) -> None:
        """Look at one line, split at its spaces; a line without words says nothing."""
        if not words:
            return
        self._lengths.append(len(words))
        self._glued += sum(map(bool, map(_GLUED.fullmatch, words[:-1]))) + bool(
            _GLUED.fullmatch(words[-1]) or _GLUED_AT_END.fullmatch(words[-1])
        )
        self._separate += sum(map(bool, map(_SEPARATE.fullmatch, words)))

    def evidence(self) -> str | None:
        """Why the text looks raw, in a few words; None if it does not."""
        if self._glued >= 2 and self._glued > self._separate:
            return f"{self._glued:,} of its first {sum(self._lengths):,} words end in a punctuation mark"
        typical = sorted(self._lengths)[len(self._lengths) // 2] if self._lengths else 0
        return f"a typical line has {typical:,} words" if typical > LONG_LINE else None


def watch_for_raw_text(sentences: Iterable[list[str]], report: Callable[[str], None]) -> Iterator[list[str]]:
    """The same sentences; the evidence is reported once if the first of them look raw."""
    detector, decided = RawTextDetector(), False
    for words in sentences:
        if not decided:
            detector.add(words)
            decided = detector.has_enough
            if decided and (why := detector.evidence()):
                report(why)
        yield words
    if not decided and (why := detector.evidence()):
        report(why)
