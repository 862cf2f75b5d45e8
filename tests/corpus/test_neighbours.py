"""Nearest neighbours of uses in context, and of words by static vectors."""

import numpy as np
import pytest
from sensible_embedder import SENTENCES, Sensible

from polyseme.corpus.neighbours import nearest_uses, static_neighbours
from polyseme.corpus.uses import Use, embed_all, embed_uses, find_uses
from polyseme.errors import ConfigError, InputError

USE = Use(("He", "sat", "on", "the", "river", "bank"), 5)


def test_the_nearest_uses_have_the_same_sense():
    found = nearest_uses(Sensible(), USE, embed_uses(Sensible(), find_uses(SENTENCES, "bank")), "top", top=4).found
    assert all({"river", "Water", "boat"} & set(neighbour.use.words) for neighbour in found)
    assert [neighbour.cosine for neighbour in found] == sorted((n.cosine for n in found), reverse=True)


def test_a_layer_without_context_finds_all_alike():
    found = nearest_uses(Sensible(), USE, embed_uses(Sensible(), find_uses(SENTENCES, "bank")), 0, top=8).found
    assert [round(neighbour.cosine, 5) for neighbour in found] == [1.0] * 8


def test_among_all_words_are_others_too():
    result = nearest_uses(Sensible(), USE, embed_all(Sensible(), SENTENCES), "top", top=10)
    assert result.compared == sum(map(len, SENTENCES))
    assert {neighbour.use.word for neighbour in result.found} > {"bank"}


def test_a_use_is_not_its_own_neighbour_and_a_repeated_sentence_stands_once():
    sentences = [list(USE.words), *SENTENCES, *SENTENCES]
    found = nearest_uses(Sensible(), USE, embed_uses(Sensible(), find_uses(sentences, "bank")), 1, top=20).found
    assert len(found) == 8
    assert USE not in [neighbour.use for neighbour in found]


def test_cosines_are_those_of_the_vectors():
    among = embed_uses(Sensible(), find_uses(SENTENCES, "bank"))
    (query,) = Sensible().embed([USE.words])
    for neighbour in nearest_uses(Sensible(), USE, among, 1).found:
        (vectors,) = Sensible().embed([neighbour.use.words])
        one, other = query[1, USE.place], vectors[1, neighbour.use.place]
        assert neighbour.cosine == pytest.approx(one @ other / np.linalg.norm(one) / np.linalg.norm(other), abs=1e-5)


def test_a_word_without_a_vector_is_told():
    class Empty(Sensible):
        def embed(self, sentences):
            return (np.zeros((3, len(words), 16), np.float32) for words in sentences)

    with pytest.raises(InputError, match="no vector for 'bank'"):
        nearest_uses(Empty(), USE, embed_uses(Sensible(), find_uses(SENTENCES, "bank")))
    with pytest.raises(ConfigError, match="1 or more"):
        nearest_uses(Sensible(), USE, embed_uses(Sensible(), find_uses(SENTENCES, "bank")), top=0)


def test_static_neighbours_come_from_a_file_of_vectors(tmp_path, fixtures, monkeypatch):
    monkeypatch.setenv("POLYSEME_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "vectors.txt"
    path.write_text("bank 1 0 0.1\nmoney 1 0.1 0\nriver 0 1 0\nbanks 1 0 0.11\n")
    found = static_neighbours(path, "Bank", 2).found
    assert [neighbour.word for neighbour in found] == ["banks", "money"]
    with pytest.raises(InputError, match="'zebra' is not among"):
        static_neighbours(path, "zebra")
    with pytest.raises(ConfigError, match="does not hold static vectors"):
        static_neighbours(fixtures / "tiny", "bank")
