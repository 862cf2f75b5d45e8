"""The compiled kernels are the reference, faster: the same numbers, whatever a row's company.

Every variant that this processor supports is tested. Numbers are compared with the reference run in doubles, and may be
off by a few times what the reference itself is off by in floats, plus a few roundings: both sum in orders of their own.
"""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.utils.rnn import PackedSequence, pack_sequence, unpack_sequence

from polyseme.kernels import native
from polyseme.kernels.reference import LstmpWeights, LstmState, prepare_char_cnn, prepare_lstmp
from polyseme.model.input import Highway

ROUNDING = float(np.finfo(np.float32).eps)
SLOTS = 4  # vectors of columns that are computed together


def supported():
    """The variants that were compiled here and run here."""
    with pytest.MonkeyPatch.context() as patch:
        for variant in native.VARIANTS:
            patch.setattr(native, "VARIANTS", (variant,))
            native.library.cache_clear()
            if native.library():
                yield variant
    native.library.cache_clear()


VARIANTS = list(supported())
if not VARIANTS:
    pytest.skip("the kernels were not compiled: no compiler at install, or POLYSEME_PURE", allow_module_level=True)


@pytest.fixture(params=VARIANTS, scope="module", autouse=True)
def variant(request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "VARIANTS", (request.param,))
        native.library.cache_clear()
        yield request.param
    native.library.cache_clear()


def claim(examples=25):
    """Hypothesis tries that many cases."""
    return settings(max_examples=examples, deadline=None)


sizes = st.integers(1, 40)  # of a dimension: never mind how long a vector is
seeds = st.integers(0, 2**32 - 1)
orders = st.lists(st.integers(0, 12), min_size=1, max_size=13)  # rows of a batch, picked and mixed


def assert_as_near(got, plain, exact):
    """No further from the exact numbers than plain floats are, but for a few times and a few roundings."""
    got, plain, exact = (np.asarray(numbers, dtype=np.float64) for numbers in (got, plain, exact))
    largest = max(1, np.abs(exact).max(initial=0))
    assert np.abs(got - exact).max(initial=0) <= 4 * np.abs(plain - exact).max(initial=0) + 8 * ROUNDING * largest


def doubles(tensors):
    return [None if tensor is None else tensor.double() for tensor in tensors]


