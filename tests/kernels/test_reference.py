"""The reference kernels are the textbook's equations."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from polyseme.kernels.reference import LstmpWeights, LstmState, prepare_char_cnn, prepare_lstmp


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def textbook(weights, sentence, hidden, cell, cell_clip, output_clip, forget_bias):
    """One sentence, word by word, in double precision."""
    w, r, b, p = (None if t is None else t.double().numpy() for t in weights)
    outputs = []
    for x in sentence:
        i, f, g, o = np.split(x @ w + hidden @ r + b, 4)
        cell = sigmoid(f + forget_bias) * cell + sigmoid(i) * np.tanh(g)
        cell = cell if cell_clip is None else np.clip(cell, -cell_clip, cell_clip)
        hidden = sigmoid(o) * np.tanh(cell)
        if p is not None:
            hidden = hidden @ p
            hidden = hidden if output_clip is None else np.clip(hidden, -output_clip, output_clip)
        outputs.append(hidden)
    return np.array(outputs).reshape(len(sentence), -1), hidden, cell


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=20),
    seed=st.integers(0, 99),
    cell_clip=st.sampled_from([None, 0.2, 3.0]),
    output_clip=st.sampled_from([None, 0.1, 3.0]),
    backward=st.booleans(),
    projected=st.booleans(),
    chunk=st.sampled_from([1, 3, 4096]),
)
def test_lstmp_is_the_textbook(lengths, seed, cell_clip, output_clip, backward, projected, chunk):
    torch.manual_seed(seed)
    lengths = sorted(lengths, reverse=True)
    dim, cells = (3, 5) if projected else (4, 4)
    projection = torch.randn(cells, dim) if projected else None
    weights = LstmpWeights(torch.randn(dim, 4 * cells), torch.randn(dim, 4 * cells), torch.randn(4 * cells), projection)
    sentences = [torch.randn(length, dim) for length in lengths]
    sizes = [sum(length > step for length in lengths) for step in range(lengths[0])]
    packed = torch.cat([torch.stack([s[step] for s in sentences[:size]]) for step, size in enumerate(sizes)])
    state = LstmState(torch.randn(len(lengths), dim), torch.randn(len(lengths), cells))
    run = prepare_lstmp(weights, cell_clip=cell_clip, output_clip=output_clip, forget_bias=1.0, backward=backward)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("polyseme.kernels.reference.CHUNK_WORDS", chunk)
        outputs, after = run(packed, sizes, state)
    firsts = np.cumsum([0, *sizes])
    for row, sentence in enumerate(sentences):
        words = sentence.double().numpy()
        expected, hidden, cell = textbook(
            weights,
            words[::-1] if backward else words,
            state.hidden[row].double().numpy(),
            state.cell[row].double().numpy(),
            cell_clip,
            output_clip,
            1.0,
        )
        expected = expected[::-1] if backward else expected
        got = outputs[[firsts[step] + row for step in range(len(sentence))]]
        np.testing.assert_allclose(got, expected, atol=2e-5)
        np.testing.assert_allclose(after.hidden[row], hidden, atol=2e-5)
        np.testing.assert_allclose(after.cell[row], cell, atol=2e-5)


@pytest.mark.filterwarnings("ignore:LSTM with projections")
def test_lstmp_without_clips_is_torchs_own():
    torch.manual_seed(0)
    lstm = nn.LSTM(3, 7, proj_size=3)
    weights = LstmpWeights(
        lstm.weight_ih_l0.t(), lstm.weight_hh_l0.t(), lstm.bias_ih_l0 + lstm.bias_hh_l0, lstm.weight_hr_l0.t()
    )
    run = prepare_lstmp(weights, cell_clip=None, output_clip=None, forget_bias=0.0, backward=False)
    inputs = torch.randn(11, 4, 3)
    outputs, state = run(inputs.flatten(0, 1), [4] * 11, LstmState(torch.zeros(4, 3), torch.zeros(4, 7)))
    expected, (hidden, cell) = lstm(inputs)
    torch.testing.assert_close(outputs, expected.flatten(0, 1))
    torch.testing.assert_close(state.hidden, hidden[0])
    torch.testing.assert_close(state.cell, cell[0])


@settings(max_examples=40, deadline=None)
@given(lengths=st.lists(st.integers(2, 12), min_size=16, max_size=60), seed=st.integers(0, 99))
def test_char_cnn_equals_a_convolution_over_the_full_padded_width(lengths, seed):
    torch.manual_seed(seed)
    filters = [(torch.randn(5, 3, width), torch.randn(5)) for width in (1, 3, 4)]
    padding = torch.randn(3)
    spellings = torch.randn(len(lengths), 12, 3)
    for word, length in enumerate(lengths):
        spellings[word, length:] = padding
    got = prepare_char_cnn(filters, torch.tanh, 12)(spellings, torch.tensor(lengths))
    full = [torch.conv1d(spellings.transpose(1, 2), w, b).amax(dim=2) for w, b in filters]
    torch.testing.assert_close(got, torch.tanh(torch.cat(full, dim=1)))
