"""The network for pairs: each sentence is read, aligned with the other, compared, and read again (as in ESIM).

Shapes: B pairs, T words of the longest sentence, K numbers of the answer, D dim.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from polyseme.tasks.features.bilstm import StackNetwork, StackSettings, Where, make_lstm, read_both_ways
from polyseme.tasks.features.mixing import MixSettings
from polyseme.tasks.features.pooling import align, max_pool, mean_pool
from polyseme.tasks.features.reader import Inputs, Reader
from polyseme.tasks.fitting.settings import check_choice, check_range
from polyseme.tasks.sentences.objective import ExampleNetwork


@dataclass(frozen=True)
class PairsSettings(StackSettings):
    """What a model of pairs is made of: a stack that reads both sentences, and what comes after it.

    Attributes:
        answer: ``label`` for entailment or paraphrase, ``number`` for relatedness.
        where: Where the contextual vectors enter; sentences are aligned by what comes out, so they belong there too.
        cells: Of each direction of each LSTM layer, the one that reads what was compared among them.
        layers: LSTM layers before the comparison.
        dropout: On word vectors and spellings, on what every LSTM layer gives, and between the layers after them.
        mix: What is made of the encoders' layers.
        hidden: Of what is compared, and of the layer before the answer.
    """

    answer: Literal["label", "number"] = "label"
    where: Where = "both"
    cells: int = 100
    layers: int = 1
    dropout: float = 0.2
    mix: MixSettings = field(default_factory=lambda: MixSettings(dropout=0.2))
    hidden: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "answer", ("label", "number"))
        check_range(self, "hidden", 1, 1 << 16)


class PairsNetwork(StackNetwork, ExampleNetwork):
    """`Inputs` of all first sentences and then all second ones to numbers of the answer."""

    def __init__(self, settings: PairsSettings, reader: Reader, answer: int) -> None:
        super().__init__(settings, reader)
        self.compare = nn.Linear(4 * self.dim, settings.hidden)
        self.second = make_lstm(settings.hidden, settings.cells)
        self.hidden = nn.Linear(4 * 4 * settings.cells, settings.hidden)
        self.output = nn.Linear(settings.hidden, answer)

    def forward(self, inputs: Inputs) -> Tensor:
        """The numbers (B, K)."""
        words = self.read(inputs)
        one, other = words.chunk(2)
        aligned = torch.cat(align(one, other, inputs.mask.chunk(2)))  # pyright: ignore[reportArgumentType]
        compared = self.compare(torch.cat([words, aligned, words - aligned, words * aligned], dim=2))
        read = self.dropout(read_both_ways(self.second, self.dropout(torch.relu(compared)), inputs.lengths))
        first, second = torch.cat([mean_pool(read, inputs.mask), max_pool(read, inputs.mask)], dim=1).chunk(2)
        pooled = torch.cat([first, second, (first - second).abs(), first * second], dim=1)
        return self.output(self.dropout(torch.tanh(self.hidden(self.dropout(pooled)))))
