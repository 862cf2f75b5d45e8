"""Distillation of contextual vectors into static ones, and spherical k-means."""

import numpy as np
import pytest
from sensible_embedder import MONEY, RIVER, Sensible
from tiny_models import make_encoder

from polyseme.corpus.distil import DistilSettings, distil, make_plan
from polyseme.corpus.kmeans import spherical_kmeans
from polyseme.embedding.layers import choose
from polyseme.errors import ConfigError, InputError

TEXT = ["He sat on the bank .", "", "The bank lent the money .", "the bank , the bank", "rare words here"]
SENTENCES = [line.split() for line in TEXT]


def run(embedder, sentences, **changes):
    settings = DistilSettings(**changes)
    return distil(embedder, sentences, make_plan(embedder, sentences, settings), settings)


@pytest.mark.parametrize("layer", [0, 2, "average", "top"])
def test_a_vector_is_the_average_over_all_contexts(layer):
    encoder = make_encoder()
    result = run(encoder, SENTENCES, layer=layer, min_count=2)
    assert result.words == ["bank", "the", "."]  # by frequency, then by alphabet
    seen = {word: [] for word in result.words}
    for words, vectors in zip(SENTENCES, encoder.embed(SENTENCES), strict=True):
        for word, vector in zip(words, choose(vectors, layer), strict=True):
            seen.get(word, []).append(vector)
    for word, vector in zip(result.words, result.vectors, strict=True):
        np.testing.assert_allclose(vector, np.mean(seen[word], axis=0), rtol=0, atol=1e-6)
    assert result.senses == []


def test_words_that_differ_in_case_can_be_one():
    result = run(make_encoder(), SENTENCES, min_count=2, lower=True)
    assert result.words == ["the", "bank", "."]
    encoder = make_encoder()
    vectors = [vector for words, layers in zip(SENTENCES, encoder.embed(SENTENCES), strict=True)
               for word, vector in zip(words, layers.mean(axis=0), strict=True) if word.lower() == "the"]  # fmt: skip
    np.testing.assert_allclose(result.vectors[0], np.mean(vectors, axis=0), rtol=0, atol=1e-6)


def test_the_most_frequent_words_are_kept():
    assert run(make_encoder(), SENTENCES, min_count=1, max_words=2).words == ["bank", "the"]


def test_sentences_without_a_wanted_use_are_not_embedded():
    embedded = []

    class Watched(Sensible):
        def embed(self, sentences):
            def watched():
                for words in sentences:
                    embedded.append(words)
                    yield words

            return super().embed(watched())

    run(Watched(), SENTENCES, min_count=2)
    assert SENTENCES[-1] not in embedded
    embedded.clear()
    run(Watched(), [["bank"]] * 50, uses=3)
    assert len(embedded) == 3


def test_uses_are_sampled_at_random_and_the_same_for_the_same_seed():
    sentences = [["bank", f"w{number}"] for number in range(60)]
    first, again, other = (run(make_encoder(), sentences, uses=5, seed=seed).vectors for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_uses_in_two_senses_get_two_vectors():
    sentences = [line.split() for line in [*RIVER, *MONEY, *RIVER]]
    result = run(Sensible(), sentences, layer=2, senses=2, min_count=3, lower=True)
    bank = {sense.key: sense for sense in result.senses if sense.key.startswith("bank#")}
    assert {key: sense.uses for key, sense in bank.items()} == {"bank#1": 8, "bank#2": 4}
    assert all(
        "[bank]" in context and context.replace("[bank]", "bank") in RIVER for context in bank["bank#1"].contexts
    )
    assert all(context.replace("[", "").replace("]", "") in MONEY for context in bank["bank#2"].contexts)
    assert len(bank["bank#1"].contexts) == 3
    assert result.words == [sense.key for sense in result.senses]
    expected = [
        v[2, [w.lower() for w in words].index("bank")] for words in sentences[:4] for v in Sensible().embed([words])
    ]
    np.testing.assert_allclose(result.vectors[result.words.index("bank#1")], np.mean(expected, axis=0), atol=1e-5)


def test_a_word_with_few_uses_or_all_alike_has_one_sense():
    sentences = [line.split() for line in [*RIVER, *MONEY]]
    assert "bank#2" not in run(Sensible(), sentences, layer=2, senses=2, min_count=5, lower=True).words
    assert "bank#2" not in run(Sensible(), sentences, layer=0, senses=4, min_count=1, lower=True).words


def test_senses_of_a_word_do_not_depend_on_other_words():
    rng = np.random.default_rng(0)
    text = [[f"w{number}" for number in rng.integers(20, size=8)] for _ in range(80)]
    alone = run(make_encoder(), text, senses=3, max_words=1)
    among = run(make_encoder(), text, senses=3, max_words=10)
    count = len(alone.words)
    assert among.words[:count] == alone.words
    np.testing.assert_array_equal(among.vectors[:count], alone.vectors)


def test_a_long_context_is_cut():
    words = [f"w{number}" for number in range(50)]
    (sense,) = run(Sensible(), [[*words, "bank", *words]], senses=2, min_count=1, max_words=1, lower=True).senses[:1]
    assert len(sense.contexts[0].split()) < 30
    assert sense.contexts[0].endswith("…")


def test_what_is_too_much_is_refused_before_the_work():
    for changes in ({}, {"senses": 3}):
        with pytest.raises(ConfigError, match="GB allowed; lower max_words or uses, or raise min_count or memory"):
            make_plan(make_encoder(), SENTENCES, DistilSettings(min_count=1, memory=100, **changes))


@pytest.mark.parametrize("sentences", [[], [[]], [["a", "b"]]])
def test_a_text_without_frequent_words_is_refused(sentences):
    with pytest.raises(InputError, match="no word of the text occurs 5 times"):
        run(make_encoder(), sentences)


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(ConfigError, match="expected one layer, not all"):
        run(make_encoder(), SENTENCES, layer="all")
    with pytest.raises(ConfigError, match="there is no layer 7"):
        run(make_encoder(), SENTENCES, layer=7)
    with pytest.raises(ConfigError, match="senses must be 1 or more"):
        DistilSettings(senses=0)


def test_a_text_that_changed_meanwhile_is_refused():
    settings = DistilSettings(min_count=1)
    plan = make_plan(make_encoder(), SENTENCES, settings)
    with pytest.raises(InputError, match="not the one that was counted"):
        distil(make_encoder(), SENTENCES[:2], plan, settings)


def test_planted_clusters_are_found_the_largest_first():
    rng = np.random.default_rng(0)
    centres = 5 * rng.standard_normal((3, 20))
    truth = np.repeat([0, 1, 2], [10, 40, 20])
    vectors = (centres[truth] + rng.standard_normal((70, 20))) * rng.uniform(0.5, 2, (70, 1))
    labels = spherical_kmeans(vectors, 3, rng)
    np.testing.assert_array_equal(labels, np.array([2, 0, 1])[truth])


def test_equal_vectors_are_one_cluster():
    assert spherical_kmeans(np.ones((9, 4)), 3, np.random.default_rng(0)).tolist() == [0] * 9
    assert spherical_kmeans(np.zeros((9, 4)), 3, np.random.default_rng(0)).max() == 0
