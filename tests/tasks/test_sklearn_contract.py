"""scikit-learn's contract, over all task models: parameters, clones, searches, raw strings as well as word lists."""

import dataclasses
import pickle
import sys

import numpy as np
import pytest
import torch
from labelled_data import claims, opinions, people
from tiny_models import make_encoder

import polyseme
from polyseme.errors import ConfigError
from polyseme.tasks.features.feature_cache import FeatureCache
from polyseme.tasks.features.mixing import MixSettings
from polyseme.tasks.fitting.loop import FitSettings
from polyseme.tasks.sentences.networks import ClassifierSettings

QUICK = FitSettings(epochs=2, epoch_steps=1, rate=0.02, batch_size=8)
MODELS = {
    "tagger": (polyseme.Tagger, people(24), {"cells": 6}),
    "classifier": (polyseme.Classifier, opinions(24), {"cells": 6, "hidden": 6}),
    "labels of pairs": (polyseme.Pairs, claims(24), {"cells": 6, "hidden": 6}),
    "numbers of pairs": (polyseme.Pairs, claims(24), {"cells": 6, "hidden": 6, "answer": "number"}),
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYSEME_CACHE", str(tmp_path / "cache"))


@pytest.fixture(params=MODELS)
def task(request):
    """A model that has not been fitted, examples as word lists, and answers."""
    kind, (examples, answers), settings = MODELS[request.param]
    if settings.get("answer") == "number":
        answers = [1.0 if answer == "yes" else 0.0 for answer in answers]
    return kind(None, settings=kind.settings_kind(**settings), fit_settings=QUICK), examples, answers


def as_text(example):
    """The same as raw strings: the tokenizer splits them at the same places."""
    return tuple(map(as_text, example)) if isinstance(example, tuple) else " ".join(example)


def weights(model):
    return {name: weight.tolist() for name, weight in model.network_.state_dict().items()}


@pytest.mark.parametrize("kind", [polyseme.Tagger, polyseme.Classifier, polyseme.Pairs])
def test_the_constructor_stores_its_arguments_untouched(kind):
    given = {"encoder": "nowhere", "words": 3.5, "settings": object(), "fit_settings": object(), "cache": 7}
    given |= {"device": "nonsense", "verbose": 2}
    model = kind(**given)
    assert vars(model) == given
    assert model.get_params(deep=False) == given
    assert set(vars(kind()).values()) == {"english", None, "cpu", 0}


def test_parameters_reach_into_the_settings(task):
    model, _, _ = task
    params = model.get_params()
    assert params["settings__cells"] == 6
    assert params["settings__mix__layers"] == "all"
    assert params["fit_settings__epochs"] == 2
    assert model.set_params(settings__mix__dropout=0.25, settings__cells=np.int64(9), device="meta") is model
    assert (model.settings.mix.dropout, model.settings.cells, model.device) == (0.25, 9, "meta")
    model.set_params(settings__mix=MixSettings(l2=0.5), fit_settings__rate=0.5, settings__spelling=None)
    assert (model.settings.mix, model.fit_settings.rate) == (MixSettings(l2=0.5), 0.5)
    assert model.settings.spelling is None
    again = type(model)(**model.get_params(deep=False))
    assert again.get_params() == model.get_params()


def test_settings_that_are_none_show_the_defaults_and_are_made_when_one_is_set():
    model = polyseme.Classifier()
    assert model.get_params()["settings"] is None
    assert model.get_params()["settings__cells"] == 150
    assert model.get_params()["fit_settings__rate"] == polyseme.Classifier.default_fit.rate
    model.set_params(settings__kind="linear", fit_settings__epochs=3)
    assert model.settings == model.settings_kind(kind="linear")
    assert model.fit_settings == dataclasses.replace(model.default_fit, epochs=3)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"setings": None}, "'setings' is no parameter of Classifier; .* Did you mean 'settings'?"),
        ({"cells": 5}, r"'cells' is no parameter of Classifier; .*set_params\(settings__cells=...\)"),
        ({"epochs": 5}, r"'epochs' is no parameter of Classifier; .*set_params\(fit_settings__epochs=...\)"),
        ({"device__x": 1}, "'device__x' is no parameter of Classifier"),
        ({"settings__dropot": 1}, "settings has no setting 'dropot'. Did you mean 'dropout'?"),
        ({"settings__dropout": 7}, "dropout must be a number of 0 or more and below 1"),
    ],
)
def test_parameters_that_do_not_exist_are_refused_with_the_nearest(params, message):
    with pytest.raises(ValueError, match=message):
        polyseme.Classifier().set_params(**params)


