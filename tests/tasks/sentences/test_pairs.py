"""Pairs of sentences: labels and numbers are learned, saved, loaded and judged; what is odd is said clearly."""

import dataclasses
import json
import math

import numpy as np
import pytest
import torch
from labelled_data import claims
from static_models import make_static
from tiny_models import make_encoder

import polyseme
from polyseme.errors import ConfigError, FormatError, InputError
from polyseme.formats.native import write_manifest
from polyseme.tasks.features.bilstm import CharCnnSettings
from polyseme.tasks.features.mixing import MixSettings
from polyseme.tasks.fitting.loop import FitSettings
from polyseme.tasks.metrics import pearson, score_numbers, spearman
from polyseme.tasks.sentences.networks import PairsSettings
from polyseme.tasks.sentences.targets import NumberTarget

SMALL = PairsSettings(where="input", cells=8, hidden=12, dropout=0.0, mix=MixSettings(dropout=0.0))
SMALL = dataclasses.replace(SMALL, spelling=CharCnnSettings(dim=8, filters=12))
QUICK = FitSettings(epochs=10, epoch_steps=1, rate=0.005, batch_size=10, patience=10, average=0.5)
TRAIN, DEV, TEST = claims(80, 0), claims(30, 1), claims(40, 2)


def make(encoder=None, fit=QUICK, **settings):
    return polyseme.Pairs(encoder, settings=dataclasses.replace(SMALL, **settings), fit_settings=fit)


