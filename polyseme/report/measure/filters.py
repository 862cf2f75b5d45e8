"""Character-CNN filters of an ELMo: which ones a word activates, and which other words activate them."""

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

BEGIN, END = "‹", "›"  # shown for the characters that open and close a word
ANY = "·"  # shown for any letter
SHOWN, OTHERS = 6, 5  # filters, and words for each
AGREEING = 4  # of the other words, for a letter to count as common
VISIBLE = 2  # common letters, for a filter's pattern to count as visible
_UNUSUAL = 1.0  # standard deviations above the mean over words, to count as active
_BATCH = 256


class _Activations(NamedTuple):
    """Max-pooled activation of each filter in each word, and its place: (words, filters), all widths side by side."""

    strength: np.ndarray
    place: np.ndarray
    widths: np.ndarray  # (filters,)


def firing_filters(elmo: ElmoEncoder, word: str) -> Results:
    """Filters that a word activates more than most words do, with the other words that activate them most.

    Filters come first whose words share the most letters with this one; of filters with the same letters, one is kept.
    ``firing`` counts the active filters, ``plain`` those with visible common letters. Empty for a model that does not
    read characters.
    """
    encoder = getattr(elmo.bilm.inputs[0], "characters", None)
    if not isinstance(encoder, CharEncoder):
        return {}
    others = {other for other in chain.from_iterable(bundled_sentences()) if other.isascii() and other.isalpha()}
    words = [word, *sorted(others - {word})]
    found = _activations(elmo, encoder, words)
    spread = found.strength.std(axis=0)
    unusual = np.where(spread > 0, (found.strength[0] - found.strength.mean(axis=0)) / np.maximum(spread, 1e-9), 0)
    rows = []
    for number in np.argsort(-unusual, kind="stable").tolist():
        if unusual[number] < _UNUSUAL or found.strength[0, number] <= 0:
            continue
        best = [row for row in np.argsort(-found.strength[:, number], kind="stable").tolist() if row]
        others = [[words[row], _letters(words[row], found, row, number)] for row in best[:OTHERS]]
        pattern = common_letters(_letters(word, found, 0, number), [letters for _, letters in others])
        rows.append({"filter": number, "pattern": pattern, "unusual": float(unusual[number]), "others": others})
    rows.sort(key=lambda row: -_visible(row["pattern"]))
    different = {row["pattern"]: row for row in reversed(rows) if _visible(row["pattern"])}
    return {
        "shown": [row for row in rows if different.get(row["pattern"]) is row][:SHOWN],
        "firing": len(rows),
        "plain": sum(_visible(row["pattern"]) >= VISIBLE for row in rows),
    }


def common_letters(letters: str, others: Sequence[str]) -> str:
    """Letters with a dot for each that too few of the others have in the same place; no dots at the ends."""
    return "".join(
        letter if sum(other[place : place + 1] == letter for other in others) >= AGREEING else ANY
        for place, letter in enumerate(letters)
    ).strip(ANY)


def _visible(pattern: str) -> int:
    """Number of common letters and marks in a pattern; 0 if there are only marks."""
    return len(pattern.replace(ANY, "")) if pattern.strip(BEGIN + END + ANY) else 0


@torch.inference_mode()
def _activations(elmo: ElmoEncoder, encoder: CharEncoder, words: Sequence[str]) -> _Activations:
    spelt = elmo.words.encode(words)
    if spelt.characters is None or spelt.lengths is None:
        raise AssertionError("a model with character filters encodes characters")
    characters, lengths = torch.from_numpy(spelt.characters[2:]), torch.from_numpy(spelt.lengths[2:])
    device = encoder.embedding.weight.device
    strength, place = [], []
    for first in range(0, len(words), _BATCH):
        batch, ends = characters[first : first + _BATCH].to(device), lengths[first : first + _BATCH].to(device)
        embedded = encoder.embedding(batch).transpose(1, 2)
        best = []
        for convolution in encoder.convolutions:
            response = functional.conv1d(embedded, convolution.weight, convolution.bias)  # pyright: ignore
            inside = torch.arange(response.shape[2], device=device) < ends[:, None]  # windows that start in the word
            best.append(response.masked_fill(~inside[:, None], -torch.inf).max(dim=2))
        strength.append(torch.cat([each.values for each in best], dim=1).cpu())
        place.append(torch.cat([each.indices for each in best], dim=1).cpu())
    widths = np.repeat(*map(np.array, zip(*encoder.config.filters, strict=True)))
    return _Activations(torch.cat(strength).numpy(), torch.cat(place).numpy(), widths)


def _letters(word: str, found: _Activations, row: int, number: int) -> str:
    first = int(found.place[row, number])
    return f"{BEGIN}{word}{END}"[first : first + int(found.widths[number])]
