"""The character CNN as a CPU trains it: one product for the filters of all widths, over windows of characters.

Narrow filters are filled up with zeros to the widest, which wastes a third of the multiplications and saves the rest:
torch's convolution takes several times as long, its gradient above all.

Shapes: U distinct words, C characters, D dim of a character, K filters in all, W the widest of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from polyseme.kernels.reference import MAX_GROUPS
from polyseme.kernels.spelled_words import joined_filters

SMALLEST_GROUP = 16


def answers_of_windows(
    spellings: Tensor, lengths: Tensor, table: Tensor, filters: Sequence[tuple[Tensor, Tensor]]
) -> Tensor:
    """Each filter's largest answer to each word (U, K), before the activation.

    Args:
        spellings: Character ids (U, C), padded. Spellings must leave room for a window of nothing but padding.
        lengths: Characters of each before padding (U,).
        table: Vectors of the characters (characters, D).
        filters: Weight (K, D, width) and bias (K,) of each width.
    """
    matrix = joined_filters([weight for weight, _ in filters])
    widest = matrix.shape[0] // table.shape[1]
    order = torch.argsort(lengths, stable=True)
    groups = order.tensor_split(max(1, min(MAX_GROUPS, len(order) // SMALLEST_GROUP)))
    longest = lengths[torch.stack([group[-1] for group in groups])].tolist()
    answers = []
    for group, length in zip(groups, longest, strict=True):
        windows = spellings[group, : length + widest].unfold(1, widest, 1)  # one of padding alone stands for all
        scores = F.embedding(windows, table).flatten(2) @ matrix
        answers.append(scores.max(dim=1).values)
    return torch.cat(answers)[torch.argsort(order)] + torch.cat([bias for _, bias in filters])
