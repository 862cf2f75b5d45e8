"""``polyseme tag`` as people run it."""

import json
import sys
from pathlib import Path

import pytest
from labelled_data import people

from polyseme.cli import fitting
from polyseme.tasks.fitting import loop as fit
from polyseme.tasks.tagging.schemes import convert

TINY = str(Path(__file__).parents[1] / "fixtures" / "tiny")
SETTINGS = (
    "tagger.cells=10",
    "tagger.layers=1",
    "tagger.dropout=0.1",
    "fit.rate=0.03",
    "fit.average=0",
    "fit.epochs=8",
    "fit.epoch_steps=1",
    "fit.batch_size=12",
)
QUICK = [part for setting in SETTINGS for part in ("--set", setting)]


def columns(sentences, labels, between=" "):
    rows = ["\n".join(map(between.join, zip(*pair, strict=True))) for pair in zip(sentences, labels, strict=True)]
    return "\n\n".join(rows) + "\n"


@pytest.fixture
def call(call, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POLYSEME_CACHE", str(tmp_path / "cache"))
    return call


@pytest.fixture(autouse=True)
def files(tmp_path):
    for number, name in enumerate(("train", "dev", "test")):
        (tmp_path / f"{name}.conll").write_text(
            "-DOCSTART- O\n\n" + columns(*people(60 if name == "train" else 20, number))
        )
    (tmp_path / "pos.conll").write_text(columns([["a", "B"]] * 20, [["low", "high"]] * 20, "\t"))
    (tmp_path / "words.conll").write_text(columns([["a"], ["b"]], [["O"], ["O"]]))
    (tmp_path / "text.txt").write_text("Ada Smith lives in Rome .\n\nin Oslo , Bob waits\n")
    (tmp_path / "raw.txt").write_text("Ada Smith lives in Rome. In Oslo, Bob waits.")


FIT = ("tag", "fit", "train.conll", "-o", "ner", *QUICK)
BARE = ("--encoder", "none")


def test_from_a_file_to_labels_and_a_score(call, tmp_path):
    pytest.importorskip("matplotlib")
    extras = ("--where", "both", "--plot", "layers.png", "--json", "fit.json")
    status, out, err = call(*FIT, "--dev", "dev.conll", "--encoder", TINY, *extras)
    assert status == 0, err
    assert err.count("epoch") >= 8
    assert "dev F1" in err
    assert "s_0" in out
    assert "γ" in out
    assert "output: tiny" in out
    assert (tmp_path / "layers.png").read_bytes().startswith(b"\x89PNG")
    learned = json.loads((tmp_path / "fit.json").read_text())
    assert len(learned["mixes"]["output"][0]["weights"]) == 3
    assert not (tmp_path / "ner.fitting").exists()

    status, out, _ = call("tag", "evaluate", "ner", "test.conll")
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()[2:5]] == ["LOC", "PER", "all"]
    status, out, _ = call("tag", "evaluate", "ner", "test.conll", "--json", "-")
    scores = json.loads(out)
    assert scores["entities"]["all"]["f1"] > 0.9
    assert scores["accuracy"] > 0.9

    status, out, err = call("tag", "predict", "ner", "text.txt")
    first, empty, last = map(json.loads, out.splitlines())
    assert (status, err) == (0, "")
    assert empty == {"words": [], "labels": [], "entities": []}
    assert last["words"] == ["in", "Oslo", ",", "Bob", "waits"]
    assert {"type": "PER", "begin": 0, "end": 2, "text": "Ada Smith"} in first["entities"]
    _, out, _ = call("tag", "predict", "ner", "raw.txt", "--raw", "--format", "conll")
    assert [line.split("\t")[0] for line in out.splitlines()][:7] == ["Ada", "Smith", "lives", "in", "Rome", ".", ""]
    _, out, _ = call("tag", "predict", "ner", "text.txt", "--format", "text")
    assert out.splitlines()[0].startswith("[Ada Smith PER] lives in")


def test_labels_that_are_no_entities(call):
    status, _, err = call("tag", "fit", "pos.conll", "-o", "pos", *QUICK, *BARE, "--held-out", "0.2")
    assert status == 0, err
    assert "dev accuracy" in err
    _, out, _ = call("tag", "predict", "pos", "text.txt", "--format", "text")
    assert out.splitlines()[0].split()[0] in ("Ada/high", "Ada/low")
    _, out, _ = call("tag", "evaluate", "pos", "pos.conll")
    assert out == "accuracy 100.0 % of 40 words\n"


