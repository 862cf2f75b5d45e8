"""Which of a model's character filters fire in a word, and where else they do."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional

from polyseme.backends.elmo.encoder import ElmoEncoder
from polyseme.corpus.uses import bundled_sentences
from polyseme.model.input import CharEncoder
from polyseme.report.measure.measurement import Results

BEGIN, END = "‹", "›"  # how the marks around a spelling are shown
DOT = "·"  # any letter
SHOWN, OTHERS = 6, 5
AGREEING = 4  # of the others, for a letter to be called common to them
PLAIN = 2  # letters in common that one can see
_UNUSUAL = 1.0  # deviations above the mean, to count as firing more than in most words
_BATCH = 256


class _Answers(NamedTuple):
    """How strongly each filter fires in each word, and where: (words, filters), all widths side by side."""

    strength: np.ndarray
    place: np.ndarray
    widths: np.ndarray  # (filters,)


def firing_filters(elmo: ElmoEncoder, word: str) -> Results:
    """The filters that a word makes fire more than others do, with the other words in which they fire most.

    First come those whose words have the most letters in common with the piece of this one, and of those with the same
    letters one is taken. Also how many fire so, and in how many the common letters are plain to see. Empty for a model
    that does not read characters.
    """
    encoder = getattr(elmo.bilm.inputs[0], "characters", None)
    if not isinstance(encoder, CharEncoder):
        return {}
    words = [word, *sorted({other for other in chain.from_iterable(bundled_sentences()) if _plain(other)} - {word})]
    answers = _answer(elmo, encoder, words)
    spread = answers.strength.std(axis=0)
    unusual = np.where(spread > 0, (answers.strength[0] - answers.strength.mean(axis=0)) / np.maximum(spread, 1e-9), 0)
    rows = []
    for number in np.argsort(-unusual, kind="stable").tolist():
        if unusual[number] < _UNUSUAL or answers.strength[0, number] <= 0:
            continue
        best = [row for row in np.argsort(-answers.strength[:, number], kind="stable").tolist() if row]
        others = [[words[row], _letters(words[row], answers, row, number)] for row in best[:OTHERS]]
        pattern = common_letters(_letters(word, answers, 0, number), [letters for _, letters in others])
        rows.append({"filter": number, "pattern": pattern, "unusual": float(unusual[number]), "others": others})
    rows.sort(key=lambda row: -_plainness(row["pattern"]))
    different = {row["pattern"]: row for row in reversed(rows) if _plainness(row["pattern"])}
    return {
        "shown": [row for row in rows if different.get(row["pattern"]) is row][:SHOWN],
        "firing": len(rows),
        "plain": sum(_plainness(row["pattern"]) >= PLAIN for row in rows),
    }


def common_letters(piece: str, others: Sequence[str]) -> str:
    """The piece with a dot for each letter that too few of the others have in the same place; none at the ends."""
    return "".join(
        letter if sum(other[place : place + 1] == letter for other in others) >= AGREEING else DOT
        for place, letter in enumerate(piece)
    ).strip(DOT)


def _plainness(pattern: str) -> int:
    """How many letters and marks are in common; none where they are marks alone."""
    return len(pattern.replace(DOT, "")) if pattern.strip(BEGIN + END + DOT) else 0


@torch.inference_mode()
def _answer(elmo: ElmoEncoder, encoder: CharEncoder, words: Sequence[str]) -> _Answers:
    spelt = elmo.words.encode(words)
    if spelt.characters is None or spelt.lengths is None:
        raise AssertionError("a model with character filters spells")
    characters, lengths = torch.from_numpy(spelt.characters[2:]), torch.from_numpy(spelt.lengths[2:])
    device = encoder.embedding.weight.device
    strength, place = [], []
    for first in range(0, len(words), _BATCH):
        some, ends = characters[first : first + _BATCH].to(device), lengths[first : first + _BATCH].to(device)
        embedded = encoder.embedding(some).transpose(1, 2)
        best = []
        for convolution in encoder.convolutions:
            answer = functional.conv1d(embedded, convolution.weight, convolution.bias)  # pyright: ignore
            inside = torch.arange(answer.shape[2], device=device) < ends[:, None]  # a window begins within the word
            best.append(answer.masked_fill(~inside[:, None], -torch.inf).max(dim=2))
        strength.append(torch.cat([each.values for each in best], dim=1).cpu())
        place.append(torch.cat([each.indices for each in best], dim=1).cpu())
    widths = np.repeat(*map(np.array, zip(*encoder.config.filters, strict=True)))
    return _Answers(torch.cat(strength).numpy(), torch.cat(place).numpy(), widths)


def _letters(word: str, answers: _Answers, row: int, number: int) -> str:
    first = int(answers.place[row, number])
    return f"{BEGIN}{word}{END}"[first : first + int(answers.widths[number])]


def _plain(word: str) -> bool:
    return word.isascii() and word.isalpha()
