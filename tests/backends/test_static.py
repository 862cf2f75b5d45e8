"""Static vectors as an encoder; what all encoders promise is in ``tests/contract``."""

import pickle
import threading
from dataclasses import asdict

import numpy as np
import pytest
import torch
from static_models import WORDS, make_static, make_table

import polyseme
from polyseme.backends.static import Coverage, StaticEncoder, is_static, open_static
from polyseme.embedding.interfaces import EmbedSettings
from polyseme.errors import ConfigError, FormatError, InputError
from polyseme.formats.vectors import table


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYSEME_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def glove(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text("the 1 0 0\nbank 0 1 0\nriver 0 1 1\n")
    return path


@pytest.fixture(params=[False, True], ids=["frozen", "trainable"])
def encoder(request) -> StaticEncoder:
    return make_static(trainable=request.param)


def test_a_word_is_its_vector_wherever_it_stands(encoder):
    expected = make_table().vectors
    for vectors in encoder.embed([["the", "bank"], ["of", "the", "bank", "the"]]):
        assert vectors.shape[0] == 1
        np.testing.assert_array_equal(vectors[0, -1 if vectors.shape[1] == 2 else 2], expected[1])


def test_a_word_is_looked_for_as_it_is_and_then_in_lower_case(encoder):
    (vectors,) = encoder.embed([["Bank", "BANK", "The", "bank"]])
    table = make_table()
    np.testing.assert_array_equal(vectors[0], table.vectors[[2, 1, 0, 1]])


@pytest.mark.parametrize("trainable", [False, True])
def test_an_unknown_word_is_zero_or_the_mean(trainable):
    for unknown, expected in (("zero", np.zeros(5)), ("mean", make_table().vectors.mean(axis=0))):
        encoder = make_static(unknown=unknown, trainable=trainable)
        (vectors,) = encoder.embed([["the", "unseen"]])
        np.testing.assert_allclose(vectors[0, 1], expected, atol=1e-7)
        np.testing.assert_allclose(encoder.word_vectors(["unseen"])[0], expected, atol=1e-7)


def test_words_are_counted_by_how_they_were_found(encoder):
    list(encoder.embed([["the", "The", "unseen"], [], ["the", "Bank", "BANK", "Unseen"]]))
    assert encoder.coverage == Coverage(exact=3, lowered=2, unknown=2)
    assert dict(encoder.misread(["the", "The", "The", "unseen"])) == {
        "found in lower case only": 2,
        "unknown, and are zeros": 1,
    }


def test_threads_count_all_words():
    encoder = make_static()
    threads = [threading.Thread(target=lambda: list(encoder.embed([["the", "x"]] * 500))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert asdict(encoder.coverage) == {"exact": 2000, "lowered": 0, "unknown": 2000}


def test_more_words_than_are_remembered(monkeypatch):
    monkeypatch.setattr("polyseme.backends.static._KEPT", 2)
    encoder = make_static()
    for _ in range(2):
        assert encoder.rows([*WORDS, "unseen", "the"]).tolist() == [*range(len(WORDS)), len(WORDS), 0]


def test_mapped_pages_are_let_go(glove, monkeypatch):
    monkeypatch.setattr(table, "_TAKEN", 1)
    encoder = open_static(glove)
    for _ in range(3):
        np.testing.assert_array_equal(encoder.word_vectors(["bank", "the"]), [[0, 1, 0], [1, 0, 0]])
        assert encoder.nearest("bank", 1)[0].word == "river"


def test_frozen_vectors_have_nothing_to_train():
    encoder = make_static()
    assert list(encoder.parameters()) == []
    assert encoder.state_dict() == {}
    layers, _ = encoder(encoder.collate([["the"]]))
    assert not layers.requires_grad
    with pytest.raises(ConfigError, match="load trainable=True"):
        encoder.requires_grad_(True)
    encoder.requires_grad_(False)


def test_trainable_vectors_are_a_copy_that_learns():
    encoder = make_static(trainable=True)
    before = encoder.word_vectors(["the", "bank", "unseen"])
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
    layers, _ = encoder(encoder.collate([["the", "unseen"]]))
    layers.sum().backward()
    optimizer.step()
    after = encoder.word_vectors(["the", "bank", "unseen"])
    np.testing.assert_allclose(after - before, np.outer([-0.1, 0, -0.1], np.ones(5)), atol=1e-6)
    np.testing.assert_array_equal(encoder.table.vectors, make_table().vectors)
    assert encoder.nearest(after[0], 1)[0].word == "the"
    again = make_static(trainable=True)
    again.load_state_dict(encoder.state_dict())
    np.testing.assert_array_equal(again.word_vectors(["the"]), after[:1])


def test_neighbours_are_by_cosine(encoder, monkeypatch):
    monkeypatch.setattr(table, "ROWS", 2)
    vectors = make_table().vectors
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for row, word in enumerate(WORDS):
        cosines = units @ units[row]
        order = [number for number in np.argsort(-cosines) if number != row]
        found = encoder.nearest(word, 4)
        assert [near.word for near in found] == [WORDS[number] for number in order[:4]]
        np.testing.assert_allclose([near.cosine for near in found], cosines[order[:4]], atol=1e-6)
    assert len(encoder.nearest("the", 100)) == len(WORDS) - 1


def test_neighbours_of_many_vectors_are_those_of_each(encoder, monkeypatch):
    monkeypatch.setattr("polyseme.embedding.similarity.QUERIES", 2)
    vectors = np.random.default_rng(1).standard_normal((5, 5))
    without = [[], ["the"], ["the", "bank", "unseen"], WORDS, ["THE"]]
    together = encoder.nearest_to(vectors, 3, without)
    for vector, words, found in zip(vectors, without, together, strict=True):
        alone = encoder.nearest(vector, 3, words)
        assert [near.word for near in alone] == [near.word for near in found]
        assert [near.cosine for near in alone] == pytest.approx([near.cosine for near in found], abs=1e-6)
    assert together[3] == []
    assert "the" not in {near.word for near in (*together[1], *together[2], *together[4])}


def test_neighbours_of_what_is_not_there_are_refused(encoder):
    with pytest.raises(InputError, match="'unseen' is not among the 7 words"):
        encoder.nearest("unseen")
    with pytest.raises(InputError, match=r"should be of shape \(N, 5\)"):
        encoder.nearest(np.zeros(4))
    with pytest.raises(ConfigError, match="1 or more"):
        encoder.nearest("the", 0)
    with pytest.raises(InputError, match="bare string"):
        encoder.word_vectors("the")


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(ConfigError, match="Did you mean 'mean'"):
        make_static(unknown="means")
    with pytest.raises(ConfigError, match="no boundary words"):
        make_static(settings=EmbedSettings(boundaries=True))
    with pytest.raises(ConfigError, match="embeds whole documents"):
        list(make_static().embed_documents([[["the"]]]))


def test_load_opens_a_file_of_vectors(glove):
    encoder = polyseme.load(glove, unknown="mean", workers=2)
    assert (encoder.name, encoder.dim, encoder.num_layers) == ("glove.txt", 3, 1)
    (vectors,) = encoder.embed([["Bank", "unseen"]])
    np.testing.assert_allclose(vectors[0], [[0, 1, 0], [1 / 3, 2 / 3, 1 / 3]], atol=1e-7)
    assert polyseme.load(glove, trainable=True).weight.requires_grad
    assert polyseme.load(glove, cache=False).describe()["kept in"] == "memory"


def test_load_finds_the_words_of_a_matrix(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(2, dtype=np.float32))
    (tmp_path / "words").write_text("a\nb\n")
    encoder = polyseme.load(tmp_path / "x.npy", vocabulary=tmp_path / "words")
    np.testing.assert_array_equal(encoder.word_vectors(["b"]), [[0, 1]])


def test_what_is_meant_to_be_vectors_says_what_is_wrong(tmp_path):
    path = tmp_path / "empty.vec"
    path.write_text("")
    with pytest.raises(FormatError, match="is empty"):
        polyseme.load(path)


def test_vectors_are_told_from_other_files(tmp_path, fixtures, glove):
    assert is_static(glove)
    assert is_static(glove.rename(tmp_path / "glove"))
    assert not is_static(tmp_path)
    assert not is_static(tmp_path / "none.txt")
    assert not is_static(fixtures / "tiny" / "model.safetensors")
    assert not is_static(fixtures / "tiny" / "config.json")


def test_a_description_says_what_was_found(tmp_path):
    path = tmp_path / "x.bin"
    path.write_bytes(b"3 1\na \0\0\0\0a \0\0\0\0\xff \0\0\0\0")
    facts = polyseme.load(path).describe()
    assert facts["format"] == "word2vec binary"
    assert facts["words"] == 2
    assert facts["words that came twice"] == 1
    assert facts["words that were not UTF-8"] == 1


def test_a_fingerprint_tells_words_vectors_and_settings_apart():
    tables = [make_table(), make_table(seed=1), make_table(words=WORDS[::-1])]
    prints = [StaticEncoder(table).fingerprint() for table in tables]
    prints += [make_static(unknown="mean").fingerprint(), make_static(trainable=True).fingerprint()]
    assert len(set(prints)) == 5
    assert make_static().fingerprint() == prints[0]


@pytest.mark.parametrize("trainable", [False, True])
@pytest.mark.parametrize("cache", [False, True])
def test_an_encoder_goes_to_another_process(glove, trainable, cache):
    encoder = open_static(glove, trainable=trainable, cache=cache, unknown="mean")
    again = pickle.loads(pickle.dumps(encoder))
    words = ["bank", "The", "unseen"]
    np.testing.assert_array_equal(again.word_vectors(words), encoder.word_vectors(words))
    np.testing.assert_array_equal(next(again.embed([words])), next(encoder.embed([words])))
