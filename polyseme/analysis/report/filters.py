"""Which of a model's character filters fire in a word, and where else they do."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional

from polyseme.analysis.report.store import Found
from polyseme.analysis.uses import bundled_sentences
from polyseme.backends.elmo import ElmoEncoder
from polyseme.model.input import CharEncoder

BEGIN, END = "‹", "›"  # how the marks around a spelling are shown
SHOWN, OTHERS = 6, 5
_BATCH = 256


class _Answers(NamedTuple):
    """How strongly each filter fires in each word, and where: (words, filters), all widths side by side."""

    strength: np.ndarray
    place: np.ndarray
    widths: np.ndarray  # (filters,)


def firing_filters(elmo: ElmoEncoder, word: str) -> list[Found]:
    """The filters that a word makes fire more than others do, with other words in which they fire as much.

    Of filters at the same letters, one is taken. Empty for a model that does not read characters, or whose spelling is
    not one character a letter.
    """
    encoder = getattr(elmo.bilm.inputs[0], "characters", None)
    if not isinstance(encoder, CharEncoder):
        return []
    words = [word, *sorted({other for other in chain.from_iterable(bundled_sentences()) if _plain(other)} - {word})]
    answers = _answer(elmo, encoder, words)
    spread = answers.strength.std(axis=0)
    unusual = np.where(spread > 0, (answers.strength[0] - answers.strength.mean(axis=0)) / np.maximum(spread, 1e-9), 0)
    found, seen = [], set()
    for number in np.argsort(-unusual, kind="stable").tolist():
        letters = _letters(word, answers, 0, number)
        if letters in seen or answers.strength[0, number] <= 0:
            continue
        seen.add(letters)
        best = [row for row in np.argsort(-answers.strength[:, number], kind="stable").tolist() if row]
        others = [[words[row], _letters(words[row], answers, row, number)] for row in best[:OTHERS]]
        found.append({"filter": number, "letters": letters, "unusual": float(unusual[number]), "others": others})
        if len(found) == SHOWN:
            break
    return found


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
