"""Size checks: words, sentences and texts of a request against the limits of the server."""

from __future__ import annotations

from collections.abc import Sequence

from polyseme.serving.settings import Limits
from polyseme.text.tokenizer import TokenizedSentence, tokenize

Place = Sequence[str | int]


class TooLargeError(Exception):
    """A request exceeds a limit; `where` is the place of the excess, as ``("sentences", 3)``."""

    def __init__(self, message: str, where: Place = ()) -> None:
        super().__init__(message)
        self.where = list(where)


def check_sentences(sentences: Sequence[Sequence[str]], limits: Limits, where: Place) -> None:
    """Refuse sentences that exceed the limits, with the place of the excess."""
    if len(sentences) > limits.sentences:
        raise TooLargeError(f"a request may have {limits.sentences:,} sentences, not {len(sentences):,}", where)
    total = 0
    for number, words in enumerate(sentences):
        check_words(words, limits, [*where, number])
        total += len(words)
        if total > limits.words:
            raise TooLargeError(f"a request may have {limits.words:,} words; send several", [*where, number])


def check_words(words: Sequence[str], limits: Limits, where: Place) -> None:
    """Refuse a sentence with too many words, or with a word of too many characters."""
    if len(words) > limits.sentence_words:
        raise TooLargeError(f"a sentence may have {limits.sentence_words:,} words, not {len(words):,}", where)
    if words and max(map(len, words)) > limits.word_characters:
        position = next(at for at, word in enumerate(words) if len(word) > limits.word_characters)
        raise TooLargeError(f"a word may have {limits.word_characters:,} characters", [*where, position])


def tokenize_within(text: str, limits: Limits) -> list[TokenizedSentence]:
    """Tokenise a text; raises `TooLargeError` as soon as it exceeds a limit."""
    sentences: list[TokenizedSentence] = []
    total = 0
    for sentence in tokenize(text):
        check_words(sentence.words, limits, ())
        total += len(sentence.words)
        if total > limits.words or len(sentences) >= limits.sentences:
            most = f"{limits.sentences:,} sentences and {limits.words:,} words"
            raise TooLargeError(f"a request may have {most}; send several")
        sentences.append(sentence)
    return sentences
