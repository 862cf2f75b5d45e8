"""The classifier: both kinds learn, are saved and loaded, and speak clearly of what is odd."""

import dataclasses
import json

import numpy as np
import pytest
import torch
from labelled_data import opinions
from static_models import make_static
from tiny_models import make_encoder
from transformer_models import make_transformer

import polyseme
from polyseme.errors import ConfigError, FormatError, InputError, OutputError
from polyseme.formats.native import write_manifest
from polyseme.tasks.features.bilstm import CharCnnSettings
from polyseme.tasks.features.mixing import MixSettings
from polyseme.tasks.features.pooling import AttentionPool, align, max_pool, mean_pool
from polyseme.tasks.fitting.loop import FitSettings
from polyseme.tasks.sentences.networks import ClassifierSettings
from polyseme.tasks.sentences.targets import LabelTarget

SMALL = ClassifierSettings(cells=10, hidden=10, dropout=0.1, mix=MixSettings(dropout=0.1))
SMALL = dataclasses.replace(SMALL, spelling=CharCnnSettings(dim=8, filters=12))
QUICK = FitSettings(epochs=10, epoch_steps=1, rate=0.01, batch_size=12, patience=8, average=0.5)
SHORT = dataclasses.replace(QUICK, epochs=2)
TRAIN, DEV, TEST = opinions(100, 0), opinions(20, 1), opinions(30, 2)


def make(encoder=None, fit=QUICK, words=None, **settings):
    own = dataclasses.replace(SMALL, **settings)
    return polyseme.Classifier(encoder, words=words, settings=own, fit_settings=fit)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYSEME_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module", params=["lstm", "linear"])
def fitted(request, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POLYSEME_CACHE", str(tmp_path_factory.mktemp("cache")))
        rate = 0.03 if request.param == "linear" else QUICK.rate
        return make(make_encoder(), dataclasses.replace(QUICK, rate=rate), kind=request.param).fit(*TRAIN, dev=DEV)


def weights(model):
    return {name: weight.tolist() for name, weight in model.network_.state_dict().items()}


def test_both_kinds_learn_and_show_which_layers_they_like(fitted):
    assert fitted.score(*TEST) > 0.8
    assert fitted.best_score_ > 0.8
    assert list(fitted.classes_) == ["bad", "good", "none"]
    (mixes,) = fitted.mixes().values()
    assert sum(mixes[0].weights) == pytest.approx(1)
    assert mixes[0].weights != (1 / 3, 1 / 3, 1 / 3)


@pytest.mark.parametrize("where", ["output", "both", "taglm"])
def test_it_learns_wherever_the_vectors_enter(where):
    classifier = make(make_encoder(), where=where).fit(*TRAIN, dev=DEV)
    assert classifier.score(*TEST) > 0.8
    assert list(classifier.mixes()) == {"output": ["output"], "both": ["input", "output"], "taglm": ["middle"]}[where]


@pytest.mark.parametrize("kind", ["lstm", "linear"])
def test_several_encoders_and_word_vectors_stand_side_by_side(kind):
    several = make([make_encoder(), make_transformer()], SHORT, words=make_static(), kind=kind).fit(*TRAIN, dev=DEV)
    assert [len(mix.weights) for mix in next(iter(several.mixes().values()))] == [3, 5]
    assert len(several.predict(TEST[0])) == len(TEST[0])


def test_it_learns_without_contextual_vectors():
    assert make(words=make_static()).fit(*TRAIN, dev=DEV).score(*TEST) > 0.8


def test_the_linear_kind_reads_word_vectors_alone_but_not_nothing():
    classifier = make(words=make_static(), kind="linear", fit=SHORT).fit(*TRAIN)
    assert classifier.network_.output.in_features == 2 * 5
    assert classifier.mixes() == {}
    with pytest.raises(ConfigError, match="reads vectors, but there are none: give an encoder or word vectors"):
        make(kind="linear").fit(*TRAIN)
    with pytest.raises(ConfigError, match="encoders cannot be fine-tuned with it; use kind lstm"):
        make(make_encoder(), kind="linear", fine_tune=True)


def test_the_linear_kind_sees_what_it_saw_in_training(fitted):
    """What is pooled once for all epochs is what is pooled of a stream."""
    from polyseme.tasks.sentences.data import check_single
    from polyseme.tasks.sentences.objective import outputs_of_all

    data = fitted._readable(list(check_single(TRAIN[0])))
    np.testing.assert_allclose(outputs_of_all(fitted.network_, data), list(fitted.outputs(TRAIN[0])), atol=1e-4)


def test_probabilities_sum_to_one_and_agree_with_the_labels(fitted):
    shares = fitted.predict_proba(TEST[0])
    assert shares.shape == (30, 3)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-5)
    assert [fitted.classes_[number] for number in shares.argmax(axis=1)] == fitted.predict(TEST[0])
    assert fitted.predict_proba([]).shape == (0, 3)
    assert fitted.predict([]) == []


