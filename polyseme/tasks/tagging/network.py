"""The tagger's network: the stack of `stack.py`, and a CRF over the labels of a sentence.

Shapes: B sentences, T words of the longest, K labels.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from polyseme.tasks.features.bilstm import StackNetwork, StackSettings
from polyseme.tasks.features.reader import Inputs, Reader
from polyseme.tasks.tagging.crf import Crf
from polyseme.tasks.tagging.schemes import Constraints


@dataclass(frozen=True)
class TaggerSettings(StackSettings):
    """What a tagger is made of: a stack, whose settings these are."""

    cells: int = 128
    layers: int = 1


class TaggerNetwork(StackNetwork):
    """`Inputs` to scores of labels."""

    def __init__(self, settings: TaggerSettings, reader: Reader, constraints: Constraints) -> None:
        super().__init__(settings, reader)
        self.output = nn.Linear(self.dim, len(constraints.start))
        self.crf = Crf(constraints)

    def forward(self, inputs: Inputs) -> Tensor:
        """The scores (B, T, K) of each word's labels."""
        return self.output(self.read(inputs))

    def loss(self, inputs: Inputs, labels: Tensor) -> Tensor:
        """The mean over sentences of the negative log-probability of labels (B, T), and what uneven mixes cost."""
        return self.crf.loss(self(inputs), labels, inputs.mask).mean() + self.penalty()
