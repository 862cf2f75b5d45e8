import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import make_encoder

from polyseme.embedding.batching import batches, compute_in_order, numbered_windows, windows
from polyseme.embedding.interfaces import EmbedSettings
from polyseme.embedding.layers import STRATEGIES, Mix, choose, layers_of, parse_choice, pool
from polyseme.errors import ConfigError, InputError
from polyseme.model.scalar_mix import ScalarMix

VECTORS = np.arange(24, dtype=np.float32).reshape(3, 4, 2)


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        ("He sat", "got a bare string, 'He sat', where a list of words belongs"),
        (["He sat"], "sentence 0 is a bare string, 'He sat'"),
        ([["He"], ["sat", 3]], "sentence 1, word 1 should be a string, not int: 3"),
        ([["He"], [["sat"]]], "sentence 1, word 0 should be a string, not list"),
        ([["He"], 7], "sentence 1 should be a list of words, not int"),
        ([[b"He"]], "not bytes"),
        ([["He", None]], "not NoneType"),
    ],
)
def test_what_is_no_sentence_is_refused_with_the_remedy(encoder, sentences, message):
    with pytest.raises(InputError) as caught:
        list(encoder.embed(sentences))
    assert message in str(caught.value)


def test_a_stream_is_taken_as_needed(encoder):
    taken = []

    def stream():
        for number in itertools.count():
            taken.append(number)
            yield ["word"] * 10

    encoder.settings = EmbedSettings(word_budget=20)
    for _ in itertools.islice(encoder.embed(stream()), 50):
        pass
    assert len(taken) < 100


def test_text_gives_words_their_places_and_vectors(encoder):
    text = "She put her book in my bag yesterday. It wasn't heavy."
    pieces = list(encoder.embed_text(text))
    assert [piece.words for piece in pieces] == [
        ["She", "put", "her", "book", "in", "my", "bag", "yesterday", "."],
        ["It", "was", "n't", "heavy", "."],
    ]
    for piece in pieces:
        assert [text[start:end] for start, end in piece.spans] == piece.words
        np.testing.assert_array_equal(piece.vectors, next(encoder.embed([piece.words])))
    assert list(encoder.embed_text(" \n ")) == []
    with pytest.raises(InputError, match="embed_text takes one string"):
        encoder.embed_text(["She"])


def test_several_processes_give_the_same():
    sentences = [[f"w{number}", "and", "more"] * (number % 5) for number in range(40)]
    encoder = make_encoder()
    expected = list(encoder.embed(sentences))
    encoder.settings = EmbedSettings(word_budget=16, workers=2)
    for vectors, reference in zip(encoder.embed(sentences), expected, strict=True):
        np.testing.assert_allclose(vectors, reference, rtol=0, atol=1e-6)


def test_a_fault_in_the_stream_reaches_the_caller_of_several_processes():
    encoder = make_encoder()
    encoder.settings = EmbedSettings(word_budget=4, workers=2)
    with pytest.raises(InputError, match="sentence 9 is a bare string"):
        list(encoder.embed([*[["fine"]] * 9, "bad"]))


