"""Subword tokenisation for transformers: words into pieces, long sentences into overlapping windows.

Nothing here knows a network. A sentence becomes rows of piece ids, each with the special pieces around it, and for
each of its words the place where its pieces stand.
"""

from __future__ import annotations

import copy
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from math import inf
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from polyseme.errors import FormatError, require

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Pooling = Literal["first", "last", "mean"]
KNOWN_WORDS = 200_000  # words whose pieces are remembered
_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")  # halves of characters, which are no text


class PieceRows(NamedTuple):
    """A tokenised sentence: one row of piece ids, or several that overlap.

    The pieces of a word are a span (row, begin, end): ``begin`` to ``end`` of a row; none, where both are the same.
    """

    ids: list[list[int]]
    words: np.ndarray  # (words, 3) the span of each word
    boundaries: np.ndarray  # (2, 3) spans of the pieces that open its first row and close its last


@dataclass(frozen=True)
class PieceTokenizer:
    """Subword tokeniser: cuts sentences into rows that fit a model's maximum length.

    Attributes:
        tokenizer: Cuts each word by itself, and neither truncates nor pads.
        before: Special pieces that open a row.
        after: Special pieces that close it.
        room: Pieces of words that fit between them.
    """

    tokenizer: Tokenizer
    before: tuple[int, ...]
    after: tuple[int, ...]
    room: int
    _known: dict[str, list[int]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def cut(self, words: Sequence[str]) -> list[list[int]]:
        """The pieces of each word, however many; none for a word that the tokeniser drops."""
        known = {word: self._known.get(word) for word in words}
        if fresh := [word for word, pieces in known.items() if pieces is None]:
            cut = dict(zip(fresh, self._cut(fresh), strict=True))
            known |= cut
            if len(self._known) > KNOWN_WORDS:
                self._known.clear()
            self._known.update(cut)
        return [known[word] or [] for word in words]

    def _cut(self, words: Sequence[str]) -> list[list[int]]:
        text = [word if word.isascii() else word.translate(_SURROGATES) for word in words]
        encoding = self.tokenizer.encode(text, is_pretokenized=True, add_special_tokens=False)
        pieces: list[list[int]] = [[] for _ in words]
        for word, piece in zip(encoding.word_ids, encoding.ids, strict=True):
            if word is not None:  # as special pieces have, but there are none here
                pieces[word].append(piece)
        return pieces

    def __reduce__(self) -> tuple[Any, ...]:
        return PieceTokenizer, (self.tokenizer, self.before, self.after, self.room)

    def rows(self, words: Sequence[str]) -> PieceRows:
        """The rows of a sentence. Each word is taken from the row in which it stands farthest from an edge."""
        pieces = [word[: self.room] for word in self.cut(words)]
        sizes = list(map(len, pieces))
        stretches = overlapping(sizes, self.room)
        ids = [[*self.before, *chain(*pieces[first:end]), *self.after] for first, end in stretches]
        row = np.array(best_stretches(sizes, stretches), np.int64)
        ends = np.array([0, *accumulate(sizes)])
        shift = (len(self.before) - ends[[first for first, _ in stretches]])[row]
        spans = np.stack([row, ends[:-1] + shift, ends[1:] + shift], axis=1)
        opening = 0, 0, min(1, len(self.before))
        closing = len(ids) - 1, len(ids[-1]) - min(1, len(self.after)), len(ids[-1])
        return PieceRows(ids, spans, np.array([opening, closing]))


def make_piece_tokenizer(tokenizer: Tokenizer, longest: int, name: str) -> PieceTokenizer:
    """Make a piece tokeniser for a model that reads so many pieces at a time."""
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    _put_spaces_before_words(tokenizer)
    example = tokenizer.encode(["a"], is_pretokenized=True)
    inside = [place for place, word in enumerate(example.word_ids) if word is not None]
    if not inside or any(example.type_ids):
        raise FormatError(f"the tokeniser of {name} is of a kind that polyseme cannot use; BERT's and RoBERTa's are")
    before, after = example.ids[: inside[0]], example.ids[inside[-1] + 1 :]
    room = longest - len(before) - len(after)
    if room < 1:
        raise FormatError(f"{name} reads {longest} pieces at a time, which leaves no room for words")
    return PieceTokenizer(tokenizer, tuple(before), tuple(after), room)


def overlapping(sizes: Sequence[int], room: int) -> list[tuple[int, int]]:
    """Cut words of these sizes into stretches (first, end) that fit; one, if all fit.

    Each begins half a stretch before the end of the one before it, or later where the next word is too large for that,
    so that in one of them a word has about a quarter of the room, or more, on either side. The last reaches back as far
    as it can. No word may be larger than the room.
    """
    ends = [0, *accumulate(sizes)]
    stretches: list[tuple[int, int]] = []
    first = 0
    while (end := bisect_right(ends, ends[first] + room) - 1) < len(sizes):
        stretches.append((first, end))
        first = bisect_left(ends, max(ends[end] - room // 2, ends[end + 1] - room))
    return [*stretches, (bisect_left(ends, ends[-1] - room), len(sizes))]


def best_stretches(sizes: Sequence[int], stretches: Sequence[tuple[int, int]]) -> list[int]:
    """For each word the stretch with the most pieces between it and the nearer edge; of equals the first.

    The sentence's own beginning and end are no edges: nothing is missing there.
    """
    best = [0] * len(sizes)
    if len(stretches) == 1:
        return best
    ends = [0, *accumulate(sizes)]
    margins = [-1.0] * len(sizes)
    for number, (first, end) in enumerate(stretches):
        for word in range(first, end):
            left = ends[word] - ends[first] if first else inf
            right = ends[end] - ends[word + 1] if end < len(sizes) else inf
            if min(left, right) > margins[word]:
                margins[word], best[word] = min(left, right), number
    return best


def pooled(spans: np.ndarray, pooling: Pooling) -> np.ndarray:
    """The spans (words, 3) of the pieces whose mean is a word's vector: first, last or all."""
    row, begin, end = spans.T
    if pooling == "first":
        end = np.minimum(begin + 1, end)
    if pooling == "last":
        begin = np.maximum(end - 1, begin)
    return np.stack([row, begin, end], axis=1)


def like_sized(sizes: Sequence[int], budget: int) -> list[list[int]]:
    """Group rows of similar length, by number, so that a padded group stays within the budget, but for a giant."""
    order = sorted(filter(sizes.__getitem__, range(len(sizes))), key=sizes.__getitem__, reverse=True)
    groups: list[list[int]] = []
    while order:
        count = max(1, budget // sizes[order[0]])
        groups.append(order[:count])
        order = order[count:]
    return groups


def _put_spaces_before_words(tokenizer: Tokenizer) -> None:
    """Let a byte-level tokeniser, RoBERTa's for one, see each word after a space, as in the text it was made from."""
    tokenizers = require("tokenizers", "transformers")
    whole = tokenizer.pre_tokenizer
    steps = list(whole) if isinstance(whole, tokenizers.pre_tokenizers.Sequence) else [whole]
    if not any(isinstance(step, tokenizers.pre_tokenizers.ByteLevel) and not step.add_prefix_space for step in steps):
        return
    if len(steps) == 1:
        steps[0].add_prefix_space = True
    else:  # here it would put a space before each part of a word too
        space = tokenizers.normalizers.Prepend(" ")
        before = [tokenizer.normalizer] if tokenizer.normalizer else []
        tokenizer.normalizer = tokenizers.normalizers.Sequence([*before, space])