def test_files_as_conll_2003_published_them_need_no_options(call, tmp_path, monkeypatch):
    monkeypatch.setattr(fitting, "SHIPPED", TINY)
    for number, name in enumerate(("eng.train", "eng.testa", "eng.testb")):
        sentences, labels = people(80 if number == 0 else 20, number)
        rows = [
            "\n".join(f"{word} NN I-NP {label}" for word, label in zip(words, convert(row, "IOB1"), strict=True))
            for words, row in zip(sentences, labels, strict=True)
        ]
        documents = "\n\n-DOCSTART- -X- O O\n\n".join("\n\n".join(rows[n : n + 7]) for n in range(0, len(rows), 7))
        (tmp_path / name).write_text(f"-DOCSTART- -X- -X- O\n\n{documents}\n\n")
    status, _, err = call("tag", "fit", "eng.train", "--dev", "eng.testa", "-o", "ner", *QUICK)
    assert status == 0, err
    config = json.loads((tmp_path / "ner" / "config.json").read_text())
    assert config["learned"]["scheme"] == "IOB1"
    assert [source["name"] for source in config["sources"]["encoder"]] == ["tiny"]
    status, out, err = call("tag", "evaluate", "ner", "eng.testb", "--json", "-")
    assert status == 0, err
    assert json.loads(out)["entities"]["all"]["f1"] > 0.9
    _, out, _ = call("tag", "predict", "ner", "text.txt", "--format", "conll")
    assert out.splitlines()[:2] == ["Ada\tI-PER", "Smith\tI-PER"]


def test_an_interrupted_fit_resumes_when_asked(call, tmp_path, monkeypatch):
    step, count = fit._step, 0
    brief = (*FIT, *BARE, "--dev", "dev.conll", "--set", "fit.epochs=3")

    def killed(*arguments):
        nonlocal count
        count += 1
        if count == 8:
            raise KeyboardInterrupt
        return step(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(fit, "_step", killed)
        status, _, err = call(*brief)
    assert status == 130
    assert "the same command with --resume continues after the last epoch" in err
    status, _, err = call(*brief)
    assert status == 2
    assert "ner.fitting holds an interrupted run; give --resume" in err
    status, _, err = call(*brief, "--resume")
    assert status == 0
    assert "epoch 1 of" not in err
    assert "epoch 3 of at most 3:" in err
    assert call(*brief, "--overwrite")[0] == 0
    assert not (tmp_path / "ner.fitting").exists()


def test_columns_are_not_taken_for_sentences(call):
    assert call(*FIT, *BARE)[0] == 0
    status, out, err = call("tag", "predict", "ner", "test.conll")
    assert (status, out) == (2, "")
    assert "`polyseme tag evaluate` reads columns" in err


def test_what_there_is_to_resume_is_said(call):
    status, _, err = call(*FIT, *BARE, "--resume")
    assert status == 0
    assert err.startswith("note: there is no unfinished run of ner; starting from the beginning")
    assert call(*FIT, *BARE, "--resume")[:2] == (0, "ner is already finished\n")


def test_colours_are_for_terminals(monkeypatch):
    from polyseme.cli.predictions import TAG_FORMATS, check_format, format_tags

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert check_format(None, TAG_FORMATS) == "text"
    text = format_tags(["Ada", "waits"], ["S-PER", "O"], True, "text")
    assert text.startswith("\x1b[")
    assert "[Ada PER]\x1b[0m waits" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*FIT, "--column", "3"], "there is no column 3; the file has columns 1 to 2"),
        (
            [*FIT, "--column", "1", "--dev", "dev.conll", "--held-out", "0.1"],
            "--dev and --held-out both name a dev set",
        ),
        ([*FIT, "--set", "tagger.dropuot=0.1"], "tagger has no setting 'dropuot'. Did you mean 'dropout'?"),
        ([*FIT, "--set", "cells=3"], "its name starting with tagger. or fit."),
        ([*FIT, "--where", "middle"], "where must be one of input, output, both, taglm"),
        ([*FIT, *BARE, "--fine-tune"], "fine_tune trains the encoders, but there are none"),
        ([*FIT, "--encoder", "nowhere"], "nowhere does not exist"),
        ([*FIT, *BARE, "--encoder", TINY], "leave it or the others out"),
        ([*FIT, "--resume", "--overwrite"], "give only one of them"),
        ([*FIT, "--plot", "layers.jpg"], "a picture's name ends in"),
        (["tag", "fit", "words.conll", "-o", "ner", *BARE], "all labels in training are 'O'"),
        (["tag", "fit", "missing.conll", "-o", "ner"], "missing.conll: no such file"),
        (["tag", "fit", "train.conll", "-o", "no/ner"], "there is no folder no"),
        (["tag", "fit", "train.conll", "-o", "cache"], "cache exists already"),
        (["tag", "predict", "text.txt", "text.txt"], "text.txt is not a fitted tagger"),
        (["tag", "predict", TINY, "text.txt"], "should be a 'polyseme tagger' of version 1"),
        (["tag", "predict", TINY, "text.txt", "--format", "jsn"], "Did you mean 'json'?"),
        (["tag", "predict", TINY, "missing.txt"], "missing.txt: no such file"),
        (["tag", "predict", TINY, ""], "one of the inputs is empty"),
        (["tag", "predict", "nowhere", "text.txt"], "nowhere does not exist"),
        ([*FIT, "--json", "no/scores.json"], "there is no folder no"),
    ],
)
def test_bad_input_is_one_line_and_status_2(call, tmp_path, arguments, message):
    (tmp_path / "cache").mkdir()
    status, _, err = call(*arguments)
    assert status == 2
    assert message in err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert not (tmp_path / "ner").exists()
