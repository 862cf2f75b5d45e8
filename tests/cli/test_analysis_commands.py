"""``probe``, ``geometry``, ``wic``, ``similarity`` and ``analogy`` as people run them."""

import json
import re
import sys
from pathlib import Path

import pytest

from polyseme.cli import output

FIXTURES = Path(__file__).parents[1] / "fixtures"
TINY = str(FIXTURES / "tiny")
RELATIONS = str(FIXTURES / "relations.txt")
SENTENCE = "1\tThe\t_\tDET\n2\tbank\t_\tNOUN\n3\topened\t_\tVERB\n4\t.\t_\tPUNCT\n\n"
WIC = "bank\tN\t1-2\tThe bank opened .\tOn the bank .\n" * 3
TEXT = "".join(f"the bank of the river {number} and the money\n" for number in range(12))


@pytest.fixture
def call(call, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return call


@pytest.fixture(autouse=True)
def files(tmp_path):
    rows = SENTENCE.replace("\n", "\t_" * 6 + "\n").replace("\n" + "\t_" * 6, "\n")
    contents = {
        "a.conllu": rows * 3,
        "other.conllu": rows.replace("NOUN", "N").replace("VERB", "V").replace("DET", "D").replace("PUNCT", "P"),
        "ragged.conll": "a b\nc\n",
        "a.data.txt": WIC,
        "a.gold.txt": "T\nF\nT\n",
        "short.data.txt": WIC,
        "short.gold.txt": "T\n",
        "outside.data.txt": WIC.replace("1-2", "1-9"),
        "outside.gold.txt": "T\nF\nT\n",
        "pairs.txt": "bank\tmoney\t8\nriver\tbank\t5\nof\tthe\t1\n",
        "bare.txt": "bank\tmoney\nriver\tbank\n",
        "empty.txt": "",
        "text.txt": TEXT,
        "static.txt": "the 1 0\nbank 0.5 1\nmoney 0.4 1\nriver 1 0.5\nof 0.9 0\n",
    }
    for name, text in contents.items():
        (tmp_path / name).write_text(text)


PROBE = ("--train", "a.conllu", "--test", "a.conllu")
SETS = ("--train", "a.data.txt", "--test", "a.data.txt")
COMMANDS = {
    "probe": PROBE,
    "geometry": ("text.txt",),
    "wic": SETS,
    "similarity": ("pairs.txt",),
    "analogy": (RELATIONS,),
}


@pytest.mark.parametrize("model", [TINY, "static.txt"])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_runs_on_a_model_of_layers_and_on_one_without(call, command, model):
    status, out, err = call(command, model, *COMMANDS[command])
    assert (status, err) == (0, "")
    assert ("2" if model == TINY else "0") in out
    name = "tiny" if model == TINY else "static.txt"
    assert out.startswith(f"{name}: ")


@pytest.mark.parametrize("command", COMMANDS)
def test_json_on_standard_output_is_json_and_nothing_else(call, command):
    status, out, _ = call(command, TINY, *COMMANDS[command], "--json", "-")
    assert status == 0
    assert json.loads(out)["model"] == "tiny"


def test_json_and_pictures_are_written_beside_the_table(call, tmp_path):
    pytest.importorskip("matplotlib")
    for command in ("probe", "geometry", "wic"):
        status, out, _ = call(command, TINY, *COMMANDS[command], "--json", "r.json", "--plot", "r.png")
        assert status == 0
        assert out
        assert json.loads((tmp_path / "r.json").read_text())["layers"][0]["layer"] == 0
        assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")
        (tmp_path / "r.png").unlink()


def test_one_layer_may_be_chosen(call):
    _, out, _ = call("similarity", TINY, "pairs.txt", "--layer", 1, "--json", "-")
    assert [row["layer"] for row in json.loads(out)["rows"]] == [1]


def test_sets_of_one_name_are_told_apart(call, tmp_path):
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "pairs.txt").write_text("bank\tmoney\t8\nriver\tbank\t5\n")
    _, out, _ = call("similarity", TINY, "pairs.txt", "more/pairs.txt", "--layer", 0, "--json", "-")
    assert [row["name"] for row in json.loads(out)["rows"]] == ["pairs.txt", "more/pairs.txt"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["probe", TINY, "--train", "ragged.conll", "--test", "a.conllu"], "ragged.conll, line 2: has 1 columns"),
        (["probe", TINY, "--train", "empty.txt", "--test", "a.conllu"], "empty.txt: holds no words"),
        (["probe", TINY, *PROBE, "--feature", "Tense"], "no word has the feature 'Tense'"),
        (["probe", TINY, *PROBE, "--column", "uppos"], "Did you mean 'upos'"),
        (["probe", TINY, *PROBE, "--layer", "7"], "there is no layer 7"),
        (["probe", TINY, *PROBE, "--plot", "p.jpg"], "a picture's name ends in"),
        (["geometry", TINY, "empty.txt"], "no sentence of the text has two words"),
        (["probe", TINY, "--train", "a.conllu", "--test", "other.conllu"], "no label of the test is in training"),
        (["wic", TINY, "--train", "nowhere.data.txt", "--test", "a.data.txt"], "nowhere.data.txt: no such file"),
        (["wic", TINY, "--train", "empty.txt", "--test", "a.data.txt"], "empty.txt is empty"),
        (["geometry", TINY, "text.txt", "--uses", "2"], "uses must be at least min_uses"),
        (
            ["wic", TINY, "--train", "a.data.txt", "--test", "short.data.txt"],
            "3 pairs, but its gold file has 1 answers",
        ),
        (
            ["wic", TINY, "--train", "outside.data.txt", "--test", "a.data.txt"],
            "place 9 is outside the second sentence",
        ),
        (["similarity", TINY, "bare.txt"], "expected two words and a number"),
        (["similarity", TINY, "empty.txt"], "is empty"),
        (["analogy", TINY, "text.txt"], "line 1: expected four words"),
        (["analogy", TINY, RELATIONS, "--candidates", "empty.txt"], "empty.txt has no words"),
        (["similarity", "nowhere", "pairs.txt"], "nowhere does not exist"),
        (["similarity", TINY, "pairs.txt", "--json", "no/r.json"], "no/r.json cannot be written"),
        (["similarity", TINY, "pairs.txt", "--json", "."], ". cannot be written: it is a folder"),
    ],
)
def test_bad_input_is_one_line_and_status_2(call, arguments, message):
    status, _, err = call(*arguments)
    assert status == 2
    assert message in err
    assert err.startswith("error: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(("command", "option"), [("probe", "--json"), ("probe", "--plot"), ("similarity", "--json")])
def test_what_cannot_be_written_is_refused_before_the_work(call, command, option):
    status, _, err = call(command, "no-such-model", *COMMANDS[command], option, "nowhere/r.png")
    assert (status, err) == (2, "error: nowhere/r.png cannot be written: there is no folder nowhere\n")


def test_nan_and_infinity_become_null(tmp_path):
    output.write_json(tmp_path / "r.json", {"a": float("nan"), "b": (float("inf"), 1.5)})
    assert json.loads((tmp_path / "r.json").read_text()) == {"a": None, "b": [None, 1.5]}


def test_a_table_is_plain_where_nobody_looks(capsys):
    output.show_table("title", ("name", "n"), [("a", "1"), ("long name", "22")])
    assert capsys.readouterr().out == "title\nname        n\na           1\nlong name  22\n"


@pytest.fixture
def terminal(monkeypatch, capsys):
    """Show a table on a terminal of so many columns."""

    def show(columns, *table):
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        output.show_table(*table)
        return re.sub(r"\x1b\[\d*m", "", capsys.readouterr().out)  # without bold

    return show


def test_a_terminal_folds_long_text_and_keeps_numbers_and_title_whole(terminal):
    shown = terminal(
        50, "a title that is longer than the terminal is wide, but whole", ("use", "n"), [("word " * 12, "0.123")]
    )
    assert shown.splitlines()[0] == "a title that is longer than the terminal is wide, but whole"
    assert "0.123" in shown
    assert shown.count("word") == 12
    assert max(map(len, shown.splitlines()[1:])) <= 50


def test_a_table_of_numbers_too_wide_for_the_terminal_is_plain_and_whole(terminal):
    columns = ("", *(f"semeval20{number:02}" for number in range(9)))
    shown = terminal(80, "title", columns, [("most frequent in training", *["55.2"] * 9)])
    assert shown.splitlines()[1].split() == list(columns[1:])
    assert "most frequent in training" in shown