def test_arguments_that_do_not_exist_are_refused_with_the_place_where_they_belong():
    with pytest.raises(ConfigError, match=r"Tagger has no argument 'cells'; .*settings=TaggerSettings\(cells=...\)"):
        polyseme.Tagger(cells=5)
    with pytest.raises(ConfigError, match=r"Pairs has no argument 'rate'; .*fit_settings=FitSettings\(rate=...\)"):
        polyseme.Pairs(rate=0.1)
    with pytest.raises(ConfigError, match=r"Classifier has no argument 'verbos'.* Did you mean 'verbose'"):
        polyseme.Classifier(verbos=1)


def test_without_an_encoder_it_is_the_model_that_ships():
    model = polyseme.Classifier(settings=ClassifierSettings(kind="linear"), fit_settings=QUICK)
    assert model.fit(["good", "bad"], ["+", "-"]).encoder_names == ["english"]


@pytest.mark.parametrize(
    "labels", [[0, 1], np.array([2, 5]), np.array([False, True]), [0.5, 1.0], np.array(["a", "b"])]
)
def test_labels_keep_their_type(labels, tmp_path):
    texts = [" ".join(words) for words in opinions(12)[0]]
    answers = np.array(labels)[[0, 1] * 6]
    model = polyseme.Classifier(None, fit_settings=QUICK).set_params(settings__cells=6).fit(texts, answers)
    model.save(tmp_path / "model")
    for one in (model, polyseme.Classifier.load(tmp_path / "model")):
        assert {type(label) for label in one.predict(texts)} == {type(answers.tolist()[0])}
        assert one.classes_.tolist() == sorted(set(answers.tolist()))
        assert one.classes_.dtype.kind == np.array(labels).dtype.kind.replace("U", "O")
        assert one.score(texts, answers) == np.mean(np.array(one.predict(texts)) == answers)


def test_pairs_keep_the_type_of_labels_too():
    pairs, labels = claims(12)
    model = polyseme.Pairs(None, fit_settings=QUICK).set_params(settings__cells=6)
    model.fit(pairs, [int(label == "yes") for label in labels])
    assert model.classes_.tolist() == [0, 1]
    assert set(model.predict(pairs)) <= {0, 1}


@pytest.mark.parametrize("scoring", ["accuracy", "f1_macro", "roc_auc"])
def test_scorers_of_scikit_learn_take_whole_numbers(scoring):
    selection = pytest.importorskip("sklearn.model_selection")
    texts = [" ".join(words) for words in opinions(12)[0]]
    model = polyseme.Classifier(None, fit_settings=QUICK).set_params(settings__cells=6)
    scores = selection.cross_val_score(model, texts, [0, 1] * 6, cv=2, scoring=scoring, error_score="raise")
    assert np.isfinite(scores).all()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.eye(2), r"answers should be one-dimensional, one per example, but have the shape \(2, 2\)"),
        ([[0], [1]], r"example 0 should have one label, not \[0\]"),
        ([0, "a"], "should be all strings or all numbers, but there are 'a' and 0"),
        ([0, float("nan")], "example 1 has no label"),
    ],
)
def test_labels_that_are_no_labels_are_refused(labels, message):
    with pytest.raises(ValueError, match=message):
        polyseme.Classifier(None).fit(["a", "b"], labels)


