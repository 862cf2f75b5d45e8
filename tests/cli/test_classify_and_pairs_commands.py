"""``polyseme classify`` and ``polyseme pairs`` as people run them."""

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from labelled_data import claims, opinions

from polyseme.tasks.fitting import loop as fit

TINY = str(Path(__file__).parents[1] / "fixtures" / "tiny")


def quick(kind):
    names = ("cells=10", "hidden=12", "dropout=0.0", "mix.dropout=0.0")
    settings = [
        *(f"{kind}.{name}" for name in names),
        "fit.rate=0.02",
        "fit.epochs=6",
        "fit.epoch_steps=1",
        "fit.batch_size=10",
        "fit.average=0.5",
    ]
    return [part for setting in settings for part in ("--set", setting)]


@pytest.fixture
def call(call, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POLYSEME_CACHE", str(tmp_path / "cache"))

    def run(*arguments, stdin=None):
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(stdin.encode()))))
        return call(*arguments)

    return run


@pytest.fixture(autouse=True)
def files(tmp_path):
    for number, name in enumerate(("train", "dev", "test")):
        count = 100 if name == "train" else 20
        sentences, labels = opinions(count, number)
        rows = [f"{label} {' '.join(words)}\n" for words, label in zip(sentences, labels, strict=True)]
        (tmp_path / f"{name}.txt").write_text("".join(rows))
        pairs, labels = claims(count, number)
        rows = [
            f"{' '.join(one)}\t{' '.join(other)}\t{label}\t{4.5 if label == 'yes' else 1}\n"
            for (one, other), label in zip(pairs, labels, strict=True)
        ]
        (tmp_path / f"{name}.tsv").write_text("sentence_A\tsentence_B\tjudged\tscore\n" + "".join(rows))
    (tmp_path / "text.txt").write_text("the film was lovely\n\nthe book was awful ,\n")
    (tmp_path / "one.txt").write_text("a b\na c\n")


BARE = ("--encoder", "none")
CLASSIFY = ("classify", "fit", "train.txt", "-o", "opinion", *quick("classifier"))
FEW = ("--set", "fit.epochs=2")
PAIRS = ("pairs", "fit", "train.tsv", "-o", "claim", "--label", "judged", *quick("pairs"))


def test_from_labelled_lines_to_labels_and_a_score(call, tmp_path):
    pytest.importorskip("matplotlib")
    status, out, err = call(*CLASSIFY, "--dev", "dev.txt", "--encoder", TINY, "--plot", "p.png", "--json", "fit.json")
    assert status == 0, err
    assert "dev accuracy" in err
    assert "input: tiny" in out
    assert "γ" in out
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert len(json.loads((tmp_path / "fit.json").read_text())["mixes"]["input"][0]["weights"]) == 3

    status, out, _ = call("classify", "evaluate", "opinion", "test.txt")
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()[2:5]] == ["bad", "good", "none"]
    assert "% of 20, macro F1" in out
    _, out, _ = call("classify", "evaluate", "opinion", "test.txt", "--json", "-")
    scores = json.loads(out)
    assert scores["accuracy"] > 0.5
    assert set(scores["classes"]["good"]) == {"correct", "predicted", "gold", "precision", "recall", "f1"}

    status, out, err = call("classify", "predict", "opinion", "text.txt")
    first, empty, last = map(json.loads, out.splitlines())
    assert (status, err) == (0, "")
    assert first["words"] == ["the", "film", "was", "lovely"]
    assert first["label"] == max(first["probabilities"], key=first["probabilities"].get)
    assert (empty["words"], last["words"][-1]) == ([], ",")
    _, out, _ = call("classify", "predict", "opinion", "-", "--format", "tsv", "--raw", stdin="The film was fine.\n")
    assert out.split("\t")[1] == "The film was fine .\n"
    _, out, _ = call("classify", "predict", "opinion", "train.tsv", "--text", "sentence_A", "--format", "text")
    assert len(out.splitlines()) == 100
    assert "%  " in out.splitlines()[0]


def test_the_linear_kind_in_a_moment_and_a_share_held_out(call):
    status, out, err = call(*CLASSIFY, "--held-out", "0.2", "--encoder", TINY, "--kind", "linear", *FEW)
    assert status == 0, err
    assert "dev accuracy" in err
    assert "pooled: tiny" in out


def test_pairs_from_a_file_to_answers_and_a_score(call):
    status, out, err = call(*PAIRS, "--dev", "dev.tsv", "--encoder", TINY, *FEW)
    assert status == 0, err
    assert "input: tiny" in out
    status, out, err = call("pairs", "evaluate", "claim", "test.tsv", "--label", "judged")
    assert status == 0, err
    assert "% of 20, macro F1" in out
    status, out, _ = call("pairs", "predict", "claim", "test.tsv")
    answers = [json.loads(line) for line in out.splitlines()]
    assert [(each["first"], each["second"]) for each in answers] == [tuple(pair) for pair in claims(20, 2)[0]]
    assert {each["label"] for each in answers} <= {"yes", "no"}
    _, out, _ = call("pairs", "predict", "claim", "-", "--format", "text", stdin="Ada waits\tBob waits\n")
    assert out.split()[0] in ("yes", "no")
    assert "Ada waits  |  Bob waits" in out


