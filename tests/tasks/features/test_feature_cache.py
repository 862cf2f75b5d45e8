"""Vectors of frozen encoders are computed once, and the cache stays within its budget."""

import os

import numpy as np
import pytest
from tiny_models import make_encoder

from polyseme.errors import ConfigError
from polyseme.tasks.features.feature_cache import CachedFeatures, FeatureCache, UncachedFeatures

SENTENCES = [["the", "bank"], [], ["He", "sat", "by", "the", "river"], ["bank"]]


@pytest.fixture
def embedded(encoder, monkeypatch):
    """The sentences that the encoder is asked about."""
    asked, embed = [], encoder.embed

    def watched(sentences):
        listed = list(sentences)
        asked.extend(listed)
        return embed(listed)

    monkeypatch.setattr(encoder, "embed", watched)
    return asked


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_vectors_are_those_of_embed_and_computed_once(encoder, embedded, tmp_path, dtype):
    for _ in range(2):
        kept = FeatureCache(tmp_path, dtype=dtype).features(encoder, SENTENCES)
        assert isinstance(kept, CachedFeatures)
    assert embedded == SENTENCES
    for number, (found, expected) in enumerate(
        zip(kept.take([0, 1, 2, 3]), make_encoder().embed(SENTENCES), strict=True)
    ):
        assert found.shape == (len(SENTENCES[number]), 3, 12)
        np.testing.assert_array_equal(found, expected.astype(dtype).transpose(1, 0, 2))


def test_another_model_or_other_sentences_have_other_vectors(encoder, tmp_path):
    cache = FeatureCache(tmp_path)
    cache.features(encoder, SENTENCES)
    cache.features(make_encoder(seed=1), SENTENCES)
    cache.features(encoder, [["a\tb"]])
    cache.features(encoder, [["a", "b"]])
    cache.features(encoder, [["a"], ["b"]])
    assert len(list(tmp_path.iterdir())) == 5


def test_what_is_beyond_the_budget_is_computed_whenever_it_is_needed(encoder, embedded, tmp_path):
    cache = FeatureCache(tmp_path, budget=100)
    fresh = cache.features(encoder, SENTENCES)
    assert isinstance(fresh, UncachedFeatures)
    assert embedded == []
    assert [array.shape for array in fresh.take([2, 1])] == [(5, 3, 12), (0, 3, 12)]
    assert embedded == [SENTENCES[2], SENTENCES[1]]
    assert "do not fit into the cache's" in cache.remarks[0]
    assert list(tmp_path.iterdir()) == []


def test_what_was_not_used_for_longest_goes_first(encoder, tmp_path):
    sets = [[[f"word{number}"] * 40] for number in range(3)]
    for number, sentences in enumerate(sets):
        FeatureCache(tmp_path).features(encoder, sentences)
        (newest,) = [file for file in tmp_path.iterdir() if file.stat().st_mtime > 1e6]
        os.utime(newest, (number, number))
    FeatureCache(tmp_path).features(encoder, sets[0])  # used again
    size = next(tmp_path.iterdir()).stat().st_size
    cache = FeatureCache(tmp_path, budget=3 * size)
    cache.features(encoder, [["another"] * 40])
    left = {file.name for file in tmp_path.iterdir()}
    assert len(left) == 3
    assert {f"{cache._key(encoder, sentences)}.npy" for sentences in (sets[0], sets[2])} < left


@pytest.mark.parametrize("damage", [lambda content: content[:-20], lambda content: b"", lambda content: b"x" * 300])
def test_a_damaged_file_is_made_anew(encoder, tmp_path, damage):
    before = [array.copy() for array in FeatureCache(tmp_path).features(encoder, SENTENCES).take([0, 2])]
    (file,) = tmp_path.iterdir()
    file.write_bytes(damage(file.read_bytes()))
    after = FeatureCache(tmp_path).features(encoder, SENTENCES).take([0, 2])
    assert all(np.array_equal(*pair) for pair in zip(before, after, strict=True))


def test_a_disk_that_is_full_costs_time_and_nothing_else(encoder, tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    cache = FeatureCache(tmp_path)
    assert isinstance(cache.features(encoder, SENTENCES), UncachedFeatures)
    assert "No space left on device" in cache.remarks[0]
    assert list(tmp_path.iterdir()) == []


def test_a_killed_run_leaves_nothing_that_is_taken_for_whole(encoder, tmp_path, monkeypatch):
    def killed(descriptor):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", killed)
        with pytest.raises(KeyboardInterrupt):
            FeatureCache(tmp_path).features(encoder, SENTENCES)
    assert list(tmp_path.iterdir()) == []
    left = tmp_path / ".abc.npy.x.unfinished"
    left.write_bytes(b"half")
    os.utime(left, (1, 1))
    FeatureCache(tmp_path).features(encoder, SENTENCES)
    assert not left.exists()


def test_numbers_beyond_float16_are_said(encoder, tmp_path, monkeypatch):
    monkeypatch.setattr(encoder, "embed", lambda sentences: (np.full((3, len(s), 12), 1e6, "f4") for s in sentences))
    with pytest.raises(ConfigError, match="beyond float16; keep them as float32"):
        FeatureCache(tmp_path).features(encoder, SENTENCES)
    assert isinstance(FeatureCache(tmp_path, dtype="float32").features(encoder, SENTENCES), CachedFeatures)


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(ConfigError, match="float16 or float32"):
        FeatureCache(dtype="int8")
    with pytest.raises(ConfigError, match="0 or more"):
        FeatureCache(budget=-1)


def test_no_words_at_all_have_no_vectors(encoder, tmp_path):
    assert FeatureCache(tmp_path).features(encoder, [[], []]).take([1])[0].shape == (0, 3, 12)
