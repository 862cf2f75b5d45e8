"""The quickest way to the vectors gives the same vectors, whatever the architecture, and sees when weights change."""

import copy
import pickle
import threading

import numpy as np
import pytest
import torch
from contract.test_encoders import CLOSE, KINDS, SENTENCES, build
from tiny_models import make_encoder

from polyseme.embedding.interfaces import EmbedSettings
from polyseme.errors import ConfigError
from polyseme.kernels import native

pytestmark = pytest.mark.skipif(native.library() is None, reason="the kernels were not compiled")
DOCUMENTS = [[SENTENCES[0], SENTENCES[2], SENTENCES[5]], [SENTENCES[1]], []]
every_kind = pytest.mark.parametrize("kind", [*KINDS, "joined"])
whole_kinds = pytest.mark.parametrize("kind", ["both", "joined"])  # between them they have every part
every_precision = pytest.mark.parametrize("precision", ["float32", "int8"])


def fresh(kind, **settings):
    encoder = build(kind)
    encoder.settings = EmbedSettings(**settings)
    return encoder


def embed(encoder, sentences=SENTENCES):
    return list(encoder.embed(sentences))


def assert_same(one, other):
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def assert_close(one, other):
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=CLOSE)


def furthest(one, other):
    return max(np.abs(mine - theirs).max(initial=0) for mine, theirs in zip(one, other, strict=True))


def tame(kind, **settings):
    """Weights of a usual size, with which a difference does not grow from step to step."""
    encoder = fresh(kind, **settings)
    with torch.no_grad():
        for parameter in encoder.parameters():
            if parameter.dim() > 1:
                parameter.div_(3)
    return encoder


@pytest.fixture
def pure(monkeypatch):
    """Call it, and the compiled kernels are gone."""
    return lambda: monkeypatch.setattr(native, "library", lambda: None)


@pytest.mark.parametrize("boundaries", [False, True])
@every_kind
def test_compiled_is_plain(kind, boundaries, pure):
    encoder = tame(kind, boundaries=boundaries)
    sentences, words = embed(encoder), encoder.embed_words(SENTENCES[0])
    documents = list(encoder.embed_documents(DOCUMENTS))
    assert encoder.cache_report.words  # it was the compiled way
    pure()
    plain = tame(kind, boundaries=boundaries)
    assert_close(sentences, embed(plain))
    assert_close([words], [plain.embed_words(SENTENCES[0])])
    for mine, theirs in zip(documents, plain.embed_documents(DOCUMENTS), strict=True):
        assert_close(mine, theirs)
    assert not plain.cache_report.words


@pytest.mark.parametrize("boundaries", [False, True])
@every_kind
def test_where_differences_grow_compiled_is_as_near_to_the_exact_numbers_as_plain(kind, boundaries, pure):
    exact = embed(fresh(kind, boundaries=boundaries).double())
    compiled = embed(fresh(kind, boundaries=boundaries))
    pure()
    plain = embed(fresh(kind, boundaries=boundaries))
    assert furthest(compiled, exact) <= 4 * furthest(plain, exact) + CLOSE


@pytest.mark.parametrize("boundaries", [False, True])
def test_compiled_is_plain_without_lstms(boundaries, pure):
    compiled, plain = (make_encoder(spread=1.0, num_layers=0) for _ in range(2))
    compiled.settings = plain.settings = EmbedSettings(boundaries=boundaries)
    expected = embed(compiled)
    pure()
    assert_close(embed(plain), expected)


def test_eight_bits_without_compiled_kernels_are_refused(pure):
    pure()
    with pytest.raises(ConfigError, match="int8"):
        embed(fresh("usual", precision="int8"))


@every_precision
@every_kind
def test_the_size_of_the_cache_changes_nothing(kind, precision):
    expected = embed(fresh(kind, precision=precision))
    for cache_words in (0, 1, 5):
        encoder = fresh(kind, precision=precision, cache_words=cache_words, word_budget=7)
        for _ in range(2):
            assert_same(embed(encoder), expected)


@every_precision
@every_kind
def test_the_number_of_threads_changes_nothing(kind, precision):
    expected = embed(fresh(kind, precision=precision))
    before = torch.get_num_threads()
    try:
        for threads in (2, 5):  # a direction each; more than the machine has: sentences shared out as well
            torch.set_num_threads(threads)
            assert_same(embed(fresh(kind, precision=precision)), expected)
    finally:
        torch.set_num_threads(before)


