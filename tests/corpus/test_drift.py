"""Semantic drift between two corpora: changed words rank above unchanged ones."""

import random

import pytest
from sensible_embedder import Sensible

from polyseme.corpus.drift import DriftSettings, compare_corpora, draw_drift
from polyseme.errors import ConfigError, InputError
from polyseme.plots import save_figure

SMALL = DriftSettings(skip=0, least=5, permutations=100)
FILLER = ["old", "new", "big", "small", "far", "near", "dark", "cold", "warm", "wet"]


def corpus(seed, topic):
    """Sentences in which ``bank`` occurs with one topic and ``tree`` with any."""
    chance = random.Random(seed)

    def sentence(word, topics):
        return [*chance.choices(FILLER, k=chance.randint(1, 5)), word, chance.choice(topics)]

    both = ["river", "boat", "money", "loan"]
    return [sentence("bank", topic) for _ in range(30)] + [sentence("tree", both) for _ in range(30)]


@pytest.fixture(scope="module")
def corpora():
    return corpus(1, ["river", "boat"]), corpus(2, ["money", "loan"])


@pytest.mark.parametrize("measure", ["prototype", "pairwise"])
def test_the_word_that_changed_comes_first(corpora, measure):
    settings = DriftSettings(words=("tree", "bank"), least=5, permutations=100, measure=measure)
    drift = compare_corpora(Sensible(), *corpora, layer="top", settings=settings)
    first, second = drift.changes
    assert (first.word, second.word) == ("bank", "tree")
    assert first.p < 0.02 < second.p
    assert first.change > 0.3
    assert abs(second.change) < 0.1
    assert first.counts == (30, 30)


def test_examples_come_from_their_own_corpus(corpora):
    settings = DriftSettings(words=("bank",), least=5, permutations=10, examples=3)
    (change,) = compare_corpora(Sensible(), *corpora, settings=settings).changes
    assert all({"river", "boat"} & set(use.words) for use in change.examples[0])
    assert all({"money", "loan"} & set(use.words) for use in change.examples[1])


def test_two_halves_of_one_corpus_differ_by_chance_only():
    one, other = corpus(1, ["river", "money"]), corpus(2, ["river", "money"])
    drift = compare_corpora(Sensible(), one, other, settings=DriftSettings(words=("bank", "tree"), least=5))
    assert all(change.p > 0.05 for change in drift.changes)
    assert drift.typical == pytest.approx(0, abs=0.05)


def test_words_are_those_that_both_have_often(corpora):
    words = {change.word for change in compare_corpora(Sensible(), *corpora, settings=SMALL).changes}
    assert words == {"bank", "tree", *FILLER} | ({"river", "boat", "money", "loan"} & words)
    fewer = DriftSettings(skip=2, most=3, least=5, permutations=10)
    assert len(compare_corpora(Sensible(), *corpora, settings=fewer).changes) == 3


def test_the_same_seed_gives_the_same(corpora):
    assert compare_corpora(Sensible(), *corpora, settings=SMALL) == compare_corpora(
        Sensible(), *corpora, settings=SMALL
    )


def test_what_cannot_be_compared_is_told(corpora):
    one, other = corpora
    with pytest.raises(InputError, match="'zebra' occurs 0 and 0 times"):
        compare_corpora(Sensible(), one, other, settings=DriftSettings(words=("zebra",)))
    with pytest.raises(InputError, match="nothing is left"):
        compare_corpora(Sensible(), one, other, settings=DriftSettings(least=1000))
    with pytest.raises(InputError, match="no words in it"):
        compare_corpora(Sensible(), one, [])
    with pytest.raises(ConfigError, match="read twice"):
        compare_corpora(Sensible(), iter(one), other)
    with pytest.raises(ConfigError, match="Did you mean 'pairwise'"):
        DriftSettings(measure="pairwises")
    with pytest.raises(ConfigError, match="2 or more"):
        DriftSettings(uses=1)


def test_vectors_that_know_no_context_see_no_change(corpora):
    settings = DriftSettings(words=("bank", "tree"), least=5, permutations=20)
    changes = compare_corpora(Sensible(), *corpora, layer=0, settings=settings).changes
    assert [change.change for change in changes] == pytest.approx([0, 0], abs=1e-5)


def test_a_picture_is_drawn(corpora, tmp_path):
    save_figure(draw_drift(compare_corpora(Sensible(), *corpora, settings=SMALL)), tmp_path / "drift.png")
    assert (tmp_path / "drift.png").stat().st_size > 5000
