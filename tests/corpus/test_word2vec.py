"""Training word2vec on your own text."""

import itertools
import sys

import numpy as np
import pytest

from polyseme.corpus.word2vec import LONGEST, Word2VecSettings, fit_word2vec
from polyseme.errors import ConfigError, InputError, MissingExtraError

pytest.importorskip("gensim")
RNG = np.random.default_rng(0)
ANIMALS, PLANTS = ["cat", "dog", "cow", "pig", "hen", "fox"], ["oak", "elm", "fir", "yew", "ash", "fig"]
SENTENCES = [RNG.choice(group, 6).tolist() for _ in range(400) for group in (ANIMALS, PLANTS)]
SMALL = Word2VecSettings(dim=8, epochs=3)


def test_words_of_one_company_are_alike():
    result = fit_word2vec(SENTENCES, Word2VecSettings(dim=8, epochs=10, skip_gram=True))
    units = result.vectors / np.linalg.norm(result.vectors, axis=1, keepdims=True)
    cosines = {
        (one, other): units[result.words.index(one)] @ units[result.words.index(other)]
        for one, other in itertools.combinations(result.words, 2)
    }
    same = [cosine for (one, other), cosine in cosines.items() if (one in ANIMALS) == (other in ANIMALS)]
    across = [cosine for (one, other), cosine in cosines.items() if (one in ANIMALS) != (other in ANIMALS)]
    assert min(same) > max(across)


def test_the_same_text_and_seed_give_the_same_vectors():
    first, again = (fit_word2vec(SENTENCES, SMALL) for _ in range(2))
    assert first.words == again.words
    np.testing.assert_array_equal(first.vectors, again.vectors)
    other = fit_word2vec(SENTENCES, Word2VecSettings(dim=8, epochs=3, seed=2))
    assert not np.allclose(first.vectors, other.vectors)


def test_words_come_by_frequency_and_rare_ones_not_at_all():
    result = fit_word2vec([*SENTENCES, ["rare", "cat"]], SMALL)
    assert "rare" not in result.words
    assert result.counts == sorted(result.counts, reverse=True)
    assert sum(result.counts) == 6 * len(SENTENCES) + 1
    assert result.vectors.shape == (12, 8)


def test_long_sentences_are_read_to_the_end():
    result = fit_word2vec([["a"] * (LONGEST + 5) + ["late"] * 7, []], SMALL)
    assert dict(zip(result.words, result.counts, strict=True)) == {"a": LONGEST + 5, "late": 7}


def test_it_tells_how_far_it_is():
    reported = []
    fit_word2vec(SENTENCES, SMALL, lambda epoch, sentences: reported.append((epoch, sentences)))
    assert reported == [(epoch, 0) for epoch in range(4)]


def test_a_text_that_fails_in_the_middle_fails_and_does_not_hang():
    class Failing:
        times = 0

        def __iter__(self):
            self.times += 1
            yield from SENTENCES
            if self.times == 2:
                raise InputError("line 7 is not UTF-8")

    with pytest.raises(InputError, match="line 7"):
        fit_word2vec(Failing(), SMALL)


def test_what_cannot_be_trained_is_refused(monkeypatch):
    with pytest.raises(InputError, match="no word of the text occurs 5 times"):
        fit_word2vec([["a", "b"]])
    with pytest.raises(InputError, match="only once"):
        fit_word2vec(iter(SENTENCES))
    with pytest.raises(ConfigError, match="dim must be 1 or more"):
        Word2VecSettings(dim=0)
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(MissingExtraError, match=r"polyseme\[static\]"):
        fit_word2vec(SENTENCES)