def unpack(packed, groups, width):
    """Columns in the order they came in: a panel holds a few vectors of each group."""
    rows, columns = packed.shape
    share = SLOTS // groups * native.library().vector_length()
    panels = packed.reshape(rows, columns // (groups * share), groups, share).transpose(0, 2, 1, 3)
    return panels.reshape(rows, groups, columns // groups)[:, :, :width].reshape(rows, groups * width)


def multiply(linear, rows, groups=1):
    """What `linear` says, without the columns that mean nothing."""
    return unpack(linear(rows)[:, : linear.matrix.columns], groups, linear.matrix.width)


# ---- sums -------------------------------------------------------------------------------------------------------


@claim()
@given(
    rows=st.integers(0, 13),
    terms=st.one_of(sizes, st.sampled_from([511, 513, 1030])),  # long sums are computed a slice at a time
    width=sizes,
    groups=st.sampled_from([1, 2, 4]),
    seed=seeds,
)
def test_linear_is_torchs(rows, terms, width, groups, seed):
    torch.manual_seed(seed)
    weight, bias, inputs = torch.randn(terms, groups * width), torch.randn(groups * width), torch.randn(rows, terms)
    got = multiply(native.PackedLinear(weight, bias, groups), inputs.numpy(), groups)
    exact = inputs.double() @ weight.double() + bias.double()
    # Each of the terms adds at most half a rounding of what is summed by then.
    summed = inputs.double().abs() @ weight.double().abs() + bias.double().abs()
    assert (np.abs(got - exact.numpy()) <= (terms + 1) * ROUNDING / 2 * summed.numpy()).all()


@claim()
@given(terms=sizes, width=sizes, order=orders, int8=st.booleans(), seed=seeds)
def test_a_row_of_linear_does_not_know_the_others(terms, width, order, int8, seed):
    torch.manual_seed(seed)
    linear = native.PackedLinear(torch.randn(terms, width), torch.randn(width), int8=int8)
    rows = torch.randn(13, terms).numpy()
    np.testing.assert_array_equal(multiply(linear, rows[order]), multiply(linear, rows)[order])


def test_weights_may_lie_in_memory_either_way():
    weight, bias, rows = torch.randn(7, 9), torch.randn(9), torch.randn(3, 7).numpy()
    transposed = weight.t().contiguous().t()
    for int8 in (False, True):
        got = [multiply(native.PackedLinear(way, bias, int8=int8), rows) for way in (weight, transposed)]
        np.testing.assert_array_equal(*got)


# ---- sums of 8 bits ---------------------------------------------------------------------------------------------


def round_columns(weight):
    """Whole numbers up to 127, and what they are to be multiplied with."""
    scales = np.abs(weight).max(axis=0) / np.float32(127)
    return np.rint(np.divide(weight, scales, out=np.zeros_like(weight), where=scales > 0)), scales


def round_rows(rows):
    largest = np.abs(rows).max(axis=1, keepdims=True)
    inverse = np.divide(np.float32(127), largest, out=np.zeros_like(largest), where=largest > 0)
    return np.rint(rows.astype(np.float64) * inverse), largest / np.float32(127)


def product_of_eight(rows, weight):
    """The product of rows and weight, both rounded to 8 bits."""
    (whole_rows, row_scales), (whole_columns, column_scales) = round_rows(rows), round_columns(weight)
    return (whole_rows @ whole_columns) * (row_scales * column_scales).astype(np.float64)


@claim()
@given(
    rows=st.integers(0, 13),
    terms=st.one_of(sizes, st.just(513)),
    width=sizes,
    groups=st.sampled_from([1, 2, 4]),
    seed=seeds,
)
def test_linear_in_eight_bits_rounds_rows_and_columns_and_nothing_else(rows, terms, width, groups, seed):
    torch.manual_seed(seed)
    weight, bias, inputs = torch.randn(terms, groups * width), torch.randn(groups * width), torch.randn(rows, terms)
    got = multiply(native.PackedLinear(weight, bias, groups, int8=True), inputs.numpy(), groups)
    product, bias = product_of_eight(inputs.numpy(), weight.numpy()), bias.numpy()
    # Sums of whole numbers are exact, so what is left is to scale a sum and to add the bias: two roundings at most.
    roundings = np.spacing((np.abs(product) + np.abs(bias)).astype(np.float32))
    assert (np.abs(got - (bias + product)) <= roundings).all()


def test_in_eight_bits_zero_rows_and_zero_columns_give_the_bias():
    torch.manual_seed(0)
    weight, bias, rows = torch.randn(21, 11), torch.randn(11), torch.randn(7, 21)
    weight[:, [0, 5]] = 0
    rows[[0, 3, 6]] = 0
    got = multiply(native.PackedLinear(weight, bias, int8=True), rows.numpy())
    np.testing.assert_array_equal(got[[0, 3, 6]], bias.expand(3, 11))
    np.testing.assert_array_equal(got[:, [0, 5]], bias[[0, 5]].expand(7, 2))


def test_in_eight_bits_the_largest_numbers_are_summed_without_overflow():
    terms = 4096
    for sign in (1, -1):
        linear = native.PackedLinear(sign * torch.ones(terms, 3), torch.zeros(3), int8=True)
        rows = np.array([[1], [-1]], np.float32).repeat(terms, axis=1)
        np.testing.assert_allclose(multiply(linear, rows), sign * rows[:, :3] * terms, rtol=4 * ROUNDING)


# ---- functions of one variable ----------------------------------------------------------------------------------


def every_size():
    """Numbers of all magnitudes, both signs, densely where the functions bend."""
    small = np.geomspace(1e-45, 1e-3, 2000)
    sizes = np.concatenate([[0], small, np.linspace(1e-3, 20, 50_001), np.geomspace(20, 3e38, 500), [np.inf]])
    return np.concatenate([sizes, -sizes]).astype(np.float32)


def assert_within_two_roundings(got, exact):
    allowed = np.maximum(2 * np.spacing(np.abs(exact).astype(np.float32)), 1.5e-7)
    assert (np.abs(got - exact) <= allowed).all()


def test_tanh_is_within_two_roundings():
    numbers = every_size()
    got = numbers.copy()
    native.library().activate(got.ctypes.data, got.size, True)
    assert_within_two_roundings(got, np.tanh(numbers.astype(np.float64)))


def test_sigmoid_is_within_two_roundings():
    """Seen through a highway layer that makes (x, 0) into (·, σ(x))."""
    numbers = every_size()
    numbers = numbers[np.isfinite(numbers)]
    layer = Highway(2)
    with torch.no_grad():
        layer.gate.weight.copy_(torch.tensor([[0.0, 0.0], [1.0, 0.0]]))
        layer.transform.weight.zero_()
        layer.gate.bias.zero_()
        layer.transform.bias.fill_(1)
    rows = np.stack([numbers, np.zeros_like(numbers)], axis=1)
    got = native.PackedHighway(layer.gate, layer.transform)(rows)[:, 1]
    with np.errstate(over="ignore"):
        assert_within_two_roundings(got, 1 / (1 + np.exp(-numbers.astype(np.float64))))


# ---- highway ----------------------------------------------------------------------------------------------------


def make_highway(dim):
    layer = Highway(dim)
    with torch.no_grad():
        for linear in (layer.gate, layer.transform):
            linear.bias.normal_()
    return layer


@claim()
@given(rows=st.integers(0, 13), dim=sizes, seed=seeds)
def test_highway_is_the_models(rows, dim, seed):
    torch.manual_seed(seed)
    layer, inputs = make_highway(dim), torch.randn(rows, dim)
    got = native.PackedHighway(layer.gate, layer.transform)(inputs.numpy())
    with torch.no_grad():
        assert_as_near(got, layer(inputs), layer.double()(inputs.double()))


@claim()
@given(dim=sizes, order=orders, int8=st.booleans(), seed=seeds)
def test_a_row_of_highway_does_not_know_the_others(dim, order, int8, seed):
    torch.manual_seed(seed)
    layer, rows = make_highway(dim), torch.randn(13, dim).numpy()
    highway = native.PackedHighway(layer.gate, layer.transform, int8)
    np.testing.assert_array_equal(highway(rows[order]), highway(rows)[order])


# ---- characters -------------------------------------------------------------------------------------------------

CHARACTERS, PADDING = 30, 29


@st.composite
def spelling_tasks(draw):
    """Filters, and words of all lengths up to the limit: those are cropped, and no window of them is all padding."""
    filters = draw(st.lists(st.tuples(st.integers(1, 7), sizes), min_size=1, max_size=4))
    limit = draw(st.integers(max(width for width, _ in filters), 12))
    lengths = np.array(draw(st.lists(st.integers(1, limit), min_size=13, max_size=30)))
    dim = draw(st.integers(1, 16))
    torch.manual_seed(draw(seeds))
    characters = torch.randint(PADDING, (len(lengths), limit)).numpy()
    characters[np.arange(limit) >= lengths[:, None]] = PADDING
    weights = [(torch.randn(count, dim, width), torch.randn(count)) for width, count in filters]
    return torch.randn(CHARACTERS, dim), weights, limit, characters, lengths


@claim()
@given(spelling_tasks(), st.sampled_from([torch.relu, torch.tanh]))
def test_char_cnn_is_the_reference(task, activation):
    embedding, filters, limit, characters, lengths = task
    got = native.PackedCharCnn(embedding, filters, activation is torch.tanh, limit)(characters, lengths)
    spellings, lengths = embedding[torch.from_numpy(characters)], torch.from_numpy(lengths)
    plain = prepare_char_cnn(filters, activation, limit)(spellings, lengths)
    exact = prepare_char_cnn([doubles(pair) for pair in filters], activation, limit)(spellings.double(), lengths)
    assert_as_near(got, plain, exact)


@claim()
@given(spelling_tasks(), orders, st.booleans())
def test_a_words_characters_do_not_know_other_words(task, order, is_tanh):
    embedding, filters, limit, characters, lengths = task
    convolve = native.PackedCharCnn(embedding, filters, is_tanh, limit)
    np.testing.assert_array_equal(convolve(characters[order], lengths[order]), convolve(characters, lengths)[order])


# ---- the recurrence ---------------------------------------------------------------------------------------------


def make_weights(dim, cells, projected):
    """Of a size at which a rounding error neither grows nor dies from step to step."""
    projection = torch.randn(cells, dim) / cells**0.5 if projected else None
    gates = [torch.randn(dim, 4 * cells) / dim**0.5 for _ in range(2)]
    return LstmpWeights(*gates, torch.randn(4 * cells), projection)


@st.composite
def lstms(draw):
    """Weights and settings."""
    projected, dim = draw(st.booleans()), draw(sizes)
    cells = draw(sizes) if projected else dim
    settings = {
        "cell_clip": draw(st.sampled_from([None, 0.2, 3.0])),
        "output_clip": draw(st.sampled_from([None, 0.1, 3.0])),
        "forget_bias": draw(st.sampled_from([0.0, 1.0])),
        "backward": draw(st.booleans()),
    }
    torch.manual_seed(draw(seeds))
    return make_weights(dim, cells, projected), settings


def carry(rows, weights):
    """A state to go on from."""
    return LstmState(torch.randn(rows, len(weights.recurrent)), torch.randn(rows, len(weights.bias) // 4))


def run(lstm, inputs, sizes, state, places=None):
    """As the reference is run."""
    mine = lstm.initial_state(len(state.hidden))
    mine.hidden[:], mine.cell[:, : lstm.cells] = state.hidden, state.cell
    outputs = lstm(np.asarray(inputs), sizes, mine, places)
    return outputs, LstmState(mine.hidden, mine.cell[:, : lstm.cells])


def read(lstm, sentences, state):
    """Outputs of each sentence and the states after, from sentences in any order."""
    packed = pack_sequence(sentences, enforce_sorted=False)
    given = LstmState(*(part[packed.sorted_indices] for part in state))
    outputs, after = run(lstm, packed.data, packed.batch_sizes.tolist(), given)
    unpacked = unpack_sequence(PackedSequence(torch.from_numpy(outputs), *packed[1:]))
    return unpacked, LstmState(*(part[packed.unsorted_indices.numpy()] for part in after))


def assert_same(one, other):
    """The same outputs and states, bit for bit."""
    for mine, theirs in zip((one[0], *one[1]), (other[0], *other[1]), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def falling(lengths):
    """How many sentences have a word at each step."""
    return [sum(length > step for length in lengths) for step in range(max(lengths, default=0))]


batches = st.lists(st.integers(0, 12), max_size=14).map(falling)
idle = st.integers(0, 3)  # sentences without a word


@claim(40)
@given(lstms(), batches, idle)
def test_lstmp_is_the_reference(lstm, sizes, idle):
    weights, settings = lstm
    state, inputs = carry(max(sizes, default=0) + idle, weights), torch.randn(sum(sizes), len(weights.input))
    got, after = run(native.PackedLstmp(weights, **settings), inputs, sizes, state)
    plain, plain_after = prepare_lstmp(weights, **settings)(inputs, sizes, state)
    exact, exact_after = prepare_lstmp(LstmpWeights(*doubles(weights)), **settings)(
        inputs.double(), sizes, LstmState(*doubles(state))
    )
    for three in zip((got, *after), (plain, *plain_after), (exact, *exact_after), strict=True):
        assert_as_near(*three)


def test_lstmp_of_many_cells_is_the_reference():
    """Sums longer than the slice in which they are computed."""
    torch.manual_seed(0)
    weights = make_weights(dim=5, cells=1030, projected=True)
    settings = {"cell_clip": 3.0, "output_clip": 3.0, "forget_bias": 1.0, "backward": False}
    state, inputs = carry(7, weights), torch.randn(21, 5)
    got, _ = run(native.PackedLstmp(weights, **settings), inputs, [7] * 3, state)
    plain, _ = prepare_lstmp(weights, **settings)(inputs, [7] * 3, state)
    exact, _ = prepare_lstmp(LstmpWeights(*doubles(weights)), **settings)(
        inputs.double(), [7] * 3, LstmState(*doubles(state))
    )
    assert_as_near(got, plain, exact)


@claim()
@given(lstms(), batches, st.sampled_from([1, 9, 2049]), st.booleans())
def test_distinct_words_at_their_places_are_the_words_themselves(lstm, sizes, distinct, int8):
    """Products of a few distinct words are computed once each, those of many in the words' order."""
    weights, settings = lstm
    state, words = carry(max(sizes, default=0), weights), torch.randn(distinct, len(weights.input)).numpy()
    places = torch.randint(distinct, (sum(sizes),), dtype=torch.int32).numpy()
    layer = native.PackedLstmp(weights, **settings, int8=int8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "CHUNK_WORDS", 7)
        assert_same(run(layer, words, sizes, state, places), run(layer, words[places], sizes, state))


@claim()
@given(lstms(), batches, st.sampled_from([1, 2, 7, 30]), st.booleans())
def test_seams_between_chunks_do_not_show(lstm, sizes, chunk, int8):
    weights, settings = lstm
    state, inputs = carry(max(sizes, default=0), weights), torch.randn(sum(sizes), len(weights.input))
    layer = native.PackedLstmp(weights, **settings, int8=int8)
    whole = run(layer, inputs, sizes, state)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "CHUNK_WORDS", chunk)
        assert_same(run(layer, inputs, sizes, state), whole)


@claim()
@given(lstms(), st.lists(st.integers(1, 9), min_size=13, max_size=13), orders, st.booleans())
def test_a_sentence_of_lstmp_does_not_know_the_others(lstm, lengths, order, int8):
    weights, settings = lstm
    state, sentences = carry(13, weights), [torch.randn(length, len(weights.input)) for length in lengths]
    layer = native.PackedLstmp(weights, **settings, int8=int8)
    together, after = read(layer, sentences, state)
    some, some_after = read(layer, [sentences[row] for row in order], LstmState(*(part[order] for part in state)))
    for place, row in enumerate(order):
        np.testing.assert_array_equal(some[place], together[row])
    for one, other in zip(some_after, after, strict=True):
        np.testing.assert_array_equal(one, other[order])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def cells_of_eight(weights, settings, inputs, state):
    """One step up to the projection: the cells, what they let out, and how near one can come to them in floats."""
    gates = product_of_eight(inputs, weights.input.numpy()) + weights.bias.numpy()
    gates += product_of_eight(np.asarray(state.hidden), weights.recurrent.numpy())
    opening, forget, candidate, output = np.split(gates, 4, axis=1)
    cell = sigmoid(forget + settings["forget_bias"]) * np.asarray(state.cell) + sigmoid(opening) * np.tanh(candidate)
    cell = np.clip(cell, -(settings["cell_clip"] or np.inf), settings["cell_clip"] or np.inf)
    # A few roundings of a gate and of a cell; no function here makes a difference larger.
    close = 8 * ROUNDING * (1 + np.abs(gates).max()) * (1 + np.abs(cell).max())
    return cell, sigmoid(output) * np.tanh(cell), close


def project_in_eight(active, weight, close):
    """What was let out, projected, and how near one can come to it, given how near one can come to what was let out.

    What lies half-way between two whole numbers, or so near that `close` decides, may go to either.
    """
    product = product_of_eight(active.astype(np.float32), weight)
    largest, (columns, scales) = np.abs(active).max(axis=1, keepdims=True), round_columns(weight)
    undecided = np.abs(np.abs(active) * 127 / largest % 1 - 0.5) <= 2 * 127 * close / largest
    either = undecided @ np.abs(columns) * scales * largest / 127
    return product, either + close * (1 + np.abs(product) / largest)


@claim()
@given(lstms(), st.integers(1, 13))
def test_lstmp_in_eight_bits_rounds_what_it_multiplies_and_nothing_else(lstm, rows):
    weights, settings = lstm
    layer, state = native.PackedLstmp(weights, **settings, int8=True), carry(rows, weights)
    for _ in range(3):  # steps, each from where the one before has really led
        inputs = torch.randn(rows, layer.dim).numpy()
        cell, expected, close = cells_of_eight(weights, settings, inputs, state)
        got, state = run(layer, inputs, [rows], state)
        assert (np.abs(state.cell - cell) <= close).all()
        if weights.projection is not None:
            expected, close = project_in_eight(expected, weights.projection.numpy(), close)
            expected = np.clip(expected, -(settings["output_clip"] or np.inf), settings["output_clip"] or np.inf)
        assert (np.abs(got - expected) <= close).all()
        np.testing.assert_array_equal(got, state.hidden)


# ---- numbers that are none --------------------------------------------------------------------------------------

INT8_OR_NOT = [False, True]


@pytest.mark.parametrize("number", [np.inf, -np.inf])
@pytest.mark.parametrize("int8", [False, True])
def test_infinity_shows_in_its_row_of_linear_alone(number, int8):
    torch.manual_seed(0)
    linear, rows = native.PackedLinear(torch.randn(21, 11), torch.randn(11), int8=int8), torch.randn(7, 21).numpy()
    expected = multiply(linear, rows)
    rows[3, 5] = number
    got = multiply(linear, rows)
    assert not np.isfinite(got[3]).any()
    np.testing.assert_array_equal(np.delete(got, 3, axis=0), np.delete(expected, 3, axis=0))


@pytest.mark.parametrize("int8", INT8_OR_NOT)
def test_nan_shows_in_its_row_of_linear_alone(int8):
    torch.manual_seed(0)
    linear, rows = native.PackedLinear(torch.randn(21, 11), torch.randn(11), int8=int8), torch.randn(7, 21).numpy()
    rows[3, 5] = np.nan
    np.testing.assert_array_equal(np.isnan(multiply(linear, rows)), np.arange(7)[:, None].repeat(11, axis=1) == 3)


@pytest.mark.parametrize("int8", INT8_OR_NOT)
def test_nan_shows_in_its_row_of_highway_alone(int8):
    torch.manual_seed(0)
    layer, rows = make_highway(21), torch.randn(7, 21).numpy()
    highway = native.PackedHighway(layer.gate, layer.transform, int8)
    rows[3, 5] = np.nan
    np.testing.assert_array_equal(np.isnan(highway(rows)), np.arange(7)[:, None].repeat(21, axis=1) == 3)


@pytest.mark.parametrize("activation", [torch.relu, torch.tanh])
def test_nan_shows_in_the_words_that_have_its_character_alone(activation):
    torch.manual_seed(0)
    embedding, filters = torch.randn(CHARACTERS, 4), [(torch.randn(5, 4, width), torch.randn(5)) for width in (1, 3)]
    embedding[7] = np.nan
    characters = np.full((5, 12), PADDING)
    characters[:, :9] = 10 + np.arange(9)
    characters[[0, 2, 4], [0, 3, 8]] = 7
    got = native.PackedCharCnn(embedding, filters, activation is torch.tanh, 12)(characters, np.full(5, 9))
    np.testing.assert_array_equal(np.isnan(got), np.arange(5)[:, None].repeat(10, axis=1) % 2 == 0)


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("int8", INT8_OR_NOT)
def test_what_is_no_number_shows_in_its_sentence_alone(number, int8, backward):
    torch.manual_seed(0)
    weights = make_weights(dim=9, cells=21, projected=True)
    settings = {"cell_clip": 3.0, "output_clip": 3.0, "forget_bias": 1.0, "backward": backward}
    layer, state = native.PackedLstmp(weights, **settings, int8=int8), carry(7, weights)
    inputs = torch.randn(5, 7, 9)
    clean, _ = run(layer, inputs.flatten(0, 1), [7] * 5, state)
    inputs[2, 3, 4] = number
    got, _ = run(layer, inputs.flatten(0, 1), [7] * 5, state)
    got, clean = got.reshape(5, 7, 9), clean.reshape(5, 7, 9)
    read_since = slice(None, 3) if backward else slice(2, None)
    if np.isnan(number) or int8:  # infinity opens or closes a gate for good, but has no 8-bit scale
        assert np.isnan(got[read_since, 3]).all()
    else:
        plain, _ = prepare_lstmp(weights, **settings)(inputs.flatten(0, 1), [7] * 5, state)
        np.testing.assert_allclose(got, plain.reshape(5, 7, 9), rtol=0, atol=64 * ROUNDING)
    got[read_since, 3] = clean[read_since, 3]
    np.testing.assert_array_equal(got, clean)
