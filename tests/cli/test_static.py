"""``polyseme static`` and ``polyseme distil``, run as people run them."""

import io
import json
import sys

import numpy as np
import pytest

import polyseme

pytest.importorskip("gensim")
TEXT = "He sat on the bank of the river .\nThe bank lent the man money .\n" * 20


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYSEME_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text(TEXT)


def read_with_gensim(path):
    from gensim.models import KeyedVectors

    return KeyedVectors.load_word2vec_format(path)


@pytest.mark.parametrize("source", ["text.txt", "--raw text.txt", "-"])
def test_word2vec_is_trained_and_opens_everywhere(call, source, monkeypatch):
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(TEXT.encode())))
    monkeypatch.setattr(sys, "stdin", stdin)
    status, out, err = call("static", "fit", *source.split(), "-o", "out.txt", "--dim", 6, "--epochs", 2)
    assert (status, err) == (0, "")
    assert "out.txt written: " in out
    vectors = read_with_gensim("out.txt")
    assert vectors.vectors.shape == (len(set(TEXT.split())), 6)
    np.testing.assert_array_equal(polyseme.load("out.txt").word_vectors(["bank"])[0], vectors["bank"])


def test_a_file_of_vectors_is_described_and_asked(call):
    call("static", "fit", "text.txt", "-o", "out.txt", "--dim", 6)
    _, out, _ = call("static", "info", "out.txt", "--json")
    assert json.loads(out)["dimensions"] == 6
    assert call("info", "out.txt", "--json")[1] == out
    _, out, _ = call("static", "nearest", "out.txt", "bank", "river", "--top", 3)
    assert out.count("most similar") == 2
    _, out, _ = call("static", "nearest", "out.txt", "Bank", "--top", 3, "--json", "-")
    assert [list(near) for near in json.loads(out)["Bank"]] == [["word", "cosine"]] * 3


@pytest.mark.parametrize("source", ["text.txt", "--raw text.txt"])
def test_a_model_is_distilled(call, fixtures, source):
    status, _, err = call("distil", fixtures / "tiny", *source.split(), "-o", "out.txt", "--layer", 1)
    assert status == 0
    assert f"{len(set(TEXT.split()))} words, 320 of 320 uses" in err
    vectors = read_with_gensim("out.txt")
    layers = polyseme.load(fixtures / "tiny").embed(line.split() for line in TEXT.splitlines()[:2])
    expected = np.mean([next(layers)[1, 4], next(layers)[1, 1]], axis=0)
    np.testing.assert_allclose(vectors["bank"], expected, atol=1e-6)


def test_senses_come_with_their_contexts(call, fixtures):
    status, *_ = call("distil", fixtures / "tiny", "text.txt", "-o", "out.txt", "--senses", 2, "--layer", "top")
    assert status == 0
    vectors = read_with_gensim("out.txt")
    assert {"bank#1", "bank#2"} <= set(vectors.index_to_key)
    with open("out.senses.tsv", encoding="utf-8") as file:  # noqa: PTH123
        rows = [line.rstrip("\n").split("\t") for line in file]
    assert rows[0] == ["sense", "uses", "context"]
    bank = {row[0]: row[2] for row in rows if row[0].startswith("bank#")}
    assert sorted(bank.values()) == ["He sat on the [bank] of the river .", "The [bank] lent the man money ."]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("static fit text.txt -o text.txt", "exists already"),
        ("static fit text.txt -o no/out.txt", "there is no folder no"),
        ("static fit none.txt -o out.txt", "no such file"),
        ("static fit text.txt -o out.txt --min-count 1000", "no word of the text occurs 1000 times"),
        ("static fit text.txt -o out.txt --window 0", "window must be 1 or more"),
        ("static info text.txt", "line 1 is not a word vector"),
        ("static nearest vectors.txt zebra", "'zebra' is not among the 2 words of vectors.txt"),
        ("distil TINY text.txt -o out.txt --layer all", "not all"),
        ("distil TINY text.txt -o out.txt --layer 9", "there is no layer 9"),
        ("distil TINY text.txt -o out.txt --min-count 99", "no word of the text occurs 99 times"),
        ("distil TINY text.txt -o out.txt --memory 0.000001", "GB allowed"),
        ("distil TINY text.txt -o taken.txt --senses 2", "taken.senses.tsv exists already"),
        ("distil nowhere text.txt -o out.txt", "nowhere"),
        ("distil TINY text.txt -o out.txt --memory nan", "Invalid value for '--memory'"),
        ("static fit text.txt -o out.txt.gz", "name it out.txt, for example"),
        ("distil TINY text.txt -o out.parquet", "name it out.txt, for example"),
    ],
)
def test_faults_are_one_line(call, tmp_path, fixtures, arguments, message):
    (tmp_path / "vectors.txt").write_text("a 1 2\nb 3 4\n")
    (tmp_path / "taken.senses.tsv").write_text("")
    status, out, err = call(*arguments.replace("TINY", str(fixtures / "tiny")).split())
    assert status == 2
    assert out == ""
    assert err.splitlines()[-1].lower().startswith("error: ")
    assert message in err
    assert not (tmp_path / "out.txt").exists()
