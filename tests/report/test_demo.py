"""The demo on models that are no English one: it runs on any, and says what it cannot show."""

import sys

import numpy as np
import pytest
from language_models import make_language_model, save_language_model
from planted_senses import Planted
from static_models import make_static
from tiny_models import make_encoder

from polyseme.report.demo import COMPARED, QUERIES, UNSEEN, compare, expect, labelled_uses, nearest_in_bundle, relatives


@pytest.fixture
def language_model(tmp_path):
    return save_language_model(make_language_model(), tmp_path / "my-model")


def test_every_example_holds_its_word_once():
    for word, sentence, others in COMPARED:
        assert all(f" {text} ".replace(".", " ").split().count(word) == 1 for text in (sentence, *others))
    assert {word for word, _ in QUERIES} <= {word for word, *_ in COMPARED}
    for word, senses in labelled_uses().items():
        assert len(senses) > 1
        assert all(use.word == word for group in senses.values() for use in group)
        assert min(map(len, senses.values())) >= 5


def test_the_context_free_layer_sees_no_difference(encoder):
    found = compare(encoder)
    assert len(found) == sum(len(others) for *_, others in COMPARED)
    for pair in found:
        assert pair.first.word == pair.second.word
        assert pair.cosines[0] == pytest.approx(1, abs=1e-5)
        assert all(cosine < 0.99999 for cosine in pair.cosines[1:])


def test_nearest_uses_are_of_the_same_word_and_relatives_of_the_nearest_spelling(encoder):
    for asked in nearest_in_bundle(encoder, top=2):
        assert [one.use.word.lower() for one in asked.found] == [asked.use.word] * 2
    words = [word for word, _ in UNSEEN]
    for one in relatives(encoder, words, top=2):
        assert one.found[0] == (one.word, pytest.approx(1, abs=1e-5))


def test_what_was_expected_comes_from_either_side_and_from_both():
    expected = expect(make_language_model(), top=3)
    assert expected.words[expected.place] == "___"
    columns = (expected.forward, expected.backward, expected.both)
    assert all(len(column) == 3 for column in columns)
    assert len({tuple(word for word, _ in column) for column in columns}) > 1


def test_the_demo_has_every_part_and_one_picture(call, language_model, tmp_path):
    outcome = call("demo", "--model", language_model, "--plot", tmp_path / "senses.png")
    assert outcome.status == 0, outcome.err
    for shown in ("She put her book", "Paris Hilton", "layer 2", "400 sentences", UNSEEN[0][0], "from the words after"):
        assert shown in outcome.out
    assert (tmp_path / "senses.png").read_bytes().startswith(b"\x89PNG")


def test_a_model_without_a_head_shows_all_but_what_it_expected(call, fixtures):
    outcome = call("demo", "--model", fixtures / "tiny")
    assert outcome.status == 0, outcome.err
    assert "Paris Hilton" in outcome.out
    assert "by the words before" not in outcome.out


def test_of_many_layers_some_are_shown_and_the_last_among_them(call, monkeypatch, fixtures):
    monkeypatch.setattr("polyseme.loading.load", lambda *_, **__: make_encoder(num_layers=12))
    lines = call("demo", "--model", fixtures / "tiny").out.splitlines()
    heading = next(line for line in lines if "no context" in line)
    assert heading.partition("no context")[2].split() == ["layer", "3", "layer", "6", "layer", "9", "layer", "12"]
    assert max(map(len, lines)) <= 100


def test_static_vectors_know_one_use_and_no_new_word(call, tmp_path):
    words = sorted({word for _, sentence, others in COMPARED for text in (sentence, *others) for word in text.split()})
    numbers = np.random.default_rng(0).normal(size=(len(words), 3))
    lines = [" ".join([word, *map(str, row)]) for word, row in zip(words, numbers, strict=True)]
    (tmp_path / "list.txt").write_text("\n".join(lines) + "\n")
    outcome = call("demo", "--model", tmp_path / "list.txt")
    assert outcome.status == 0, outcome.err
    assert "nothing: the model has no vector for it" in outcome.out


def test_without_matplotlib_there_is_a_sentence_and_no_picture(call, language_model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    outcome = call("demo", "--model", language_model, "--plot", tmp_path / "senses.png")
    assert outcome.status == 0, outcome.err
    assert "no figure: " in outcome.out
    assert "polyseme[analysis]" in outcome.out
    assert "from both" in outcome.out
    assert not (tmp_path / "senses.png").exists()


def test_a_picture_that_cannot_be_written_is_refused_before_any_work(call, language_model, tmp_path):
    outcome = call("demo", "--model", language_model, "--plot", tmp_path / "senses.doc")
    assert outcome.status == 2
    assert outcome.out == ""
    assert "ends in .png" in outcome.err


def test_any_embedder_can_be_compared():
    assert len(compare(Planted())[0].cosines) == Planted.num_layers
    assert all(not one.found for one in relatives(make_static(), ["bank", "river"]))