def numbers(data):
    """How much of the pairs is alike, from 1 to 5."""
    return data[0], [5.0 if label == "yes" else 1.5 for label in data[1]]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYSEME_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """One that gives labels, and one that gives numbers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POLYSEME_CACHE", str(tmp_path_factory.mktemp("cache")))
        labels = make(make_encoder()).fit(*TRAIN, dev=DEV)
        related = make(make_encoder(), answer="number").fit(*numbers(TRAIN), dev=numbers(DEV))
        return {"label": labels, "number": related}


def weights(model):
    return {name: weight.tolist() for name, weight in model.network_.state_dict().items()}


def test_labels_are_learned(fitted):
    model = fitted["label"]
    assert model.score(*TEST) > 0.9
    assert list(model.classes_) == ["no", "yes"]
    assert sum(model.mixes()["input"][0].weights) == pytest.approx(1)
    shares = model.predict_proba(TEST[0])
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-5)
    assert [model.classes_[number] for number in shares.argmax(axis=1)] == model.predict(TEST[0])
    assert model.predict_proba([]).shape == (0, 2)


def test_numbers_are_learned_and_stay_within_what_training_had(fitted):
    model = fitted["number"]
    scores = model.evaluate(*numbers(TEST))
    assert model.score(*numbers(TEST)) == scores.pearson > 0.9
    assert scores.spearman > 0.8
    assert scores.squared_error < 1
    assert all(1.5 <= number <= 5 for number in model.predict(TEST[0]))
    with pytest.raises(ConfigError, match="predicts numbers, which have no probabilities; use predict"):
        model.predict_proba(TEST[0])
    with torch.no_grad():
        before = model.network_.output.bias.clone()
        model.network_.output.bias.fill_(100.0)
        assert set(model.predict(TEST[0])) == {5.0}
        model.network_.output.bias.copy_(before)


def test_it_learns_without_contextual_vectors_and_beside_word_vectors():
    assert make().fit(*TRAIN, dev=DEV).score(*TEST) > 0.9
    short = dataclasses.replace(QUICK, epochs=1)
    model = polyseme.Pairs(make_encoder(), words=make_static(), settings=SMALL, fit_settings=short)
    reports = list(model.fitting(*TRAIN, dev=DEV))
    assert model.network_.lstms[0].input_size == 12 + 5 + 12
    assert {report.score.name for report in reports if report.score} == {"accuracy"}


@pytest.mark.parametrize("answer", ["label", "number"])
def test_a_pair_does_not_depend_on_its_company(fitted, answer):
    model = fitted[answer]
    pairs = [*TEST[0], ([], ["Ada"]), (["Ada"] * 40, ["Bob"]), (["Bob"], ["Ada"] * 40), ([], []), (["Ada"], [])]
    together = list(model.outputs(pairs))
    for pair, output in zip(pairs, together, strict=True):
        np.testing.assert_allclose(next(model.outputs([pair])), output, atol=1e-4)
    assert not np.allclose(together[-4], together[-3])  # which sentence is first matters


def test_a_pair_with_an_empty_sentence_has_the_shares_or_the_mean_of_training(fitted):
    empty = [([], ["Ada"]), (["Ada"], []), ([], [])]
    share = TRAIN[1].count("yes") / len(TRAIN[1])
    np.testing.assert_allclose(fitted["label"].predict_proba(empty), [[1 - share, share]] * 3, rtol=1e-5)
    assert fitted["number"].predict(empty) == pytest.approx([np.mean(numbers(TRAIN)[1])] * 3)


@pytest.mark.parametrize("answer", ["label", "number"])
def test_what_is_saved_is_loaded_and_predicts_the_same(fitted, tmp_path, answer):
    fitted[answer].save(tmp_path / "m")
    loaded = polyseme.Pairs.load(tmp_path / "m", make_encoder())
    assert weights(loaded) == weights(fitted[answer])
    assert loaded.predict([*TEST[0], ([], [])]) == fitted[answer].predict([*TEST[0], ([], [])])
    assert loaded.target_ == fitted[answer].target_
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    for learned in (None, {}, {"mean": "x"}):
        (tmp_path / "m" / "config.json").write_text(json.dumps({**config, "learned": learned}))
        write_manifest(tmp_path / "m")
        with pytest.raises(FormatError, match=r"config\.json should (list|hold) the"):
            polyseme.Pairs.load(tmp_path / "m", make_encoder())


def test_the_same_seed_gives_the_same_model_and_a_killed_fit_goes_on_to_it(tmp_path):
    short = dataclasses.replace(QUICK, epochs=2)
    one = make(make_encoder(), fit=short).fit(*TEST, dev=DEV)
    assert weights(make(make_encoder(), fit=short).fit(*TEST, dev=DEV)) == weights(one)
    for report in make(make_encoder(), fit=short).fitting(*TEST, dev=DEV, checkpoint=tmp_path / "c"):
        if report.epoch == 2:
            break
    again = make(make_encoder(), fit=short)
    assert next(again.fitting(*TEST, dev=DEV, checkpoint=tmp_path / "c")).epoch == 2
    assert weights(make(make_encoder(), fit=short).fit(*TEST, dev=DEV, checkpoint=tmp_path / "c")) == weights(one)


def test_encoders_learn_when_they_are_told():
    encoder = make_encoder()
    before = encoder.fingerprint()
    settings = dataclasses.replace(QUICK, epochs=1, encoder_rate=0.01)
    model = make(encoder, fit=settings, fine_tune=True).fit(*TRAIN)
    assert encoder.fingerprint() == before != model.reader_.encoders[0].fingerprint()


def test_a_sentence_of_many_pairs_is_embedded_once():
    encoder = make_encoder()
    pairs = [(["Ada", "waits"], ["Bob", "waits"]), (["Bob", "waits"], ["Ada", "waits"])]
    make(encoder, fit=dataclasses.replace(QUICK, epochs=1)).fit(pairs, ["x", "y"])
    assert encoder.cache_report.words == 4


def test_correlations_are_those_of_scipy():
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    one = rng.normal(size=50)
    other = np.round(one + rng.normal(size=50))
    assert pearson(one, other) == pytest.approx(stats.pearsonr(one, other).statistic)
    assert spearman(one, other) == pytest.approx(stats.spearmanr(one, other).statistic)
    assert math.isnan(pearson(one, np.ones(50)))
    assert math.isnan(spearman(one[:1], other[:1]))
    assert score_numbers([1.0, 2.0], [3.0, 3.0]).main == (0.0, "Pearson")


@pytest.mark.parametrize(
    ("pairs", "answers", "message"),
    [
        ([(["a"], ["b"])], ["X"], "all labels in training are 'X'"),
        ([(["a"], ["b"])], ["X", "Y"], "1 examples, but 2 answers"),
        ([(["a"], [])] * 2, ["X", "Y"], "the training set is empty"),
        ([(["a"], ["b"], ["c"])], ["X"], "pair 0 should be two texts or two lists of words"),
        ([(["a"], ["b"]), ["a"]], ["X", "Y"], "pair 1 should be two texts or two lists of words"),
        ([(["a"], [3])], ["X"], "pair 0: sentence 1, word 0 should be a string"),
        ("a b", ["X"], "a list of pairs of texts or word lists was expected"),
        (3, ["X"], "a list of pairs of texts or word lists was expected"),
    ],
)
def test_training_sets_that_make_no_sense_are_refused(pairs, answers, message):
    with pytest.raises(InputError, match=message):
        make().fit(pairs, answers)


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([1.0, math.nan], "the training set's example 1 should have a number, not nan"),
        ([1.0, "ENTAILMENT"], "example 1 should have a number, not 'ENTAILMENT'"),
        ([None, 1.0], "example 0 should have a number, not None"),
        ([math.inf, 1.0], "example 0 should have a number, not inf"),
        ([2.0, 2.0], "all numbers in training are 2; give at least two different numbers"),
    ],
)
def test_numbers_that_are_none_are_refused(answers, message):
    with pytest.raises(InputError, match=message):
        make(answer="number").fit([(["a"], ["b"])] * 2, answers)


def test_what_cannot_be_is_refused_in_a_sentence(fitted):
    with pytest.raises(InputError, match="the test set's example 0 should have a number, not 'no'"):
        fitted["number"].score(*TEST)
    with pytest.raises(InputError, match=r"none of the labels that were learned \('no', 'yes', ...\), but 5.0"):
        fitted["label"].score([(["a"], ["b"])], [5.0])
    with pytest.raises(InputError, match="the dev set is empty"):
        make().fit(*TRAIN, dev=([([], ["a"])], ["yes"]))
    with pytest.raises(ConfigError, match="answer must be one of label, number"):
        PairsSettings(answer="numbers")
    with pytest.raises(ConfigError, match="is not fitted yet"):
        make().predict(TEST[0])
    with pytest.raises(InputError, match="the training set is empty"):
        NumberTarget.learn([])