@pytest.mark.parametrize(
    "wrong", [{"word_budget": 0}, {"workers": 0}, {"word_budget": 2.5}, {"dtype": "float"}, {"dtype": "int8"}]
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        EmbedSettings(**wrong)


def test_layers_are_chosen():
    assert choose(VECTORS, "all") is VECTORS
    np.testing.assert_array_equal(choose(VECTORS, "top"), VECTORS[2])
    np.testing.assert_array_equal(choose(VECTORS, 1), VECTORS[1])
    np.testing.assert_array_equal(choose(VECTORS, "average"), VECTORS.mean(axis=0))
    np.testing.assert_allclose(choose(VECTORS, Mix((0.5, 0.5, 0.0), gamma=2)), VECTORS[0] + VECTORS[1])


def test_the_bert_paper_s_six_strategies():
    vectors = np.random.default_rng(0).normal(size=(6, 4, 2)).astype(np.float32)
    expected = {
        "embeddings": vectors[0],
        "second-to-last": vectors[4],
        "last": vectors[5],
        "weighted-sum-last-four": vectors[2:].mean(axis=0),
        "concat-last-four": np.concatenate([vectors[2], vectors[3], vectors[4], vectors[5]], axis=1),
        "weighted-sum-all": vectors[1:].mean(axis=0),
    }
    assert list(STRATEGIES) == list(expected)
    for name, chosen in expected.items():
        np.testing.assert_allclose(choose(vectors, parse_choice(name)), chosen, rtol=0, atol=1e-6)
        assert choose(vectors[:, :0], name).shape == (0, chosen.shape[1])


def test_a_task_learns_the_weights_of_the_layers_that_a_strategy_takes():
    assert [layers_of(name, 13) for name in STRATEGIES] == [
        slice(0, 1),
        slice(11, 12),
        slice(12, 13),
        slice(9, 13),
        slice(9, 13),
        slice(1, 13),
    ]
    layers, mask = torch.randn(2, 13, 5, 3), torch.ones(2, 5, dtype=torch.bool)
    last_four = layers_of("weighted-sum-last-four", 13)
    mixed = ScalarMix(num_layers=4)(layers[:, last_four], mask)
    torch.testing.assert_close(mixed, layers[:, 9:].mean(dim=1))


@pytest.mark.parametrize(
    ("name", "layers"),
    [("second-to-last", 2), ("weighted-sum-last-four", 4), ("concat-last-four", 4), ("weighted-sum-all", 1)],
)
def test_strategies_that_need_more_layers_are_refused(name, layers):
    with pytest.raises(ConfigError, match="needs more layers"):
        layers_of(name, layers)
    assert layers_of(name, layers + 1).start == 1
    with pytest.raises(ConfigError, match="Did you mean 'concat-last-four'"):
        layers_of("concat-last-for", 13)


@pytest.mark.parametrize("choice", [3, -1, "topp", Mix((1.0,)), 1.5])
def test_layers_that_are_not_there_are_refused(choice):
    with pytest.raises(ConfigError):
        choose(VECTORS, choice)


@pytest.mark.parametrize(
    ("text", "choice"), [("all", "all"), ("2", 2), ("-1", -1), ("0.2,0.3,0.5", Mix((0.2, 0.3, 0.5), 1.0))]
)
def test_choices_are_read_as_typed(text, choice):
    assert parse_choice(text) == choice


@pytest.mark.parametrize("text", ["averge", "", "1.5", "a,b"])
def test_choices_that_mean_nothing_are_refused(text):
    with pytest.raises(ConfigError, match="layers must be"):
        parse_choice(text)


def test_pooling_is_over_words():
    np.testing.assert_array_equal(pool(VECTORS, "mean"), VECTORS.mean(axis=1))
    np.testing.assert_array_equal(pool(VECTORS[2], "max"), VECTORS[2, 3])
    assert not pool(VECTORS[:, :0], "mean").any()
    with pytest.raises(ConfigError, match="Did you mean 'mean'"):
        pool(VECTORS, "meen")


@given(st.lists(st.integers(1, 30)), st.integers(1, 50))
def test_batches_hold_everything_once_and_stay_within_the_budget(sizes, budget):
    found = list(batches(sizes, budget))
    assert sorted(number for batch in found for number in batch) == list(range(len(sizes)))
    assert all(len(batch) == 1 or sum(sizes[number] for number in batch) <= budget for batch in found)


@given(st.lists(st.integers(1, 30)), st.integers(1, 50))
def test_results_come_in_the_order_of_the_items(sizes, budget):
    def begin(batch):
        return lambda: [size * 10 for size in batch]

    assert compute_in_order(sizes, int, budget, begin) == [size * 10 for size in sizes]


def test_a_batch_is_begun_before_the_one_before_is_waited_for():
    seen = []

    def begin(batch):
        seen.append(("begun", batch))
        return lambda: seen.append(("waited", batch)) or batch

    compute_in_order([3, 2, 1], int, 3, begin)
    assert seen == [("begun", [3]), ("begun", [2, 1]), ("waited", [3]), ("waited", [2, 1])]


SENTENCES = st.lists(st.lists(st.text(max_size=3), max_size=6), max_size=20)


@given(SENTENCES, st.integers(1, 30))
def test_numbered_sentences_are_the_sentences(sentences, limit):
    found = list(numbered_windows(sentences, limit))
    assert [[window.words[number] for number in ids] for window in found for ids in window] == sentences


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        ([["a"], ["b", 3]], "sentence 1, word 1 should be a string, not int"),
        ([["a"], ["b", ["c"]]], "sentence 1, word 1 should be a string, not list"),
        ([["a"], "bare"], "sentence 1 is a bare string"),
        ([["a"], 7], "sentence 1 should be a list of words, not int"),
        ("bare", "a bare string"),
    ],
)
def test_numbering_says_which_word_is_wrong(sentences, message):
    with pytest.raises(InputError, match=message):
        list(numbered_windows(sentences, 100))


@given(st.lists(st.integers(0, 30)), st.integers(1, 50))
def test_windows_cut_the_stream_and_lose_nothing(sizes, limit):
    found = list(windows(sizes, int, limit))
    assert [size for window in found for size in window] == sizes
    assert all(sum(window[:-1]) < limit for window in found)


def test_a_mix_may_be_given_before_the_softmax():
    weights = np.array(Mix.from_scores([1.0, 2.0, 3.0], gamma=0.5).weights)
    np.testing.assert_allclose(weights, np.exp([1.0, 2.0, 3.0]) / np.exp([1.0, 2.0, 3.0]).sum())


def test_words_alone_are_the_context_free_layer(encoder):
    words = ["He", "sat", "on", "the", "bank", "the"]
    np.testing.assert_array_equal(encoder.embed_words(words), next(encoder.embed([words]))[0])
    encoder.settings = EmbedSettings(word_budget=2)
    np.testing.assert_array_equal(encoder.embed_words(words), next(encoder.embed([words]))[0])
    assert encoder.embed_words([]).shape == (0, 12)