def test_a_fit_can_say_how_far_it_is(capfd):
    quick = dataclasses.replace(QUICK, epochs=1)
    model = polyseme.Classifier(None, fit_settings=quick, verbose=1).set_params(settings__cells=6)
    model.fit(["good", "bad"], [1, 0])
    assert capfd.readouterr().err.startswith("epoch 1 of at most 1: loss ")
    model.set_params(verbose=0).fit(["good", "bad"], [1, 0])
    assert capfd.readouterr().err == ""


def test_repr_shows_what_is_not_the_default():
    assert repr(polyseme.Tagger()) == "Tagger()"
    model = polyseme.Classifier("bert", fit_settings=FitSettings(epochs=3)).set_params(settings__mix__l2=0.1)
    shown = "Classifier(encoder='bert', settings=ClassifierSettings(mix=MixSettings(l2=0.1)), "
    assert repr(model) == shown + "fit_settings=FitSettings(epochs=3))"
    assert repr(polyseme.Pairs([make_encoder(), "x"])) == "Pairs(encoder=[<ElmoEncoder elmo>, 'x'])"


def test_a_model_that_was_not_fitted_says_so(task):
    exceptions = pytest.importorskip("sklearn.exceptions")
    model, examples, answers = task
    calls = (lambda: model.predict(examples), lambda: model.score(examples, answers), lambda: model.save("x"))
    for call in (*calls, model.mixes, lambda: model.predict_proba(examples), lambda: model.classes_):
        with pytest.raises(ConfigError, match=r"this \w+ is not fitted yet; call fit first, or load a fitted one"):
            call()
        with pytest.raises(exceptions.NotFittedError):
            call()
    assert not hasattr(model, "network_")
    with pytest.raises(AttributeError, match="no attribute 'netwrk'"):
        model.netwrk  # noqa: B018


def test_clones_share_encoders_and_caches_but_nothing_that_was_learned(task):
    base = pytest.importorskip("sklearn.base")
    model, examples, answers = task
    model.set_params(encoder=[make_encoder()], cache=FeatureCache())
    twin = base.clone(model.fit(examples, answers))
    assert twin.encoder is model.encoder
    assert twin.cache is model.cache
    assert twin.get_params() == model.get_params()
    assert not hasattr(twin, "network_")
    assert weights(twin.fit(examples, answers)) == weights(model)


def test_raw_strings_mean_the_same_as_their_words(task):
    model, examples, answers = task
    texts = [as_text(example) for example in examples]
    fitted = model.fit(examples, answers)
    learned, predicted, score = weights(fitted), fitted.predict(examples), fitted.score(examples, answers)
    assert fitted.predict(texts) == predicted
    assert fitted.score(texts, answers) == score
    assert weights(model.fit(texts, answers, dev=(texts, answers))).keys() == learned.keys()
    assert weights(model.fit(texts, answers)) == learned
    if model._estimator_type != "regressor":
        np.testing.assert_array_equal(fitted.predict_proba(texts[:1]), fitted.predict_proba(examples[:1]))


def test_a_second_fit_forgets_the_first_and_takes_new_parameters(task, tmp_path):
    model, examples, answers = task
    model.fit(examples[:12], answers[:12], dev=(examples, answers))
    model.set_params(settings__cells=5)
    assert model.settings_.cells == 6
    model.save(tmp_path / "before")
    assert type(model).load(tmp_path / "before").predict(examples) == model.predict(examples)
    fresh = type(model)(**model.get_params(deep=False)).fit(examples, answers)
    assert weights(model.fit(examples, answers)) == weights(fresh)
    assert (model.settings_.cells, model.best_score_) == (5, None)


def test_a_fit_that_is_refused_keeps_the_model(task):
    model, examples, answers = task
    before = weights(model.fit(examples, answers))
    with pytest.raises(ValueError, match="training set"):
        model.fit(examples, answers[:3])
    with pytest.raises(ValueError, match="does not exist"):
        model.set_params(encoder="no/such/folder").fit(examples, answers)
    assert weights(model) == before


