"""Sentences as numbers of words, one after the other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from polyseme.backends.elmo.word_table import BOUNDARIES

OPENING, CLOSING = 0, 1  # numbers of the words that open and close a sentence


class Text(NamedTuple):
    """Sentences, one after the other."""

    places: np.ndarray  # (N,) which word stands there
    lengths: np.ndarray  # (B,)


def surround(text: Text) -> Text:
    """The same with the words that open and close a sentence."""
    begins = np.cumsum(text.lengths + BOUNDARIES) - text.lengths - BOUNDARIES
    places = np.empty(len(text.places) + BOUNDARIES * len(text.lengths), text.places.dtype)
    places[begins] = OPENING
    places[begins + text.lengths + 1] = CLOSING
    inner = np.ones(len(places), bool)
    inner[begins] = inner[begins + text.lengths + 1] = False
    places[inner] = text.places
    return Text(places, text.lengths + BOUNDARIES)
