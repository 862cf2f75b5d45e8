"""Measurements of the report, their statistics and their store."""

import numpy as np
import pytest
from planted_senses import Planted
from report_data import make_data

from polyseme.report.measure.filters import common_letters
from polyseme.report.measure.result_store import ResultStore
from polyseme.report.measure.separation import cosine_auc
from polyseme.report.measure.statistics import bootstrap_interval, sign_test


def test_the_sign_test_counts_only_where_the_two_differ():
    wins = np.array([True] * 5 + [True] * 90)
    none = np.array([False] * 5 + [True] * 90)
    assert sign_test(wins, none) == pytest.approx(2 / 2**5)
    assert sign_test(none, wins) == pytest.approx(2 / 2**5)
    assert sign_test(wins, wins) == 1
    many = np.arange(40_000) % 3 > 0
    assert sign_test(many, ~many) < 1e-300


def test_an_interval_holds_what_it_is_of_and_is_drawn_the_same_again():
    values = np.random.default_rng(0).normal(3, 1, 200)
    first, second = (bootstrap_interval(lambda drawn: float(values[drawn].mean()), 200, 7) for _ in range(2))
    assert first == second
    assert first[0] < values.mean() < first[1]
    assert first[1] - first[0] == pytest.approx(2 * 1.96 / 200**0.5, rel=0.2)


def test_senses_that_point_apart_win_every_comparison_and_equal_vectors_none():
    labels = np.array([0, 0, 0, 1, 1])
    apart = np.eye(2)[labels] + 0.01 * np.random.default_rng(0).normal(size=(5, 2))
    assert cosine_auc(apart, labels) == 1
    assert cosine_auc(np.ones((5, 3)), labels) == 0.5


def test_numbers_are_those_of_the_probe_command(tmp_path):
    from polyseme.analysis.layers.probe import ProbeSettings, probe
    from polyseme.report.measure.grammar import TEST, TRAIN
    from polyseme.report.measure.probing import embed_words, fit_and_predict, is_correct, one_layer, words_and_labels
    from polyseme.text.conll import LabelSpec, read_labelled

    data, model = make_data(tmp_path), Planted()
    train, test = (list(read_labelled(data / name, LabelSpec("upos"))) for name in (TRAIN, TEST))
    known, asked = (
        (embed_words(model, words_and_labels(part)[0]), words_and_labels(part)[1]) for part in (train, test)
    )  # pyright: ignore
    ours = is_correct(fit_and_predict(known, asked, one_layer(1)), asked[1]).mean()
    theirs = probe(model, train, test, ProbeSettings(layers=1, control=False)).layers[0].accuracy
    assert ours == pytest.approx(theirs)
    assert 0 < ours < 1


def test_what_is_stored_comes_back_as_it_was_given(tmp_path):
    store = ResultStore(tmp_path / "parts")
    found = store.put("part", {"seed": 0}, {"a": np.float32(1 / 3), "b": [float("nan"), np.arange(2)]})
    assert found == store.get("part", {"seed": 0}) == {"a": 0.3333333, "b": [None, [0, 1]]}
    assert store.get("part", {"seed": 1}) is None


@pytest.mark.parametrize(
    "alter",
    [
        lambda text: '{"a": 1}',
        lambda text: '["found", "sha256"]',
        lambda text: "[" * 100_000,
        lambda text: text.replace("0.25", "0.26"),
        lambda text: text.replace('"found": {', '"found": {"more": 1,'),
        lambda text: text[: len(text) // 2],
    ],
)
def test_what_was_altered_in_the_store_is_not_taken(tmp_path, alter):
    store = ResultStore(tmp_path)
    store.put("part", 0, {"share": 0.25})
    path = next(tmp_path.glob("part-*.json"))
    whole = path.read_text("utf-8")
    assert alter(whole) != whole
    path.write_text(alter(whole), "utf-8")
    assert store.get("part", 0) is None


def test_no_file_of_the_store_can_stand_in_for_another(tmp_path):
    store = ResultStore(tmp_path)
    store.put("part", 0, {"share": 0.25})
    first = next(tmp_path.glob("part-*.json")).read_bytes()
    store.put("part", 1, {"share": 0.75})
    for path in tmp_path.glob("part-*.json"):
        path.write_bytes(first)
    assert store.get("part", 0) == {"share": 0.25}
    assert store.get("part", 1) is None


def test_letters_are_common_where_most_words_have_them_in_the_same_place():
    others = ["park›", "back›", "sank›", "tack›", "masks"]
    assert common_letters("bank›", others) == "a·k›"
    assert common_letters("‹bank", ["x"] * 5) == ""
