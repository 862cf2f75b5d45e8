"""Geometry of contextual vectors, on vectors made by hand."""

import dataclasses

import numpy as np
import pytest
from planted_senses import OneLayer, Planted, noise

from polyseme.analysis.layers.geometry import GeometrySettings, draw_geometry, geometry
from polyseme.errors import ConfigError, InputError

DIM = 64
RANDOM = np.random.default_rng(0)
TEXT = [[f"w{number}" for number in RANDOM.integers(20, size=8)] for _ in range(200)]


def measured(plant, text=TEXT, **settings):
    """Layer 1 of a model that gives these vectors."""
    return geometry(Planted(plant, DIM), text, GeometrySettings(layers=1, **settings)).layers[0]


def test_words_alone_are_like_themselves_and_one_vector_explains_them():
    row = geometry(Planted(dim=8), TEXT).layers[0]
    assert row.self_similarity.raw == pytest.approx(1)
    assert row.explained_variance.raw == pytest.approx(1)


def test_random_vectors_are_like_nothing():
    row = measured(lambda words, place: noise(*words, place, dim=DIM))
    assert row.self_similarity.raw == pytest.approx(0, abs=0.02)
    assert row.explained_variance.corrected == pytest.approx(0, abs=0.02)


def test_vectors_that_all_point_one_way_are_corrected_to_nothing():
    row = measured(lambda words, place: 10 + noise(*words, place, dim=DIM))
    assert row.self_similarity.baseline > 0.95
    assert row.self_similarity.raw > 0.95
    for measure in (row.self_similarity, row.explained_variance):
        assert measure.corrected == pytest.approx(0, abs=0.01)
        assert measure.corrected == measure.raw - measure.baseline


def test_vectors_of_the_sentence_are_alike_within_it():
    row = measured(lambda words, place: noise(*words, dim=DIM))
    assert row.intra_sentence.raw == pytest.approx(1)
    assert row.intra_sentence.baseline == row.self_similarity.baseline == pytest.approx(0, abs=0.02)


def test_measures_are_their_definitions():
    text = [["x", f"o{number}"] for number in range(5)]
    vectors = {tuple(words): noise(*words, dim=DIM) for words in text}
    plant = lambda words, place: vectors[tuple(words)] if place == 0 else np.ones(DIM)  # noqa: E731
    result = geometry(Planted(plant, DIM), text, GeometrySettings(layers=1))
    (word,) = result.words
    uses = np.stack(list(vectors.values())).astype(np.float64)
    unit = uses / np.linalg.norm(uses, axis=1, keepdims=True)
    cosines = (unit @ unit.T)[~np.eye(5, dtype=bool)]
    spread = np.linalg.svd(uses, compute_uv=False) ** 2
    assert (word.word, word.uses) == ("x", 5)
    assert word.self_similarity[0] == pytest.approx(cosines.mean(), abs=1e-6)
    assert result.layers[0].self_similarity.raw == pytest.approx(cosines.mean(), abs=1e-6)
    assert result.layers[0].explained_variance.raw == pytest.approx(spread[0] / spread.sum(), abs=1e-6)
    means = [(vector + 1) / 2 for vector in vectors.values()]
    within = [
        np.mean([vector @ mean / np.linalg.norm(vector) / np.linalg.norm(mean) for vector in (one, np.ones(DIM))])
        for one, mean in zip(vectors.values(), means, strict=True)
    ]
    assert result.layers[0].intra_sentence.raw == pytest.approx(np.mean(within), abs=1e-6)


def test_words_that_the_model_does_not_know_are_left_out():
    known = lambda words, place: noise(words[place], dim=DIM) * (words[place] != "w0")  # noqa: E731
    result = geometry(Planted(known, DIM), TEXT, GeometrySettings(layers=1))
    assert result.layers[0].self_similarity.raw == pytest.approx(1)
    assert result.words[-1].word == "w0"
    assert np.isnan(result.words[-1].self_similarity[0])


def test_the_same_seed_gives_the_same_result_and_the_bounds_hold():
    settings = GeometrySettings(sentences=100, words=7, uses=6, random_words=50, seed=3)
    first, second = (geometry(Planted(dim=8), iter(TEXT), settings) for _ in range(2))
    assert first == second
    assert (first.sentences, len(first.words), first.uses) == (100, 7, 42)
    assert geometry(Planted(dim=8), TEXT, dataclasses.replace(settings, seed=4)) != first


def test_a_sentence_that_comes_again_is_no_new_context():
    with pytest.raises(InputError, match="no word occurs in 5 of the 2 sentences"):
        geometry(Planted(), [["a", "b"]] * 10 + [["a", "c"]])


def test_one_layer_is_one_row():
    assert [row.layer for row in geometry(OneLayer(), TEXT).layers] == [0]


@pytest.mark.parametrize("text", [[], [[]], [["alone"]]])
def test_an_empty_text_is_refused(text):
    with pytest.raises(InputError, match="no sentence of the text has two words"):
        geometry(Planted(), text)


@pytest.mark.parametrize("settings", [{"uses": 3}, {"min_uses": 1}, {"words": 0}, {"sentences": 1}])
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(ConfigError, match="must be"):
        GeometrySettings(**settings)


def test_the_picture_has_a_line_for_each_measure():
    pytest.importorskip("matplotlib")
    (axes,) = draw_geometry(geometry(Planted(), TEXT)).axes
    assert len(axes.lines) == 4