def test_from_pretrained_and_save_pretrained_are_load_and_save(task, tmp_path):
    model, examples, answers = task
    model.fit(examples, answers).save_pretrained(tmp_path / "model")
    loaded = type(model).from_pretrained(tmp_path / "model")
    assert type(loaded) is type(model)
    assert weights(loaded) == weights(model)
    assert loaded.predict(examples) == model.predict(examples)
    assert weights(loaded.fit(examples, answers)) == weights(model)


def test_fitted_models_are_pickled(task):
    model, examples, answers = task
    again = pickle.loads(pickle.dumps(model.set_params(encoder=make_encoder()).fit(examples, answers)))
    assert again.predict(examples) == model.predict(examples)


def test_scikit_learn_searches_and_validates_on_raw_strings(task):
    selection = pytest.importorskip("sklearn.model_selection")
    model, examples, answers = task
    texts = [as_text(example) for example in examples]
    grid = {"settings__dropout": [0.0, 0.5], "fit_settings__epochs": [1, 2]}
    search = selection.GridSearchCV(model, grid, cv=2, error_score="raise").fit(texts, answers)
    assert set(search.best_params_) == set(grid)
    assert search.predict(texts) == search.best_estimator_.predict(texts)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    scores = selection.cross_val_score(model, texts, answers, cv=3, error_score="raise")
    assert scores.shape == (3,)
    assert not hasattr(model, "network_")


@pytest.mark.parametrize(("name", "kind"), [*zip(MODELS, [None, "classifier", "classifier", "regressor"], strict=True)])
def test_scikit_learn_knows_what_kind_of_estimator_it_is(name, kind):
    base = pytest.importorskip("sklearn.base")
    model = MODELS[name][0]().set_params(**{f"settings__{key}": value for key, value in MODELS[name][2].items()})
    assert (base.is_classifier(model), base.is_regressor(model)) == (kind == "classifier", kind == "regressor")


def test_scorers_read_classes_and_probabilities():
    selection = pytest.importorskip("sklearn.model_selection")
    texts, labels = opinions(24)
    model = polyseme.Classifier(None, fit_settings=QUICK).set_params(settings__cells=6)
    texts, labels = np.array([as_text(words) for words in texts]), np.array(labels)
    scoring = ("accuracy", "f1_macro", "neg_log_loss")
    found = selection.cross_validate(model, texts, labels, cv=2, scoring=scoring, error_score="raise")
    assert all(np.isfinite(found[f"test_{name}"]).all() for name in scoring)
    two = labels != "none"
    area = selection.cross_val_score(model, texts[two], labels[two], cv=2, scoring="roc_auc", error_score="raise")
    assert np.isfinite(area).all()


def test_arrays_of_strings_are_taken():
    pairs, labels = claims(12)
    table = np.array([as_text(pair) for pair in pairs])
    assert table.shape == (12, 2)
    model = polyseme.Pairs(None, fit_settings=QUICK).set_params(settings__cells=6)
    assert model.fit(table, np.array(labels)).predict(table) == model.predict(pairs)


def test_series_of_strings_are_taken():
    pandas = pytest.importorskip("pandas")
    texts, labels = opinions(12)
    series = pandas.Series([as_text(words) for words in texts], index=range(100, 112))
    model = polyseme.Classifier(None, fit_settings=QUICK).fit(series, pandas.Series(labels))
    assert model.predict(series) == model.predict(texts)


def test_no_scikit_learn_is_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.exceptions", None)
    model = polyseme.Classifier().set_params(settings__cells=6)
    with pytest.raises(ConfigError, match="this Classifier is not fitted yet"):
        model.predict(["a text"])


def test_the_random_state_of_torch_is_left_alone(task):
    model, examples, answers = task
    torch.manual_seed(3)
    expected = torch.rand(2).tolist()
    torch.manual_seed(3)
    model.fit(examples, answers)
    assert torch.rand(2).tolist() == expected
