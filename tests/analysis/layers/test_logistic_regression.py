"""Logistic regression, against scikit-learn's."""

import numpy as np
import pytest

from polyseme.analysis.layers import logistic_regression
from polyseme.analysis.layers.logistic_regression import JoinedLayers, LinearFitSettings, LinearProblem


def blobs(rows=1500, dim=12, classes=4, seed=0):
    """Classes that overlap, features of very different size and correlated."""
    random = np.random.default_rng(seed)
    numbers = random.integers(classes, size=rows)
    centres = random.normal(size=(classes, dim))
    features = (centres[numbers] + 1.5 * random.normal(size=(rows, dim))) @ random.normal(size=(dim, dim))
    return (features * 10.0 ** np.linspace(-2, 3, dim) + 100).astype(np.float32), numbers


def fit_linear(features, numbers, settings=None):
    return LinearProblem(features, settings).fit(numbers)


@pytest.mark.parametrize("inverse_penalty", [0.01, 1.0, 100.0])
def test_agrees_with_scikit_learn_on_standardised_features(inverse_penalty):
    linear_model = pytest.importorskip("sklearn.linear_model")
    features, numbers = blobs()
    train, test = slice(0, 1000), slice(1000, None)
    mean, deviation = features[train].mean(axis=0), features[train].std(axis=0)
    theirs = linear_model.LogisticRegression(C=inverse_penalty, max_iter=5000, tol=1e-8)
    theirs.fit(((features[train] - mean) / deviation).astype(np.float64), numbers[train])
    ours = fit_linear(features[train], numbers[train], LinearFitSettings(inverse_penalty, tolerance=1e-6))
    weights = ours.weights.numpy()
    np.testing.assert_allclose(weights - weights.mean(axis=1, keepdims=True), theirs.coef_.T, rtol=5e-3, atol=5e-3)
    agreement = (ours.predict(features[test]) == theirs.predict((features[test] - mean) / deviation)).mean()
    assert agreement >= 0.998


def test_two_classes_are_told_apart_too():
    features, numbers = blobs(classes=2)
    assert (fit_linear(features, numbers).predict(features) == numbers).mean() > 0.8


@pytest.mark.parametrize("held", [0, 1 << 20])
def test_the_size_of_blocks_changes_nothing(monkeypatch, held):
    features, numbers = blobs()
    whole = fit_linear(features, numbers)
    monkeypatch.setattr(logistic_regression, "BLOCK", 12 * 70)
    monkeypatch.setattr(logistic_regression, "HELD", held)
    np.testing.assert_allclose(fit_linear(features, numbers).weights, whole.weights, rtol=0.02, atol=1e-4)


def test_layers_side_by_side_are_one_wide_layer():
    features, numbers = blobs()
    joined = fit_linear(JoinedLayers([features[:, :5], features[:, 5:]]), numbers)
    np.testing.assert_array_equal(joined.weights, fit_linear(features, numbers).weights)


def test_a_feature_that_never_varies_does_no_harm():
    features, numbers = blobs()
    flat = np.concatenate([features, np.full((len(features), 2), 7, dtype=np.float32)], axis=1)
    plain, other = fit_linear(features, numbers), fit_linear(flat, numbers)
    assert np.isfinite(other.weights.numpy()).all()
    assert (plain.predict(features) == other.predict(flat)).mean() > 0.998


def test_no_rows_give_no_answers():
    features, numbers = blobs()
    assert fit_linear(features, numbers).predict(features[:0]).shape == (0,)