def test_a_sentence_does_not_depend_on_its_company(fitted):
    sentences = [*TEST[0], [], ["fine"] * 40, []]
    together = fitted.predict_proba(sentences)
    for words, shares in zip(sentences, together, strict=True):
        np.testing.assert_allclose(fitted.predict_proba([words])[0], shares, atol=1e-5)


def test_an_empty_sentence_has_the_shares_of_training(fitted):
    shares = [TRAIN[1].count(name) / len(TRAIN[1]) for name in fitted.classes_]
    np.testing.assert_allclose(fitted.predict_proba([[], ["fine"], []])[[0, 2]], [shares, shares], rtol=1e-5)
    assert fitted.predict([[]]) == [fitted.classes_[int(np.argmax(shares))]]


def test_a_stream_is_answered_while_it_comes(fitted):
    taken = []

    def stream():
        for number in range(10**9):
            taken.append(number)
            yield ["the", "film"] if number % 2 else []

    found = fitted.outputs(stream())
    assert [len(next(found)) for _ in range(4)] == [3] * 4
    assert len(taken) < 10**5


def test_the_same_seed_gives_the_same_model_to_the_last_bit():
    for kind in ("lstm", "linear"):
        one, other = (make(make_encoder(), fit=SHORT, kind=kind).fit(*TRAIN, dev=DEV) for _ in range(2))
        assert weights(one) == weights(other)


@pytest.mark.parametrize("kind", ["lstm", "linear"])
def test_a_killed_fit_goes_on_to_the_same_model(tmp_path, kind):
    whole = make(make_encoder(), fit=SHORT, kind=kind).fit(*TRAIN, dev=DEV)
    for report in make(make_encoder(), fit=SHORT, kind=kind).fitting(*TRAIN, dev=DEV, checkpoint=tmp_path / "c"):
        if report.epoch == 2:
            break
    again = make(make_encoder(), fit=SHORT, kind=kind)
    assert next(again.fitting(*TRAIN, dev=DEV, checkpoint=tmp_path / "c")).epoch == 2
    assert weights(make(make_encoder(), fit=SHORT, kind=kind).fit(*TRAIN, dev=DEV, checkpoint=tmp_path / "c")) == (
        weights(whole)
    )
    with pytest.raises(OutputError, match="started with other data"):
        make(make_encoder(), fit=SHORT, kind=kind).fit(*TEST, dev=DEV, checkpoint=tmp_path / "c")


def test_what_is_saved_is_loaded_and_predicts_the_same(fitted, tmp_path):
    fitted.save(tmp_path / "sentiment")
    loaded = polyseme.Classifier.load(tmp_path / "sentiment", make_encoder())
    assert weights(loaded) == weights(fitted)
    np.testing.assert_array_equal(loaded.predict_proba([*TEST[0], []]), fitted.predict_proba([*TEST[0], []]))
    assert (loaded.settings, loaded.target_) == (fitted.settings, fitted.target_)
    with pytest.raises(
        FormatError, match="should be a 'polyseme tagger' of version 1, but it is 'polyseme classifier'"
    ):
        polyseme.Tagger.load(tmp_path / "sentiment")


def test_a_bundle_needs_nothing_but_itself(fixtures, tmp_path):
    classifier = make(fixtures / "tiny", SHORT, kind="linear").fit(*TRAIN)
    classifier.save(tmp_path / "one", bundle=True)
    (tmp_path / "one").rename(tmp_path / "other")
    assert polyseme.Classifier.load(tmp_path / "other").predict(TEST[0]) == classifier.predict(TEST[0])


def test_a_config_that_lost_its_labels_is_refused(fitted, tmp_path):
    fitted.save(tmp_path / "c")
    config = json.loads((tmp_path / "c" / "config.json").read_text())
    for learned in (None, {}, {"names": ["a"], "shares": []}):
        (tmp_path / "c" / "config.json").write_text(json.dumps({**config, "learned": learned}))
        write_manifest(tmp_path / "c")
        with pytest.raises(FormatError, match="should list the labels and their frequencies"):
            polyseme.Classifier.load(tmp_path / "c", make_encoder())


def test_encoders_learn_when_they_are_told():
    encoder = make_encoder()
    before = encoder.fingerprint()
    settings = dataclasses.replace(QUICK, epochs=2, encoder_rate=0.01)
    classifier = make(encoder, fit=settings, fine_tune=True).fit(*TRAIN, dev=DEV)
    assert encoder.fingerprint() == before != classifier.reader_.encoders[0].fingerprint()


