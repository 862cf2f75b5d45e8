import pytest
import torch
from torch.nn import functional as F

from polyseme.kernels.char_cnn import char_cnn_on_gpu
from polyseme.kernels.reference import prepare_char_cnn

FILTERS = ((1, 3), (2, 4), (5, 6))
MOST = 12


def make_words(seed, count, longest=MOST):
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(2, longest + 1, (count,), generator=generator)
    spellings = torch.randint(1, 30, (count, MOST), generator=generator)
    spellings[torch.arange(MOST) >= lengths.unsqueeze(1)] = 0
    return spellings, lengths


def make_weights(seed, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    table = torch.randn(30, 4, generator=generator, dtype=dtype).requires_grad_()
    filters = [
        (
            torch.randn(count, 4, width, generator=generator, dtype=dtype).requires_grad_(),
            torch.randn(count, generator=generator, dtype=dtype).requires_grad_(),
        )
        for width, count in FILTERS
    ]
    return table, filters


@pytest.mark.parametrize("seed", range(5))
def test_words_of_any_length_are_answered_as_by_the_convolution(seed):
    spellings, lengths = make_words(seed, 40)
    table, filters = make_weights(seed)
    expected = prepare_char_cnn(filters, torch.relu, MOST)(F.embedding(spellings, table), lengths)
    found = torch.relu(char_cnn_on_gpu(spellings, lengths, table, filters))
    torch.testing.assert_close(found, expected)
    change = torch.randn_like(found)
    leaves = [table, *(part for pair in filters for part in pair)]
    for one, other in zip(
        torch.autograd.grad(found, leaves, change), torch.autograd.grad(expected, leaves, change), strict=True
    ):
        torch.testing.assert_close(one, other)


def test_one_word_as_long_as_a_spelling_can_be():
    spellings, lengths = torch.randint(1, 30, (1, MOST)), torch.tensor([MOST])
    table, filters = make_weights(0)
    expected = prepare_char_cnn(filters, torch.tanh, MOST)(F.embedding(spellings, table), lengths)
    torch.testing.assert_close(torch.tanh(char_cnn_on_gpu(spellings, lengths, table, filters)), expected)
