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
