"""``polyseme train`` from the outside."""

import json
import re
import subprocess
import sys

import pytest
from training_fixture import TABLES, write_text


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "run.json"
    path.write_text(json.dumps(TABLES))
    return path


def test_text_in_model_out(call, tmp_path, config):
    text = write_text(tmp_path / "t.txt")
    outcome = call("train", text, "-o", tmp_path / "m", "--config", config, "--tokenized", "--workers", "1")
    assert outcome.status == 0, outcome.err
    assert "a softmax of" in outcome.err
    assert re.search(r"step 12/12 · 0 s left · epoch \d", outcome.err)
    assert "sampled perplexity" in outcome.err
    assert "full perplexity" in outcome.err
    assert call("info", tmp_path / "m").status == 0
    perplexity = call("perplexity", tmp_path / "m", text)
    assert perplexity.status == 0, perplexity.err
    assert call("predict", "w1 w8", "--model", tmp_path / "m").status == 0
    again = call("train", text, "-o", tmp_path / "m", "--config", config, "--tokenized")
    assert again.status == 2
    assert "--resume" in again.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "training.stepz=3"], "no setting 'stepz'. Did you mean 'steps'?"),
        (["--set", "training.steps=0"], "steps must be 1 or more"),
        (["--set", "training.steps=many"], "training.steps must be int, not 'many'"),
        (["--set", "steps"], "--set takes table.setting=value"),
        (["--set", "loss.kind=exact"], "kind must be sampled, full or adaptive"),
        (["--preset", "tinny"], "Did you mean 'tiny'?"),
        (["--recipe", "bilm"], "Did you mean 'bilm-tf'?"),
        (["--set", "steps=3"], "no setting 'steps'. Did you mean 'training.steps'?"),
        (["--set", "data.held_out_from=t.txt"], "held_out_from must be a list, not 't.txt'"),
        (["--set", "data.lowercase=yes"], "lowercase must be true or false, not 'yes'"),
        (["--device", "cuda:77"], "device 'cuda:77' cannot be used here"),
        (["--config", "nowhere.toml"], "nowhere.toml cannot be read: No such file"),
        (["--from", "nowhere"], "nowhere does not exist"),
        (["--also-evaluate", "nowhere"], "nowhere: no such file"),
        (["--workers", "0"], "workers must be at least 1"),
    ],
)
def test_what_cannot_be_is_one_sentence_before_any_work(call, tmp_path, options, message):
    text = write_text(tmp_path / "t.txt", sentences=40)
    outcome = call("train", text, "-o", tmp_path / "m", "--workers", "1", *options)
    assert outcome.status == 2
    assert message in outcome.err
    assert outcome.err.count("\n") <= 2
    assert not (tmp_path / "m").exists()


def test_a_toml_file_of_settings(call, tmp_path):
    pytest.importorskip("tomllib")
    text = write_text(tmp_path / "t.txt", sentences=40)
    (tmp_path / "run.toml").write_text("[training]\nsteps = 'x'\n")
    outcome = call("train", text, "-o", tmp_path / "m", "--config", tmp_path / "run.toml")
    assert "training.steps must be int, not 'x'" in outcome.err


def test_standard_input_is_read_and_not_needed_again(call, tmp_path, config, monkeypatch):
    import io

    text = write_text(tmp_path / "t.txt").read_bytes()

    class Standard:
        buffer = io.BufferedReader(io.BytesIO(text))

    monkeypatch.setattr("sys.stdin", Standard)
    command = ["train", "-", "-o", tmp_path / "m", "--config", config, "--tokenized", "--workers", "1"]
    assert call(*command).status == 0
    outcome = call(*command, "--resume")
    assert outcome.status == 0, outcome.err


ONLY_CORE = """
import re
import sys
from importlib.metadata import PackageNotFoundError, packages_distributions, requires

def with_dependencies(names):
    seen, todo = set(), list(names)
    while todo:
        name = re.sub("[-_.]+", "-", todo.pop()).lower()
        if name not in seen:
            seen.add(name)
            try:
                needed = [line for line in requires(name) or [] if "extra ==" not in line]
            except PackageNotFoundError:
                continue
            todo += [re.match("[A-Za-z0-9._-]+", line)[0] for line in needed]
    return seen

core = with_dependencies(["torch", "numpy", "safetensors", "typer", "rich"]) | {"polyseme"}
others = {
    module
    for module, owners in packages_distributions().items()
    if core.isdisjoint(re.sub("[-_.]+", "-", owner).lower() for owner in owners)
}

class CoreFinder:
    def __init__(self, finder):
        self._finder = finder

    def __getattr__(self, name):
        return getattr(self._finder, name)

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in others else self._finder.find_spec(name, path, target)

assert {"matplotlib", "pytest"} <= others
sys.meta_path[:] = map(CoreFinder, sys.meta_path)
from polyseme.cli import main
main()
"""


def test_training_needs_torch_numpy_safetensors_typer_and_rich_alone(tmp_path, config):
    text = write_text(tmp_path / "t.txt")
    arguments = ["train", text, "-o", tmp_path / "m", "--config", config, "--tokenized", "--workers", "1"]
    outcome = subprocess.run(
        [sys.executable, "-c", ONLY_CORE, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert outcome.returncode == 0, outcome.stderr
    assert "is ready" in outcome.stderr
    assert not (tmp_path / "m" / "training.png").exists()
    assert json.loads((tmp_path / "m" / "training.json").read_text())["settings"]["data"]["tokenized"]


def test_tensorboard_is_an_extra(call, tmp_path, config, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    text = write_text(tmp_path / "t.txt", sentences=40)
    outcome = call("train", text, "-o", tmp_path / "m", "--config", config, "--tensorboard", tmp_path / "board")
    assert outcome.status == 2
    assert "pip install 'polyseme[tensorboard]'" in outcome.err
