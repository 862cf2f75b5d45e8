import numpy as np
import pytest
import torch
from language_models import WORDS, make_language_model, save_language_model
from tiny_models import make_encoder

import polyseme
from polyseme.backends.elmo.encoder import ElmoEncoder
from polyseme.errors import ConfigError, FormatError, InputError
from polyseme.lm import LanguageModel
from polyseme.model import join
from polyseme.model.softmax import SoftmaxConfig, build_softmax
from polyseme.text.vocabulary import Vocabulary

SENTENCES = [["He", "sat", "on", "the", "bank", "."], ["pneumonia"], [], ["the", "<S>", "of", "the", "</S>"] * 3]


def two_models_joined() -> LanguageModel:
    one = make_language_model(directions=("forward",))
    other = make_encoder(seed=1, directions=("backward",))
    return LanguageModel(join(one.bilm, other.bilm), one.softmax, one.words, one.vocabulary)


MODELS = {
    "full": make_language_model,
    "adaptive": lambda: make_language_model(cutoffs=(6,)),
    "word ids": lambda: make_language_model(words=list(WORDS), characters=None),
    "joined": two_models_joined,
    "three layers": lambda: make_language_model(num_layers=3, cell_clip=None, output_clip=None, residual=False),
}


def naive_scores(model: LanguageModel, words: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """By the biLM as it embeds, which reads both boundaries.

    Forward, its top layer at place i of ``<S> w1 … wn </S>`` has read everything up to place i and so predicts place
    i + 1; the last place has read ``</S>`` and predicts nothing. Backward it is the other way round.
    """
    batch = ElmoEncoder(model.bilm, model.words).collate([words])
    layers, _ = model.bilm(batch)
    forward, backward = layers[0, -1].chunk(2, dim=1)
    real = [word if word in WORDS[3:] else "<UNK>" for word in words]
    ids = torch.tensor([WORDS.index(word) for word in ("<S>", *real, "</S>")])
    every = [model.softmax.log_probs(half) for half in (forward, backward)]
    places = range(len(words) + 1)
    return (
        np.array([float(every[0][place, ids[place + 1]].detach()) for place in places]),
        np.array([float(every[1][place + 1, ids[place]].detach()) for place in places]),
    )


@pytest.mark.parametrize("kind", MODELS)
def test_a_score_is_what_the_embedding_model_says(kind):
    model = MODELS[kind]()
    for score, words in zip(model.score_all(SENTENCES), SENTENCES, strict=True):
        forward, backward = naive_scores(model, words)
        np.testing.assert_allclose(score.forward, forward, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(score.backward, backward, rtol=1e-5, atol=1e-5)
        assert score.forward_sum == pytest.approx(forward.sum(), rel=1e-5)
        assert score.backward_sum == pytest.approx(backward.sum(), rel=1e-5)


def test_a_score_says_which_word_each_number_belongs_to():
    score = make_language_model().score(["the", "bank"])
    assert score.forward_words == ("the", "bank", "</S>")
    assert score.backward_words == ("<S>", "the", "bank")
    assert len(score.forward) == len(score.backward) == 3


def test_a_direction_does_not_know_what_it_has_not_read():
    model = make_language_model()
    one, other = model.score(["He", "sat", "on"]), model.score(["He", "sat", "of", "river"])
    np.testing.assert_allclose(one.forward[:2], other.forward[:2], atol=1e-6)
    one, other = model.score(["He", "sat", "on"]), model.score(["river", "of", "sat", "on"])
    np.testing.assert_allclose(one.backward[2:], other.backward[3:], atol=1e-6)


def test_scores_do_not_depend_on_the_company():
    model = make_language_model()
    together = list(model.score_all([*SENTENCES, *reversed(SENTENCES)]))
    for score, words in zip(together, [*SENTENCES, *reversed(SENTENCES)], strict=True):
        alone = model.score(words)
        assert score.words == tuple(words)
        np.testing.assert_allclose(score.forward, alone.forward, atol=1e-5)
        np.testing.assert_allclose(score.backward, alone.backward, atol=1e-5)


def test_a_stream_is_scored_as_it_comes(monkeypatch):
    monkeypatch.setattr("polyseme.lm.language_model.WINDOW", 20)
    taken = []
    stream = (taken.append(number) or ["the", "bank"] for number in range(1000))
    scores = make_language_model().score_all(stream)
    next(scores)
    assert len(taken) < 10


def test_very_long_sentences_are_read_in_parts(monkeypatch):
    model = make_language_model()
    words = ["the", "bank", "of", "unknown"] * 50
    whole = model.score(words)
    monkeypatch.setattr("polyseme.lm.scorer.CPU", (2, 3, 70))  # 7 words at a time
    parts = list(model.score_all([["He"], words, ["the", "river"], []]))
    np.testing.assert_allclose(parts[1].forward, whole.forward, atol=1e-5)
    np.testing.assert_allclose(parts[1].backward, whole.backward, atol=1e-5)
    np.testing.assert_allclose(parts[2].forward, model.score(["the", "river"]).forward, atol=1e-5)


def test_the_next_word_has_the_probability_that_a_score_gives_it():
    model = make_language_model()
    words = ["He", "sat", "on"]
    following, before = (
        dict(predict(words, top=99, special=True)) for predict in (model.predict_next, model.predict_previous)
    )
    assert set(following) == set(before) == set(WORDS)
    assert sum(following.values()) == pytest.approx(1)
    for word in ("river", "</S>"):
        score = model.score(words if word == "</S>" else [*words, word])
        assert following[word] == pytest.approx(np.exp(score.forward[3]), rel=1e-4)
    for word in ("river", "<S>"):
        score = model.score(words if word == "<S>" else [word, *words])
        assert before[word] == pytest.approx(np.exp(score.backward[0 if word == "<S>" else 1]), rel=1e-4)


def test_lists_are_sorted_and_leave_out_what_is_no_word():
    model = make_language_model()
    following, before = model.predict_next([], top=3), model.predict_previous([], top=99)
    assert len(following) == 3
    assert [share for _, share in following] == sorted((share for _, share in following), reverse=True)
    assert {word for word, _ in model.predict_next([], top=99)} == {"</S>", *WORDS[3:]}
    assert {word for word, _ in before} == {"<S>", *WORDS[3:]}
    assert {word for word, _ in model.substitutes(["x"], 0, top=99)} == set(WORDS[3:])
    assert {word for word, _ in model.substitutes(["x"], 0, top=99, special=True)} == {"<UNK>", *WORDS[3:]}


def test_substitutes_look_at_both_sides_and_not_at_the_word_itself():
    model = make_language_model()
    words = ["He", "sat", "on", "the", "bank", "."]
    for position in range(len(words)):
        found = dict(model.substitutes(words, position, top=99, special=True))
        assert sum(found.values()) == pytest.approx(1)
        other = [*words[:position], "___", *words[position + 1 :]]
        assert dict(model.substitutes(other, position, top=99, special=True)) == found
    changed = dict(model.substitutes(["He", "sat", "on", "the", "bank", "river"], 2, top=99))
    assert changed != dict(model.substitutes(words, 2, top=99))
    changed = dict(model.substitutes(["river", *words[1:]], 2, top=99))
    assert changed != dict(model.substitutes(words, 2, top=99))


def test_substitutes_are_the_product_of_both_sides_over_the_frequency_of_the_word():
    model = make_language_model()
    before, after = dict(model.predict_next(["He"], 99)), dict(model.predict_previous(["the", "."], 99))
    weights = {word: before[word] * after[word] * (rank + 2.7) for rank, word in enumerate(WORDS[3:], start=1)}
    expected = {word: weight / sum(weights.values()) for word, weight in weights.items()}
    assert dict(model.substitutes(["He", "?", "the", "."], 1, top=99)) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("way", ["forward", "backward"])
def test_a_model_of_one_direction_does_what_it_can(way):
    model = make_language_model(directions=(way,))
    score = model.score(["the", "bank"])
    other = "backward" if way == "forward" else "forward"
    assert getattr(score, way).shape == (3,)
    assert getattr(score, other) is getattr(score, f"{other}_sum") is None
    able, unable = model.predict_next, model.predict_previous
    if way == "backward":
        able, unable = unable, able
    assert able(["the"])
    with pytest.raises(ConfigError, match=f"reads {way} only; it cannot predict {other}"):
        unable(["the"])
    with pytest.raises(ConfigError, match="cannot see both sides of a gap; use predict_"):
        model.substitutes(["the"], 0)


def test_what_makes_no_sense_is_refused():
    model = make_language_model()
    for position in (-1, 1):
        with pytest.raises(InputError, match="position must be 0 to 0 in a sentence of 1 words"):
            model.substitutes(["the"], position)
    with pytest.raises(InputError, match="position must be"):
        model.substitutes([], 0)
    for top in (0, -5):
        with pytest.raises(ConfigError, match="top must be 1 or more"):
            model.predict_next(["the"], top=top)
    for ask in (model.score, model.predict_next, model.predict_previous):
        with pytest.raises(InputError, match="bare string"):
            ask("the bank")
        with pytest.raises(InputError, match="should be a string, not int"):
            ask(["the", 3])


def test_a_head_that_does_not_fit_is_refused():
    encoder = make_encoder()
    for words, dim in ((11, 7), (10, 6)):
        softmax = build_softmax(SoftmaxConfig(words, dim))
        with pytest.raises(ConfigError, match="the softmax is for"):
            LanguageModel(encoder.bilm, softmax, encoder.words, Vocabulary(WORDS))


def test_a_saved_model_is_the_same_language_model(tmp_path):
    model = make_language_model()
    folder = save_language_model(model, tmp_path / "model")
    for path in (folder, folder / "config.json"):
        loaded = polyseme.LanguageModel.load(path)
        assert loaded.name == "model"
        assert list(loaded.vocabulary) == list(WORDS)
        np.testing.assert_array_equal(loaded.score(SENTENCES[0]).forward, model.score(SENTENCES[0]).forward)
    with pytest.raises(ConfigError, match="device 'cuda:77' cannot be used here"):
        LanguageModel.load(folder, device="cuda:77")


def test_a_model_without_a_head_says_so(fixtures):
    for name in ("tiny", "bilm-relu"):
        with pytest.raises(FormatError, match="has no softmax: it gives vectors but predicts no words"):
            LanguageModel.load(fixtures / name)
    with pytest.raises(FormatError, match="does not exist"):
        LanguageModel.load(fixtures / "nothing")
    with pytest.raises(FormatError, match="is not a model that polyseme can open"):
        LanguageModel.load(fixtures / "relations.txt")
