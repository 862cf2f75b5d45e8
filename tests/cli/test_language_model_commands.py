"""``polyseme perplexity`` and ``polyseme predict``, and how ``convert`` and ``info`` treat a head."""

import io
import json
import sys

import pytest
from language_models import WORDS, make_language_model, save_language_model

from polyseme.formats import open_extras, open_softmax
from polyseme.lm import LanguageModel, perplexity

TEXT = "He sat on the bank .\nthe river\n\nunheard-of bank\n"
DOCUMENTS = [[["He", "sat", "on", "the", "bank", "."], ["the", "river"]], [["unheard-of", "bank"]]]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "small-lm"
    return save_language_model(make_language_model(), folder, extras={"training.json": b"{}"})


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def refused(outcome, *parts):
    status, out, err = outcome
    assert (status, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    for part in parts:
        assert part in err


def test_perplexity_names_what_was_done(call, model, text):
    status, out, err = call("perplexity", model, text)
    assert (status, err) == (0, "")
    expected = [perplexity(LanguageModel.load(model), DOCUMENTS, carried=carried) for carried in (False, True)]
    lines = out.splitlines()
    assert lines[0] == "small-lm: perplexity, by the full softmax over 11 words"
    for line, found, state in zip(
        lines[2:4], expected, ("reset at each sentence", "carried within a document"), strict=True
    ):
        assert line.startswith(state)
        numbers = [float(part) for part in line.removeprefix(state).split()]
        assert numbers[:3] == pytest.approx([found.forward, found.backward, found.both], abs=0.006)
        assert numbers[3] == pytest.approx(found.bits_per_character, abs=0.0006)
    assert lines[4].startswith("13 tokens: 10 words and a boundary for each of 3 sentences, in 2 documents of 47 char")
    assert "10.0 % of the words are unknown and count as <UNK>" in lines[4]


def test_perplexity_of_standard_input_in_one_state_as_json(call, model, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(TEXT.encode()))))
    status, out, _ = call("perplexity", model, "-", "--carried", "--json", "-")
    assert status == 0
    payload = json.loads(out)
    assert (payload["model"], payload["softmax"], payload["known_words"]) == ("small-lm", "full", 11)
    (found,) = payload["results"]
    assert found["carried"] is True
    assert found["both"] == pytest.approx(perplexity(LanguageModel.load(model), DOCUMENTS, carried=True).both)


def test_perplexity_of_raw_text_counts_its_characters(call, model, tmp_path):
    path = tmp_path / "raw.txt"
    path.write_text("He sat on the  bank. The river wasn't far.\n\nThe  end", encoding="utf-8")
    status, out, _ = call("perplexity", model, path, "--raw", "--fresh")
    assert status == 0
    assert "carried" not in out
    assert "in 2 documents of 52 characters" in out
    assert "for each of 3 sentences" in out


def test_perplexity_of_nothing_is_refused(call, model, tmp_path, fixtures):
    empty = tmp_path / "empty.txt"
    empty.write_text("\n \n")
    refused(call("perplexity", model, empty), "there is no text to measure")
    refused(call("perplexity", model, tmp_path / "nothing.txt"), "no such file")
    refused(call("perplexity", fixtures / "tiny", fixtures / "relations.txt"), "has no softmax")
    refused(call("perplexity", tmp_path / "nowhere", fixtures / "relations.txt"), "does not exist")
    refused(call("perplexity", model, model / "softmax.safetensors"), "binary file")


def test_predict_shows_what_comes_next(call, model):
    status, out, err = call("predict", "He sat on", "--model", model, "--top", 3)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "He sat on [___]  small-lm"
    assert lines[1].split() == ["word", "probability"]
    expected = LanguageModel.load(model).predict_next(["He", "sat", "on"], top=3)
    assert [float(line.split()[-1]) for line in lines[2:]] == pytest.approx([share for _, share in expected], abs=6e-5)
    assert [line.split()[0] for line in lines[2:]] == [word for word, _ in expected]


def test_predict_backward_says_where_the_sentence_begins(call, model):
    status, out, _ = call("predict", "the bank.", "--model", model, "--direction", "backward", "--top", 99)
    assert status == 0
    assert out.startswith("[___] the bank .  small-lm\n")
    assert "<S> (sentence start)" in out
    assert "</S>" not in out
    assert "<UNK>" not in out


def test_predict_fills_each_gap(call, model):
    status, out, _ = call("predict", "___ sat on the ____.", "--model", model, "--json", "-")
    assert status == 0
    answers = json.loads(out)["answers"]
    assert [answer["position"] for answer in answers] == [0, 4]
    words = ["___", "sat", "on", "the", "____", "."]
    opened = LanguageModel.load(model)
    for answer in answers:
        assert answer["words"] == words
        expected = opened.substitutes(words, answer["position"])
        assert [(one["word"], pytest.approx(one["probability"])) for one in answer["found"]] == expected


def test_a_gap_can_be_seen_from_one_side(call, model):
    for direction in ("forward", "backward"):
        status, out, _ = call("predict", "He ___ on", "--model", model, "--direction", direction, "--top", 1)
        opened = LanguageModel.load(model)
        (word, _), *_ = opened.predict_next(["He"], 1) if direction == "forward" else opened.predict_previous(["on"], 1)
        assert status == 0
        assert out.startswith(f"He [___] on  small-lm, {direction} only\n")
        assert word in out


def test_predictions_that_make_no_sense_are_refused(call, model, fixtures):
    refused(call("predict", " ", "--model", model), "there are no words in ' '")
    refused(call("predict", "He", "--model", model, "--top", 0), "--top must be 1 or more")
    refused(call("predict", "He", "--model", model, "--direction", "backwards"), "Did you mean 'backward'?")
    refused(call("predict", "He", "--model", fixtures / "tiny"), "has no softmax")


def test_convert_carries_head_and_further_files_along(call, model, tmp_path):
    status, out, _ = call("convert", model, tmp_path / "packed", "--precision", "int8")
    assert status == 0
    assert "with its softmax over 11 words" in out
    assert list(open_softmax(tmp_path / "packed").vocabulary) == list(WORDS)
    assert open_extras(tmp_path / "packed") == {"training.json": b"{}"}
    status, _, err = call("convert", model, tmp_path / "packed", "--overwrite")
    assert (status, err) == (0, "")


def test_bilm_tfs_files_have_no_place_for_a_head(call, model, tmp_path):
    status, out, err = call("convert", model, tmp_path / "weights.hdf5")
    assert (status, err) == (0, "")
    assert "they have no place for its softmax" in out


def test_info_says_whether_there_is_a_head(call, model, fixtures):
    assert "by a softmax over 11 words" in call("info", model)[1]
    assert json.loads(call("info", fixtures / "tiny", "--json")[1])["predicts words"] == "no: it has no softmax"
