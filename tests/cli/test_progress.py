"""What commands say while they run, and that --quiet stops it."""

from pathlib import Path

import pytest
from typer.main import get_command

from polyseme import cli

TINY = str(Path(__file__).parents[1] / "fixtures" / "tiny")


def leaves(command, name=""):
    """All commands that can be run, by name."""
    inner = getattr(command, "commands", None)
    if inner is None:
        return {name: command}
    return {full: leaf for key, one in inner.items() for full, leaf in leaves(one, f"{name} {key}".strip()).items()}


@pytest.mark.parametrize("name", leaves(get_command(cli.app)))
def test_every_command_can_be_quiet(name):
    options = {option for parameter in leaves(get_command(cli.app))[name].params for option in parameter.opts}
    assert {"--quiet", "-q"} <= options


def test_quiet_silences_notes_and_summaries_but_not_errors(call, tmp_path):
    (tmp_path / "t.txt").write_text("a b .\n")
    run = ("embed", tmp_path / "t.txt", "-o", tmp_path / "v.npz", "--model", TINY)
    loud = call(*run)
    quiet = call(*run, "--overwrite", "--quiet")
    assert "words/s" in loud.err
    assert (quiet.status, quiet.out, quiet.err) == (0, "", "")
    assert call(*run, "-q").err.startswith("error: ")
    assert "words/s" in call(*run, "--overwrite").err  # the next command is not quiet


@pytest.mark.parametrize(
    ("options", "contents"),
    [
        ([], "3 layers of 32 dimensions per word, float32"),
        (["--layers", "average"], "a vector of 32 dimensions per word, float32"),
        (["--pool", "mean", "--dtype", "float16"], "a vector of 32 dimensions per sentence, float16"),
    ],
)
def test_the_summary_comes_after_the_file_and_says_what_is_in_it(call, tmp_path, options, contents):
    (tmp_path / "t.txt").write_text("a b .\nc .\n")
    outcome = call("embed", tmp_path / "t.txt", "-o", tmp_path / "v.npz", "--model", TINY, *options)
    assert outcome.out.endswith(f"): 2 sentences, 5 words, {contents}\n")
    assert "cache" not in outcome.err


RAW = "He sat on the bank, and waited. Then he left.\n" * 3


def test_raw_text_is_met_with_the_option_that_splits_it(call, tmp_path):
    (tmp_path / "t.txt").write_text(RAW)
    run = ("embed", tmp_path / "t.txt", "-o", tmp_path / "v.npz", "--model", TINY)
    outcome = call(*run)
    assert outcome.status == 0
    assert outcome.err.count("the text looks raw") == 1
    assert "--raw splits raw text into sentences and words" in outcome.err
    assert "looks raw" not in call(*run, "--overwrite", "--raw").err
    assert "looks raw" not in call(*run, "--overwrite", "--quiet").err


@pytest.mark.parametrize(
    "command",
    [
        ("index", "t.txt", "-o", "i", "--model", TINY),
        ("drift", "t.txt", "t.txt", "--model", TINY, "--least", "2", "--skip", "0"),
        ("perplexity", "english", "t.txt"),
    ],
)
def test_other_commands_notice_raw_text_too_and_say_it_once(call, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.txt").write_text(RAW)
    outcome = call(*command)
    assert outcome.status == 0, outcome.err
    assert outcome.err.count("the text looks raw") == (2 if command[0] == "drift" else 1)  # two texts


def test_an_empty_text_is_said(call, tmp_path):
    (tmp_path / "t.txt").write_text("")
    outcome = call("embed", tmp_path / "t.txt", "-o", tmp_path / "v.npz", "--model", TINY)
    assert outcome.status == 0
    assert "there was no line in" in outcome.err


def test_every_command_begins_where_there_is_nothing_to_resume_and_ends_where_all_is_done(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.txt").write_text("a b .\n")
    (tmp_path / "l.tsv").write_text("good film\t1\nbad film\t0\n" * 4)
    quick = ("--encoder", "none", "--set", "fit.epochs=1", "--set", "fit.epoch_steps=1", "--set", "classifier.cells=4")
    for command in (
        ("embed", "t.txt", "-o", "v.npz", "--model", TINY),
        ("index", "t.txt", "-o", "i", "--model", TINY),
        ("classify", "fit", "l.tsv", "-o", "c", *quick),
    ):
        outcome = call(*command, "--resume")
        assert outcome.status == 0, outcome.err
        output = command[command.index("-o") + 1]
        assert f"note: there is no unfinished run of {output}; starting from the beginning" in outcome.err
        assert call(*command, "--resume").out == f"{output} is already finished\n"


def test_columns_of_words_are_met_with_the_command_that_reads_them(call, tmp_path):
    (tmp_path / "ner.conll").write_text("Ada NNP B-PER\nsings VBZ O\n. . O\n\n" * 4)
    outcome = call("classify", "fit", tmp_path / "ner.conll", "-o", tmp_path / "c", "--encoder", "none")
    assert outcome.status == 2
    assert "as CoNLL files do" in outcome.err
    assert "`polyseme tag fit`" in outcome.err


def test_a_narrow_terminal_shows_the_whole_help(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    out = call("--help").out
    assert "..." not in out.split("Start here:")[1]
    assert max(map(len, out.splitlines())) <= 60
