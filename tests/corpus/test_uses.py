"""Uses of words: finding them, embedding them, choosing a layer."""

import numpy as np
import pytest
from sensible_embedder import SENTENCES, Sensible

from polyseme.corpus.uses import Reservoir, Use, bundled_sentences, embed_all, embed_uses, find_place, find_uses
from polyseme.embedding.layers import Mix
from polyseme.errors import ConfigError, InputError


def test_uses_are_found_whatever_the_case():
    uses = find_uses(SENTENCES, "bank")
    assert len(uses) == 8
    assert {use.word for use in uses} == {"bank", "Bank"}
    assert [use.word for use in find_uses(SENTENCES, "Bank", match_case=True)] == ["Bank"]


def test_the_uses_in_one_sentence_share_it():
    first, second = find_uses([["to", "bank", "or", "to", "pay"]], "to")
    assert first.words is second.words


def test_a_limit_keeps_so_many_in_order_and_always_the_same():
    every = find_uses(SENTENCES, "the")
    some = find_uses(SENTENCES, "the", limit=3)
    assert len(some) == 3
    assert some == find_uses(SENTENCES, "the", limit=3)
    assert [use for use in every if use in some] == some


def test_each_use_is_as_likely_as_any_other_to_be_kept():
    kept = np.zeros(6)
    for seed in range(2000):
        reservoir = Reservoir(2, seed)
        for number in range(6):
            reservoir.add(Use((str(number),), 0))
        for use in reservoir.uses():
            kept[int(use.word)] += 1
    assert (np.abs(kept / 2000 - 2 / 6) < 0.05).all()


def test_a_corpus_without_the_word_is_one_sentence():
    with pytest.raises(InputError, match="no use of 'zebra'"):
        find_uses(SENTENCES, "zebra")


def test_vectors_are_those_of_the_word_in_its_sentence():
    uses = embed_uses(Sensible(), find_uses(SENTENCES, "bank"))
    for number, use in enumerate(uses):
        (vectors,) = Sensible().embed([use.words])
        np.testing.assert_array_equal(uses.vectors(1)[number], vectors[1, use.place])
        np.testing.assert_array_equal(uses.vectors("top")[number], vectors[2, use.place])
        np.testing.assert_allclose(uses.vectors("average")[number], vectors[:, use.place].mean(axis=0), atol=1e-6)
        mixed = 2 * (0.5 * vectors[0] + 0.5 * vectors[2])[use.place]
        np.testing.assert_allclose(uses.vectors(Mix((0.5, 0, 0.5), 2.0))[number], mixed, atol=1e-6)


def test_a_sentence_is_embedded_once_for_all_its_uses():
    class Counting(Sensible):
        seen = 0

        def embed(self, sentences):
            for words in sentences:
                self.seen += 1
                yield from super().embed([words])

    counting = Counting()
    assert len(embed_all(counting, SENTENCES)) == sum(map(len, SENTENCES))
    assert counting.seen == len(SENTENCES)


def test_a_layer_that_was_not_kept_is_named():
    uses = embed_uses(Sensible(), find_uses(SENTENCES, "bank"), layer=1)
    assert uses.vectors(1).shape == (8, 16)
    with pytest.raises(ConfigError, match="layer 2 is not stored"):
        uses.vectors("top")
    with pytest.raises(ConfigError, match="there is no layer 7"):
        uses.vectors(7)
    with pytest.raises(ConfigError, match="expected one layer"):
        uses.vectors("all")


def test_a_word_that_stands_twice_needs_its_occurrence():
    words = ["the", "bank", "of", "the", "Bank"]
    assert find_place(words, "bank") == 1
    assert find_place(words, "BANK", 2) == 4
    assert find_place(words, "the", 2) == 3
    with pytest.raises(InputError, match="'the' occurs 2 times"):
        find_place(words, "the")
    with pytest.raises(InputError, match="no occurrence 3"):
        find_place(words, "the", 3)
    with pytest.raises(InputError, match="'zebra' is not in the sentence"):
        find_place(words, "zebra")


def test_a_model_with_boundary_words_is_refused(encoder):
    from dataclasses import replace

    encoder.settings = replace(encoder.settings, boundaries=True)
    with pytest.raises(ConfigError, match="without boundaries"):
        embed_uses(encoder, find_uses(SENTENCES, "bank"))


def test_the_bundled_sentences_cover_what_they_promise():
    sentences = bundled_sentences()
    assert 400 <= len(sentences) <= 500
    assert len({" ".join(words) for words in sentences}) == len(sentences)
    promised = """bank play stick spring Paris put light match bat bark crane date fair jam kind lead leaves mean mine
    nail park pitcher plant point right ring rock saw seal spell star table tie train watch wave well wind apple
    Washington Jordan turkey read cut set hit"""
    for word in promised.split():
        assert len(find_uses(sentences, word)) >= 5, word