def test_scores_equal_those_of_scikit_learn(fitted):
    metrics = pytest.importorskip("sklearn.metrics")
    gold = ["none", *TEST[1][1:-1], "strange"]
    scores, found = fitted.evaluate(TEST[0], gold), fitted.predict(TEST[0])
    assert scores.accuracy == pytest.approx(metrics.accuracy_score(gold, found))
    assert scores.macro_f1 == pytest.approx(metrics.f1_score(gold, found, average="macro", zero_division=0))
    assert scores.unseen == {"strange": 1}
    assert scores.count == 30


def test_labels_first_seen_in_a_dev_set_count_as_wrong():
    classifier = make(fit=dataclasses.replace(QUICK, epochs=1))
    classifier.fit(*TRAIN, dev=([*DEV[0], ["odd"]], [*DEV[1], "strange"]))
    assert classifier.best_score_ < 1
    assert list(classifier.classes_) == ["bad", "good", "none"]


def test_two_sentences_are_enough_and_empty_ones_are_passed_over():
    classifier = make(fit=SHORT).fit([[], ["fine"], ["dull"], []], ["x", "good", "bad", "y"])
    assert list(classifier.classes_) == ["bad", "good"]
    assert classifier.best_score_ is None


@pytest.mark.parametrize(
    ("sentences", "labels", "message"),
    [
        ([["a"]], ["X"], "all labels in training are 'X'; give at least two different labels"),
        ([["a"], ["b"]], ["X", "X"], "all labels in training are 'X'"),
        ([["a"]], ["X", "Y"], "1 examples, but 2 answers"),
        ([["a"], ["b"]], "XY", "not a bare string"),
        ([["a"], ["b"]], ["X", None], "the training set's example 1 has no label"),
        ([["a"], ["b"]], [float("nan"), "X"], "the training set's example 0 has no label"),
        ([[], []], ["X", "Y"], "the training set is empty"),
        ([], [], "the training set is empty"),
        ("a bare string", ["X"], "expected a list of texts or of word lists, not 'a bare string'"),
        ([["a"]] * 1500, range(1500), "is this the column of the labels"),
    ],
)
def test_training_sets_that_make_no_sense_are_refused(sentences, labels, message):
    with pytest.raises(InputError, match=message):
        make().fit(sentences, labels)


def test_what_cannot_be_is_refused_in_a_sentence(fitted):
    with pytest.raises(
        InputError, match=r"none of the labels that were learned \('bad', 'good', 'none', ...\), but 'NNP'"
    ):
        fitted.score([["fine"]], ["NNP"])
    with pytest.raises(InputError, match="the dev set has none of the labels"):
        make().fit(*TRAIN, dev=([["fine"]], ["NNP"]))
    with pytest.raises(InputError, match="the dev set is empty"):
        make().fit(*TRAIN, dev=([[]], ["good"]))
    with pytest.raises(ConfigError, match="this Classifier is not fitted yet"):
        make().predict([["a"]])
    with pytest.raises(ConfigError, match="is not fitted yet"):
        make().score([["a"]], ["good"])
    with pytest.raises(ConfigError, match="kind must be one of lstm, linear"):
        ClassifierSettings(kind="liner")
    with pytest.raises(ConfigError, match="heads must be"):
        ClassifierSettings(heads=0)


def test_labels_may_be_numbers():
    assert LabelTarget.learn(["1", "0", "1", "1"]) == LabelTarget(("0", "1"), (0.25, 0.75))
    classifier = make(fit=dataclasses.replace(QUICK, epochs=1)).fit([["a"], ["b"]], [1, 0])
    assert set(classifier.predict([["a"], ["b"]])) <= {0, 1}


def test_pooling_minds_only_the_words_that_are_there():
    torch.manual_seed(0)
    vectors, mask = torch.randn(2, 5, 4), torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    short = vectors[1:, :3]
    everything = mask[1:, :3]
    attention = AttentionPool(4, 3, heads=2)
    for pool in (mean_pool, max_pool, attention):
        torch.testing.assert_close(pool(vectors, mask)[1:], pool(short, everything))
    assert attention.weights(vectors, mask)[1, 3:].abs().sum() == 0
    one, other = align(vectors, vectors.flip(0), (mask, mask.flip(0)))
    torch.testing.assert_close(one[0], (vectors[0] @ short[0].T / short.shape[2] ** 0.5).softmax(1) @ short[0])
    torch.testing.assert_close(other[0, :3], (short[0] @ vectors[0].T / short.shape[2] ** 0.5).softmax(1) @ vectors[0])
