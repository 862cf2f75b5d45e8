"""Sentences are packed as torch packs them."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.utils.rnn import pack_padded_sequence

from polyseme.backends.elmo.packing import pack

lengths_of_sentences = st.lists(st.integers(0, 9), max_size=30)
claim = settings(max_examples=50, deadline=None)


@claim
@given(lengths_of_sentences)
def test_packed_words_stand_in_torchs_order(lengths):
    packing = pack(lengths)
    present = packing.order[: sum(length > 0 for length in lengths)]  # torch knows no sentence without words
    words = torch.arange(len(lengths) * 9).reshape(len(lengths), 9)
    if len(present):
        packed = pack_padded_sequence(words[present], torch.tensor(lengths)[present], batch_first=True)
        data, sizes = packed.data.numpy(), packed.batch_sizes.numpy()
    else:
        data = sizes = np.zeros(0)
    np.testing.assert_array_equal(words.numpy()[packing.order[packing.rows], packing.steps], data)
    np.testing.assert_array_equal(packing.sizes, sizes)


@claim
@given(lengths_of_sentences)
def test_sentences_go_by_falling_length_and_else_stay_in_order(lengths):
    assert pack(lengths).order.tolist() == sorted(range(len(lengths)), key=lambda sentence: -lengths[sentence])