def test_numbers_of_pairs(call):
    numbers = ("pairs", "fit", "train.tsv", "-o", "related", "--numbers", *quick("pairs"), *BARE)
    status, _, err = call(*numbers, "--dev", "dev.tsv", *FEW)
    assert status == 0, err
    assert "dev Pearson" in err
    status, out, _ = call("pairs", "evaluate", "related", "test.tsv")
    assert status == 0
    assert out.splitlines()[1].split() == ["count", "Pearson", "Spearman", "squared", "error"]
    _, out, _ = call("pairs", "evaluate", "related", "test.tsv", "--json", "-")
    assert json.loads(out)["count"] == 20
    _, out, _ = call("pairs", "predict", "related", "test.tsv")
    assert all(1 <= json.loads(line)["number"] <= 4.5 for line in out.splitlines())
    _, out, _ = call("pairs", "predict", "related", "test.tsv", "--format", "tsv")
    assert float(out.splitlines()[0].split("\t")[0]) <= 4.5


def test_an_interrupted_fit_resumes_when_asked(call, tmp_path, monkeypatch):
    step, count = fit._step, 0

    def killed(*arguments):
        nonlocal count
        count += 1
        if count == 12:
            raise KeyboardInterrupt
        return step(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(fit, "_step", killed)
        status, _, err = call(*CLASSIFY, *BARE, "--dev", "dev.txt", *FEW)
    assert status == 130
    assert "the same command with --resume continues after the last epoch" in err
    status, _, err = call(*CLASSIFY, *BARE, "--dev", "dev.txt", "--resume", *FEW)
    assert status == 0
    assert "epoch 1 of" not in err
    assert "epoch 2 of at most 2:" in err
    assert not (tmp_path / "opinion.fitting").exists()


def test_a_held_out_share_is_a_fixed_random_sample_or_the_end():
    from polyseme.cli.fitting import hold_out

    examples = opinions(100, 0)
    known, held = hold_out(examples, 0.25, at_random=True)
    assert (len(known[0]), len(held[0]), len(held[1])) == (75, 25, 25)
    assert held[0] != examples[0][75:]
    assert hold_out(examples, 0.25, at_random=True) == (known, held)
    assert hold_out(examples, 0.25, at_random=False)[1] == (examples[0][75:], examples[1][75:])


def test_colours_are_for_terminals(monkeypatch):
    from polyseme.cli.predictions import check_format, coloured

    assert check_format(None, ("text", "json", "tsv")) == "json"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert check_format(None, ("text", "json", "tsv")) == "text"
    assert coloured("yes", "yes").startswith("\x1b[")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*CLASSIFY, "--label", "3"], "line 1: has no tabs, so there is no column 3"),
        ([*CLASSIFY, "--dev", "dev.txt", "--held-out", "0.1"], "--dev and --held-out both name a dev set"),
        ([*CLASSIFY, "--set", "classifier.dropuot=0.1"], "has no setting 'dropuot'. Did you mean 'dropout'?"),
        ([*CLASSIFY, "--kind", "liner"], "kind must be one of lstm, linear, not 'liner'. Did you mean 'linear'?"),
        ([*CLASSIFY, *BARE, "--kind", "linear"], "there are none: give an encoder or word vectors"),
        ([*CLASSIFY, *BARE, "--fine-tune"], "fine_tune trains the encoders, but there are none"),
        ([*CLASSIFY, *BARE, "--dev", "one.txt"], "the dev set has none of the labels that were learned"),
        (["classify", "fit", "one.txt", "-o", "opinion", *BARE], "all labels in training are 'a'"),
        (["classify", "fit", "missing.txt", "-o", "opinion"], "missing.txt: no such file"),
        (["classify", "predict", "text.txt", "text.txt"], "text.txt is not a fitted classifier"),
        (["classify", "predict", TINY, "text.txt"], "should be a 'polyseme classifier' of version 1"),
        (["classify", "predict", TINY, "text.txt", "--format", "jsn"], "--format must be text, json or tsv, not 'jsn'"),
        ([*PAIRS, "--first", "1"], "give both or neither"),
        ([*PAIRS, "--numbers"], "train.tsv, line 2: expected a number, got "),
        ([*PAIRS[:5], "--label", "judgd"], "there is no column 'judgd'"),
        (["pairs", "fit", "train.txt", "-o", "claim"], "train.txt, line 1: has no tabs; expected two sentences and"),
        (["pairs", "predict", TINY, "test.tsv"], "should be a 'polyseme pair model' of version 1"),
    ],
)
def test_bad_input_is_one_line_and_status_2(call, tmp_path, arguments, message):
    status, _, err = call(*arguments)
    assert status == 2
    assert message in err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert not (tmp_path / "opinion").exists()
    assert not (tmp_path / "claim").exists()
