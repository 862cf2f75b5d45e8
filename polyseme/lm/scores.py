"""How likely the words of a sentence are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyseme.text.vocabulary import BOS, EOS


@dataclass(frozen=True)
class Score:
    """Log-probabilities (natural logarithms) of a sentence's words, each given what its direction has read by then.

    Both arrays are in the order of the sentence, n + 1 numbers for n words. Forward, number i is the log-probability
    of word i given the words before it, and the last that of the sentence ending there. Backward, the first is that of
    the sentence beginning there, and number i + 1 is word i's given the words after it. `forward_words` and
    `backward_words` say so. A word that the head does not know counts as ``<UNK>``: its number is that of any unknown
    word.

    Attributes:
        words: The sentence.
        forward: One for each of `forward_words`; None where the model does not read forward.
        backward: One for each of `backward_words`; None where the model does not read backward.
    """

    words: tuple[str, ...]
    forward: np.ndarray | None
    backward: np.ndarray | None

    @property
    def forward_words(self) -> tuple[str, ...]:
        """What the forward numbers belong to: the words, then the closing boundary."""
        return (*self.words, EOS)

    @property
    def backward_words(self) -> tuple[str, ...]:
        """What the backward numbers belong to: the opening boundary, then the words."""
        return (BOS, *self.words)

    @property
    def forward_sum(self) -> float | None:
        """Log-probability of the sentence, read forward."""
        return None if self.forward is None else float(self.forward.sum(dtype=np.float64))

    @property
    def backward_sum(self) -> float | None:
        """Log-probability of the sentence, read backward."""
        return None if self.backward is None else float(self.backward.sum(dtype=np.float64))
