"""Entities are counted as seqeval counts them; intervals hold the true share as often as they say."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.tasks.metrics import Counts, accuracy, score_entities, wilson_interval

LABELS = ["O", *(f"{mark}-{kind}" for mark in "BIES" for kind in ("X", "Y-Z"))]


@st.composite
def pairs(draw):
    lengths = draw(st.lists(st.integers(1, 7), min_size=1, max_size=4))
    return [[draw(st.lists(st.sampled_from(LABELS), min_size=n, max_size=n)) for n in lengths] for _ in range(2)]


@given(pairs())
@settings(deadline=None)  # seqeval is imported by the first example
def test_precision_recall_and_f1_are_seqevals_whatever_the_labels(case):
    seqeval = pytest.importorskip("seqeval.metrics")
    gold, predicted = case
    ours = score_entities(gold, predicted).overall
    for name in ("precision", "recall", "f1"):
        theirs = getattr(seqeval, f"{name}_score")(gold, predicted, zero_division=0)
        assert getattr(ours, name) == pytest.approx(float(theirs))
    assert accuracy(gold, predicted) == pytest.approx(seqeval.accuracy_score(gold, predicted))


@given(pairs())
@settings(deadline=None)  # seqeval is imported by the first example
def test_the_table_by_type_is_seqevals(case):
    seqeval = pytest.importorskip("seqeval.metrics")
    gold, predicted = case
    ours = score_entities(gold, predicted).types
    if not ours:
        return
    theirs = seqeval.classification_report(gold, predicted, output_dict=True, zero_division=0)
    for kind, counts in ours.items():
        expected = theirs[kind]
        assert counts.gold == expected["support"]
        assert counts.precision == pytest.approx(float(expected["precision"]))
        assert counts.recall == pytest.approx(float(expected["recall"]))
        assert counts.f1 == pytest.approx(float(expected["f1-score"]))


def test_an_entity_counts_only_if_begin_end_and_type_are_right():
    gold = [["B-X", "I-X", "O", "B-Y"]]
    assert score_entities(gold, gold).overall == Counts(2, 2, 2)
    assert score_entities(gold, [["B-X", "O", "O", "B-X"]]).overall == Counts(0, 2, 2)
    scores = score_entities(gold, [["B-X", "I-X", "O", "O"]])
    assert (scores.overall.precision, scores.overall.recall, scores.overall.f1) == (1.0, 0.5, pytest.approx(2 / 3))
    assert scores.types == {"X": Counts(1, 1, 1), "Y": Counts(0, 0, 1)}


def test_schemes_may_differ_between_gold_and_prediction():
    assert score_entities([["I-X", "I-X", "B-X"]], [["B-X", "E-X", "S-X"]]).overall == Counts(2, 2, 2)


def test_nothing_at_all_scores_nothing():
    assert score_entities([], []).overall.f1 == 0
    assert score_entities([["O"]], [["O"]]).overall == Counts()
    assert accuracy([], []) == 0


def test_wilson_holds_the_true_share_as_often_as_it_says():
    for count, share in ((30, 0.5), (30, 0.9), (638, 0.6)):
        held = 0.0
        for right in range(count + 1):
            low, high = wilson_interval(right, count)
            assert 0 <= low <= right / count + 1e-12
            assert right / count - 1e-12 <= high <= 1
            held += (low <= share <= high) * math.comb(count, right) * share**right * (1 - share) ** (count - right)
        assert held == pytest.approx(0.95, abs=0.025)