@every_precision
@whole_kinds
def test_a_step_of_training_is_seen(kind, precision):
    encoder = fresh(kind, precision=precision)
    before = embed(encoder)
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.01)
    layers, _ = encoder(encoder.collate(SENTENCES[:2]))
    layers.square().sum().backward()
    optimizer.step()
    trained = fresh(kind, precision=precision)
    trained.load_state_dict(encoder.state_dict())
    after = embed(encoder)
    assert_same(after, embed(trained))
    assert not np.array_equal(after[0], before[0])


@pytest.mark.parametrize("assign", [False, True])
@every_kind
def test_loaded_weights_are_seen(kind, assign):
    encoder, other = build(kind), build(kind)
    with torch.no_grad():  # both have as many changes behind them
        for mine, theirs in zip(encoder.parameters(), other.parameters(), strict=True):
            mine.mul_(1)
            theirs.mul_(0.5)
    embed(encoder)
    encoder.load_state_dict(other.state_dict(), assign=assign)
    assert_same(embed(encoder), embed(other))


@whole_kinds
def test_a_change_of_any_weight_is_seen(kind):
    encoder = build(kind)
    for parameter in encoder.parameters():
        embed(encoder)
        with torch.no_grad():
            parameter.mul_(0.5)
        expected = build(kind)
        expected.load_state_dict(encoder.state_dict())
        assert_same(embed(encoder, SENTENCES[:1]), embed(expected, SENTENCES[:1]))


@pytest.mark.parametrize("change", [{"precision": "int8"}, {"boundaries": True}, {"dtype": "float16"}])
def test_a_change_of_settings_is_seen(change):
    encoder = fresh("usual")
    embed(encoder)
    encoder.settings = EmbedSettings(**change)
    assert_same(embed(encoder), embed(fresh("usual", **change)))


def pickled(encoder):
    return pickle.loads(pickle.dumps(encoder))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, pickled])
@every_precision
@whole_kinds
def test_an_encoder_that_has_embedded_can_be_copied(kind, precision, duplicate):
    encoder = fresh(kind, precision=precision)
    expected = embed(encoder)
    twin = duplicate(encoder)
    assert_same(embed(twin), expected)
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.mul_(0.5)
    assert not np.array_equal(embed(twin)[0], expected[0])
    assert_same(embed(encoder), expected)


@every_kind
def test_in_eight_bits_a_sentence_alone_is_itself_in_any_company(kind):
    together = embed(fresh(kind, precision="int8"))
    encoder = fresh(kind, precision="int8", word_budget=30)
    assert_same(embed(encoder, SENTENCES[::-1]), together[::-1])
    for words, vectors in zip(SENTENCES, together, strict=True):
        assert_same(embed(encoder, [words]), [vectors])
        assert_same(embed(fresh(kind, precision="int8"), [words]), [vectors])


@every_kind
def test_eight_bits_point_every_word_of_every_layer_the_same_way(kind):
    """A number in 8 bits is off by 1/254 of its row's largest at most, so a sum by about a hundredth of its size.

    Three layers make that three hundredths at worst, and cos(0.03) is above 0.999.
    """
    exact, eight = embed(tame(kind)), embed(tame(kind, precision="int8"))
    assert furthest(exact, eight) > CLOSE  # it was really 8 bits
    for one, other in zip(exact, eight, strict=True):
        lengths = np.linalg.norm(one, axis=2) * np.linalg.norm(other, axis=2)
        assert ((one * other).sum(axis=2) > 0.999 * lengths).all()


@every_kind
def test_two_threads_on_one_model_agree_in_eight_bits(kind):
    expected = embed(fresh(kind, precision="int8"))
    encoder, results = fresh(kind, precision="int8", cache_words=5, word_budget=30), []

    def work():
        results.append([embed(encoder) for _ in range(3)])

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 2
    for run in results:
        for vectors in run:
            assert_same(vectors, expected)


# ---- claims that do not hold yet --------------------------------------------------------------------------------


def test_a_model_made_in_inference_mode_embeds():
    with torch.inference_mode():
        encoder = build("usual")
    assert_same(embed(encoder), embed(build("usual")))


def test_an_interrupted_call_leaves_the_cache_whole(monkeypatch):
    encoder = build("usual")
    embed(encoder, SENTENCES[:1])

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(encoder.words), "encode", interrupt)
        with pytest.raises(KeyboardInterrupt):
            embed(encoder)
    assert_same(embed(encoder), embed(build("usual")))
