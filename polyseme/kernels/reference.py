"""Reference LSTM and character CNN in plain PyTorch, differentiable; every faster kernel is tested against them.

Each is prepared once from weights and then run many times, so that other implementations have a place to keep what they
derive from the weights (packed matrices, a graph).

Shapes: B sentences, T words of the longest, N words in all, C characters, K filters, P dim, H cells, U distinct words.

Matrix libraries compute small products in another order than large ones, so a word's numbers would depend on its
batch. Here every product has at least `min_stable_rows`, padded if need be, and is computed in the one order.

Sentences of unequal length are *packed*: sentences sorted by falling length, the first words of all of them, then the
second words of those that have one, and so on. ``sizes[t]`` sentences have a word at step t: no step works on padding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

# Packed words whose input products are held at a time. It bounds the memory that a very long sentence needs;
# the recurrence continues across the seam, so the numbers do not depend on it.
CHUNK_WORDS = 4096
STEADY_ROWS = 16
STEADY_PRODUCT = 4096  # multiplications
TERMS = 256  # of a sum
MAX_GROUPS = 8  # groups of words by length


class LstmpWeights(NamedTuple):
    """LSTM weights with projection, used as x·W; gates in the order input, forget, candidate, output."""

    input: Tensor  # (P, 4H)
    recurrent: Tensor  # (P, 4H)
    bias: Tensor  # (4H,)
    projection: Tensor | None  # (H, P); without it the output is the cell's own, P = H


class LstmState(NamedTuple):
    """Hidden and cell state of one LSTM layer in one direction, one row per sentence."""

    hidden: Tensor  # (B, P)
    cell: Tensor  # (B, H)


LstmpRun = Callable[[Tensor, Sequence[int], LstmState], tuple[Tensor, LstmState]]
CharCnnRun = Callable[[Tensor, Tensor], Tensor]


def prepare_lstmp(
    weights: LstmpWeights, *, cell_clip: float | None, output_clip: float | None, forget_bias: float, backward: bool
) -> LstmpRun:
    """An LSTM layer with projection, in one direction.

    The function returned takes packed inputs (N, P), sizes, and the state before the first step (the last word's, when
    going backward); it gives packed outputs (N, P) and the state after the final step.
    """
    bias = add_forget_bias(weights.bias, forget_bias)
    projection = weights.projection
    steady = min_stable_rows(*(weight for weight in (weights.recurrent, projection) if weight is not None))

    def step(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        opening, forget, candidate, output = gates.chunk(4, dim=1)
        cell = torch.sigmoid(forget) * cell + torch.sigmoid(opening) * torch.tanh(candidate)
        if cell_clip:
            cell = cell.clamp(-cell_clip, cell_clip)
        hidden = torch.sigmoid(output) * torch.tanh(cell)
        if projection is not None:
            hidden = add_product(hidden.new_zeros(()).expand(len(hidden), projection.shape[1]), hidden, projection)
            if output_clip:
                hidden = hidden.clamp(-output_clip, output_clip)
        return hidden, cell

    def run(inputs: Tensor, sizes: Sequence[int], state: LstmState) -> tuple[Tensor, LstmState]:
        sentences = len(state.hidden)
        hidden, cell = pad_rows(state.hidden, steady), pad_rows(state.cell, steady)
        outputs: list[Tensor] = []
        for begin, end, chunk in _chunks(sizes, backward):
            words = pad_rows(inputs[begin:end], end - begin + steady)
            gates = add_product(bias.expand(len(words), -1), words, weights.input)
            for first, size in chunk:
                rows = slice(0, max(size, steady))
                at_work = add_product(gates[first - begin :][rows], hidden[rows], weights.recurrent)
                stepped_hidden, stepped_cell = step(at_work, cell[rows])
                outputs.append(stepped_hidden[:size])
                hidden, cell = _renew(hidden, stepped_hidden[:size]), _renew(cell, stepped_cell[:size])
        if backward:
            outputs.reverse()
        packed = torch.cat(outputs) if outputs else inputs.new_zeros(0, hidden.shape[1])
        return packed, LstmState(hidden[:sentences], cell[:sentences])

    return run


def prepare_char_cnn(
    filters: Sequence[tuple[Tensor, Tensor]], activation: Callable[[Tensor], Tensor], max_characters: int
) -> CharCnnRun:
    """Character CNN: filters of several widths, max-pooled over the word.

    Args:
        filters: Weight (K, D, width) and bias (K,) of each width.
        activation: Applied after the maximum.
        max_characters: Length that spellings are padded to; windows of padding count in the maximum.

    Returns:
        A function of character vectors (U, C, D), padded, and spelling lengths (U,), U at least one, giving (U, ΣK).
    """
    widest = max(weight.shape[2] for weight, _ in filters)

    def convolve(spellings: Tensor) -> Tensor:
        return torch.cat([activation(_max_pooled_filters(spellings, *pair)) for pair in filters], dim=1)

    def run(spellings: Tensor, lengths: Tensor) -> Tensor:
        # One window of nothing but padding stands for all further ones: shorter spellings need not be padded to the
        # full length. Words of similar length are convolved together, so that "the" is not padded to 50 characters.
        reach = (lengths + widest).clamp(max=max_characters)
        order = torch.argsort(reach, stable=True)
        groups = order.tensor_split(max(1, min(MAX_GROUPS, len(order) // STEADY_ROWS)))
        answers = [convolve(spellings[group, : int(reach[group[-1]])]) for group in groups]
        return torch.cat(answers)[torch.argsort(order)]

    return run


def add_forget_bias(bias: Tensor, forget_bias: float) -> Tensor:
    """The LSTM bias with ``forget_bias`` added to the part of the forget gate."""
    cells = len(bias) // 4
    opener = torch.zeros_like(bias)
    opener[cells : 2 * cells] = forget_bias
    return bias + opener


def add_product(total: Tensor, rows: Tensor, weight: Tensor) -> Tensor:
    """``total + rows @ weight``, summed over a few terms at a time: a recurrence multiplies every rounding error."""
    for first in range(0, len(weight), TERMS):
        total = torch.addmm(total, rows[:, first : first + TERMS], weight[first : first + TERMS])
    return total


def min_stable_rows(*weights: Tensor) -> int:
    """Smallest number of rows at which a product with each of these weights is summed in the order of large ones."""
    return max([STEADY_ROWS, *(STEADY_PRODUCT // weight.numel() + 1 for weight in weights)])


def pad_rows(rows: Tensor, count: int) -> Tensor:
    """Pad with zero rows to at least so many."""
    missing = count - len(rows)
    return rows if missing <= 0 else torch.cat([rows, rows.new_zeros(missing, *rows.shape[1:])])


def _max_pooled_filters(spellings: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Max-pooled filter outputs (U, K) before the activation.

    On a CPU torch's convolution rounds as it did for the peers, which keeps us nearest to their numbers. On a GPU it
    would round to TF32, so plain products over windows of characters take its place.
    """
    if not spellings.is_cuda:
        return F.conv1d(spellings.transpose(1, 2), weight, bias).amax(dim=2)
    windows = spellings.unfold(1, weight.shape[2], 1)  # (U, places, D, width)
    return (windows.flatten(2) @ weight.flatten(1).t()).amax(dim=1) + bias


def _chunks(sizes: Sequence[int], backward: bool) -> Iterator[tuple[int, int, list[tuple[int, int]]]]:
    """Runs of steps with at most CHUNK_WORDS words: where they begin and end, and each step's first row and size."""
    firsts = [0]
    for size in sizes:
        firsts.append(firsts[-1] + size)
    steps = list(zip(firsts, sizes, strict=False))
    if backward:
        steps.reverse()
    chunk: list[tuple[int, int]] = []
    words = 0
    for step in steps:
        if chunk and words + step[1] > CHUNK_WORDS:
            yield *_extent(chunk), chunk
            chunk, words = [], 0
        chunk.append(step)
        words += step[1]
    if chunk:
        yield *_extent(chunk), chunk


def _extent(chunk: list[tuple[int, int]]) -> tuple[int, int]:
    ends = (chunk[0], chunk[-1])
    return min(first for first, _ in ends), max(first + size for first, size in ends)


def _renew(rows: Tensor, head: Tensor) -> Tensor:
    """Replace the first rows: the rest belong to sentences that have ended, or not begun."""
    return head if len(head) == len(rows) else torch.cat([head, rows[len(head) :]])
