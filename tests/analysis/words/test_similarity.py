"""Word similarity: Spearman correlation of cosines with human ratings."""

import numpy as np
import pytest
from planted_senses import OneLayer, Planted
from tiny_models import make_encoder

import polyseme
from polyseme.analysis.words.similarity import RatedPair, read_pairs, similarity, spearman
from polyseme.errors import FormatError, InputError, PolysemeError

WORDS = {"cat": (1, 0.1), "dog": (0.9, 0.3), "car": (0, 1), "bus": (0.2, 1), "Tree": (-1, 0)}
PAIRS = [
    RatedPair("cat", "dog", 9),
    RatedPair("car", "bus", 8.5),
    RatedPair("cat", "car", 2),
    RatedPair("cat", "tree", 1),
    RatedPair("cat", "unheard-of", 7),
]


@pytest.fixture
def static(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("".join(f"{word.lower()} {one} {other}\n" for word, (one, other) in WORDS.items()))
    return polyseme.load(path, cache=False)


def write(folder, text):
    (folder / "pairs.txt").write_text(text)
    return folder / "pairs.txt"


@pytest.mark.parametrize(
    "text",
    [
        "tiger\tcat\t7.35\nold\tnew\t-1\n",
        "tiger cat 7.35\r\nold new -1\r\n",
        "Word 1,Word 2,Human (mean)\ntiger,cat,7.35\nold,new,-1\n",
        "word1\tword2\tPOS\tSimLex999\tconc(w1)\ntiger\tcat\tN\t7.35\t5\nold\tnew\tA\t-1\t4\n",
        "\ntiger;cat;7.35;7;8\n\nold;new;-1;1;1\n",
    ],
)
def test_published_layouts_are_read(tmp_path, text):
    assert read_pairs(write(tmp_path, text)) == [RatedPair("tiger", "cat", 7.35), RatedPair("old", "new", -1)]


def test_spearman_equals_scipy_ties_and_all():
    stats = pytest.importorskip("scipy.stats")
    random = np.random.default_rng(0)
    for _ in range(20):
        one, other = random.integers(8, size=(2, 40)).astype(float)
        assert spearman(one, other) == pytest.approx(stats.spearmanr(one, other).statistic)


def test_spearman_of_nothing_that_varies_is_no_number():
    assert np.isnan(spearman(np.ones(3), np.arange(3.0)))
    assert np.isnan(spearman(np.ones(1), np.ones(1)))


def test_unknown_pairs_are_left_out_or_count_as_zero(static):
    (row,) = similarity(static, {"few": PAIRS}).rows
    assert (row.name, row.layer, row.pairs, row.known) == ("few", 0, 5, 4)
    cosines = [np.dot(WORDS[a], WORDS[b]) / np.hypot(*WORDS[a]) / np.hypot(*WORDS[b]) for a, b in
               (("cat", "dog"), ("car", "bus"), ("cat", "car"), ("cat", "Tree"))]  # fmt: skip
    ratings = [pair.rating for pair in PAIRS]
    assert row.spearman == pytest.approx(spearman(np.array(cosines), np.array(ratings[:4])))
    assert row.spearman_all == pytest.approx(spearman(np.array([*cosines, 0]), np.array(ratings)))


def test_a_model_that_spells_knows_every_word():
    rows = similarity(make_encoder(), {"one": PAIRS, "two": PAIRS[:3]}).rows
    assert [(row.name, row.layer) for row in rows] == [(name, layer) for name in ("one", "two") for layer in range(3)]
    assert all(row.known == row.pairs and row.spearman == row.spearman_all for row in rows)


def test_layer_0_alone_runs_no_lstm_and_gives_the_same(monkeypatch):
    encoder = make_encoder()
    every = similarity(encoder, {"few": PAIRS}).rows[0]
    monkeypatch.setattr(type(encoder), "embed", lambda *_: pytest.fail("the LSTM was run"))
    assert similarity(encoder, {"few": PAIRS}, 0).rows[0] == every


def test_other_models_give_a_row_a_layer():
    assert [row.layer for row in similarity(Planted(), {"few": PAIRS}).rows] == [0, 1, 2]
    assert [row.layer for row in similarity(OneLayer(), {"few": PAIRS}).rows] == [0]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", InputError, "is empty; expected two words and a number a line"),
        ("tiger cat\n", FormatError, "has no numbers"),
        ("tiger cat\nold new\n", FormatError, "line 2: expected two words and a number, got 'old new'"),
        ("tiger cat 7\nold new\n", FormatError, "line 2: expected two words and a number"),
        ("tiger cat 7\nold\n", FormatError, "line 2"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(tmp_path, text, error, message):
    with pytest.raises(PolysemeError, match=message) as refused:
        read_pairs(write(tmp_path, text))
    assert isinstance(refused.value, error)
    assert str(tmp_path) in str(refused.value)


def test_empty_sets_are_refused():
    with pytest.raises(InputError, match="no set of rated pairs"):
        similarity(Planted(), {})
    with pytest.raises(InputError, match="the set few has no pairs"):
        similarity(Planted(), {"few": []})


def test_a_long_number_that_is_none_is_no_trap(tmp_path):
    """Quadratic time would show here as a test that does not end."""
    path = tmp_path / "pairs.txt"
    path.write_text(f"tiger\tcat\t{'1' * 400_000}x\t7.5\n")
    assert read_pairs(path) == [RatedPair("tiger", "cat", 7.5)]
