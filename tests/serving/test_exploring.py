"""What the page asks for: neighbours, comparisons, predictions, labels."""

import numpy as np
import pytest
from server_fixture import make_catalogue, running
from static_models import WORDS

from polyseme.embedding.layers import choose
from polyseme.embedding.similarity import unit
from polyseme.serving.engine.catalogue import Catalogue, open_catalogue
from polyseme.serving.engine.comparison import pca_map

BANKS = [["He", "sat", "on", "the", "bank"], ["the", "bank", "of", "the", "river"], ["Bank", "."]]


@pytest.fixture(scope="module")
def server():
    with running(make_catalogue()) as it:
        yield it


def test_models_are_described(server):
    _, body = server.get("/v1/models")
    assert body.startswith(b'{"models":[{"id":"small","kind":"elmo","layers":3,"dim":12,"language_model":true,')
    status, answer = server.post("/v1/compare", {"model": "nobody", "sentences": ["a", "b"], "word": "a"})
    assert (status, answer["error"]["where"]) == (404, ["model"])


def test_uses_are_compared_layer_by_layer_and_on_average(server):
    status, answer = server.post("/v1/compare", {"sentences": BANKS, "word": "bank", "layer": "all"})
    assert status == 200
    assert answer["uses"] == [
        {"words": words, "position": place} for words, place in zip(BANKS, (4, 1, 0), strict=True)
    ]
    assert [each["layer"] for each in answer["layers"]] == [0, 1, 2, "mean"]
    vectors = list(server.service.catalogue.default.encoder.embed(BANKS))
    for each in answer["layers"]:
        choice = "average" if each["layer"] == "mean" else each["layer"]
        uses = unit(np.stack([choose(array, choice)[place] for array, place in zip(vectors, (4, 1, 0), strict=True)]))
        np.testing.assert_allclose(each["cosines"], uses @ uses.T, atol=1e-5)
        assert np.shape(each["map"]) == (3, 2)
    _, one = server.post("/v1/compare", {"sentences": [" ".join(w) for w in BANKS], "positions": [4, 1, 0], "layer": 1})
    np.testing.assert_allclose(one["layers"][0]["cosines"], answer["layers"][1]["cosines"], atol=1e-5)


def test_a_map_keeps_the_distances_that_two_dimensions_can_show():
    plane = np.random.default_rng(0).standard_normal((5, 2)) @ np.random.default_rng(1).standard_normal((2, 9))
    places = pca_map(plane)
    distances = [np.linalg.norm(rows[:, None] - rows[None], axis=-1) for rows in (plane, places)]
    np.testing.assert_allclose(distances[0], distances[1], atol=1e-5)
    np.testing.assert_array_equal(pca_map(plane[:, ::1].copy()), places)


def test_the_same_use_is_nearest_to_itself_in_other_company(server):
    status, answer = server.post(
        "/v1/neighbours", {"sentence": "We tied the canoe to a tree on the far bank.", "position": 10, "top": 3}
    )
    assert (status, answer["word"]) == (200, "bank")
    assert len(answer["contextual"]) == len(answer["static"]) == 3
    cosines = [each["similarity"] for each in answer["contextual"]]
    assert cosines == sorted(cosines, reverse=True)
    for each in answer["contextual"]:
        assert 0 <= each["position"] < len(each["sentence"])
    assert "bank" not in [each["word"] for each in answer["static"]]


def test_at_the_spelling_layer_the_same_word_is_nearest(server):
    _, answer = server.post("/v1/neighbours", {"sentence": ["a", "bank"], "position": 1, "layer": 0, "top": 2})
    for each in answer["contextual"]:
        assert each["sentence"][each["position"]] == "bank"
        assert each["similarity"] == pytest.approx(1, abs=1e-5)


def test_static_vectors_have_their_own_neighbours(server):
    encoder = server.service.catalogue.find("vectors").encoder
    _, answer = server.post(
        "/v1/neighbours", {"model": "vectors", "sentence": ["the", "bank"], "position": 1, "top": 2}
    )
    expected = encoder.nearest("bank", 2)
    assert [each["word"] for each in answer["static"]] == [word for word, _ in expected]
    _, unknown = server.post("/v1/neighbours", {"model": "vectors", "sentence": ["zzz"], "position": 0})
    assert "zzz" not in WORDS
    assert (unknown["contextual"], unknown["static"]) == ([], [])


def test_predictions_are_the_language_models(server):
    words = ["He", "sat", "on", "the", "bank"]
    model = server.service.catalogue.default.language_model
    _, answer = server.post("/v1/predict", {"sentence": words, "position": 3, "top": 4})
    expected = {
        "forward": model.predict_next(words[:3], 4),
        "backward": model.predict_previous(words[4:], 4),
        "both": model.substitutes(words, 3, 4),
    }
    for way, found in expected.items():
        assert [each["word"] for each in answer[way]] == [word for word, _ in found]
        assert [each["probability"] for each in answer[way]] == pytest.approx([share for _, share in found])
    status, refused = server.post("/v1/predict", {"model": "other", "sentence": words, "position": 3})
    assert (status, refused["error"]["where"]) == (404, ["model"])


def test_without_a_tagger_there_are_no_labels(server):
    assert server.post("/v1/tag", {"text": "He sat."})[0] == 404


def test_a_tagger_labels_words_and_tells_its_mix(tmp_path, fixtures):
    from polyseme import Tagger
    from polyseme.tasks.fitting.loop import FitSettings

    sentences = [["He", "sat"], ["Paris", "is", "far"]]
    labels = [["O", "O"], ["B-LOC", "O", "O"]]
    fitted = Tagger(fixtures / "tiny", fit_settings=FitSettings(epochs=1)).fit(sentences, labels)
    fitted.save(tmp_path / "places")
    opened = open_catalogue([str(fixtures / "tiny"), str(fixtures / "tiny")], str(tmp_path / "places"))
    assert list(opened.models) == ["tiny", "tiny-2"]
    with running(Catalogue([opened.default], opened.tagger, opened.tagger_name)) as server:
        status, answer = server.post("/v1/tag", {"text": "Paris is far. He sat."})
        assert status == 200
        words = [each["words"] for each in answer["sentences"]]
        assert [each["labels"] for each in answer["sentences"]] == fitted.predict(words)
        assert answer["sentences"][1]["spans"][0] == [14, 16]
        about = server.service.catalogue.describe()["tagger"]
    assert about["id"] == "places"
    assert sum(about["mixes"]["input"][0]["weights"]) == pytest.approx(1)
