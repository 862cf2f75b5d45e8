"""A whole run: what it leaves behind, and what survives whatever happens to it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from small_runs import TABLES, make_order, write_text

import polyseme
from polyseme.errors import ConfigError, InputError, OutputError, TrainingError
from polyseme.lm import LanguageModel
from polyseme.training.run import Evaluation, Finished, Plan, Saved, train
from polyseme.training.settings import merge_tables
from polyseme.training.trainer import Report


def test_a_run_leaves_a_model_that_embeds_and_predicts(tmp_path):
    events = list(train(make_order(tmp_path)))
    kinds = [type(event) for event in events]
    assert kinds.index(Plan) < kinds.index(Report) < kinds.index(Evaluation) < kinds.index(Saved)
    assert kinds[-1] is Finished
    assert sum(kind is Report for kind in kinds) == 12
    (vectors,) = polyseme.load(tmp_path / "model").embed([["w1", "w8", "new"]])
    assert vectors.shape == (3, 3, 16)
    assert len(LanguageModel.load(tmp_path / "model").predict_next(["w1", "w8"], top=5)) == 5
    told = json.loads((tmp_path / "model" / "training.json").read_text())
    assert told["settings"]["training"]["steps"] == 12
    assert (tmp_path / "model" / "training.png").read_bytes().startswith(b"\x89PNG")


def test_the_evaluation_is_that_of_the_saved_model(tmp_path):
    order = make_order(tmp_path)
    last = [event for event in train(order) if isinstance(event, Evaluation) and event.best][-1]
    from polyseme.lm import perplexity
    from polyseme.training.shards import Shards

    documents = Shards.open(order.run / "text").held_out_documents(None if last.step == 12 else 200)
    again = perplexity(LanguageModel.load(order.output), documents)
    assert again.both == pytest.approx(last.fresh.both, rel=1e-5)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return {**load_file(folder / "model.safetensors"), **load_file(folder / "softmax.safetensors")}


def test_a_run_that_was_left_goes_on_and_ends_the_same(tmp_path):
    list(train(make_order(tmp_path, "whole")))
    events = train(make_order(tmp_path, "cut"))
    for event in events:
        if isinstance(event, Report) and event.step == 5:
            break
    events.close()
    resumed = list(train(make_order(tmp_path, "cut", resume=True)))
    assert next(event for event in resumed if isinstance(event, Plan)).first_step == 5
    for name, weight in weights(tmp_path / "whole").items():
        assert torch.equal(weight, weights(tmp_path / "cut")[name])


FORTY = {"training": {"steps": 40, "rows": 4, "window": 5, "evaluations": 2}}
KILLED = """
import os, signal, sys
sys.path[:0] = [{tests!r}]
import torch
torch.set_num_threads(1)
from pathlib import Path
from small_runs import make_order
from polyseme.training.run import train
from polyseme.training.trainer import Report
order = make_order(Path({folder!r}), {name!r}, changes={changes})
for event in train(order):
    if isinstance(event, Report):
        print(event.step, event.loss.hex(), flush=True)
        if event.step == {kill_at}:
            os.kill(os.getpid(), signal.SIGKILL)
"""


def test_forty_steps_are_twenty_a_kill_and_twenty(tmp_path):
    tests = str(Path(__file__).parents[1])

    def run(name, kill_at):
        code = KILLED.format(tests=tests, folder=str(tmp_path), name=name, kill_at=kill_at, changes=FORTY)
        outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert outcome.returncode == -9, outcome.stderr
        return dict(line.split() for line in outcome.stdout.splitlines())

    def losses(name, **more):
        events = train(make_order(tmp_path, name, changes=FORTY, **more))
        return {str(event.step): event.loss.hex() for event in events if isinstance(event, Report)}

    first = run("cut", kill_at=25)  # the last checkpoint is that of step 20
    second = losses("cut", resume=True)
    whole = losses("whole")
    assert next(iter(second)) == "21"
    assert len(whole) == 40
    assert {**first, **second} == whole


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "holds an earlier run; go on with it by --resume"),
        ({"resume": True, "changes": {"training": {"steps": 13}}}, "training.steps was 12 and is now 13"),
        ({"resume": True, "overwrite": True}, "say one of them"),
    ],
)
def test_what_would_lose_a_run_is_refused(tmp_path, change, message):
    events = train(make_order(tmp_path))
    for event in events:
        if isinstance(event, Report):
            break
    events.close()
    changes = merge_tables(TABLES, change.pop("changes", {}))
    with pytest.raises((ConfigError, OutputError), match=message):
        list(train(make_order(tmp_path, changes=changes, **change)))


def test_a_changed_text_is_not_gone_on_with(tmp_path):
    events = train(make_order(tmp_path))
    for event in events:
        if isinstance(event, Report):
            break
    events.close()
    write_text(tmp_path / "text.txt", sentences=310)
    with pytest.raises(InputError, match="the text has changed"):
        list(train(make_order(tmp_path, resume=True)))
    list(train(make_order(tmp_path, overwrite=True)))


def test_nothing_to_resume_and_a_name_that_is_taken(tmp_path):
    with pytest.raises(ConfigError, match="nothing to resume"):
        list(train(make_order(tmp_path, resume=True)))
    (tmp_path / "model").mkdir()
    with pytest.raises(OutputError, match="exists already"):
        list(train(make_order(tmp_path)))


def test_a_run_that_goes_wrong_names_its_last_good_checkpoint(tmp_path):
    changes = {"training": {"learning_rate": 1e30, "patience": 3, "save_seconds": 0.0, "steps": 30, "clip": 1e30}}
    with pytest.raises(TrainingError, match=r"no finite gradient.*the last good checkpoint is .*last"):
        list(train(make_order(tmp_path, changes=changes)))


def test_going_on_from_a_model_measures_both_domains_before_and_after(tmp_path):
    list(train(make_order(tmp_path)))
    new = tmp_path / "new"
    new.mkdir()
    write_text(new / "text.txt", seed=1)
    (new / "text.txt").write_text((new / "text.txt").read_text().replace("w1", "x1"))
    old = str(tmp_path / "text.txt")
    for extend in (False, True):
        order = make_order(new, f"tuned-{extend}", start_from=tmp_path / "model", extend=extend, other_texts=(old,))
        found = [event for event in train(order) if isinstance(event, Evaluation)]
        assert [(event.step, event.text) for event in found] == [
            (0, "held-out"), (0, old), (6, "held-out"), (12, "held-out"), (12, old)
        ]  # fmt: skip
        assert found[-2].fresh.both < found[0].fresh.both
        assert ("x1" in LanguageModel.load(order.output).vocabulary) == extend


def test_a_published_model_gets_a_head_of_its_own(tmp_path, fixtures):
    order = make_order(tmp_path, start_from=fixtures / "bilm-relu")
    assert isinstance(list(train(order))[-1], Finished)
    assert len(LanguageModel.load(order.output).vocabulary) > 10


def test_words_can_be_spelt_by_code_points(tmp_path):
    order = make_order(tmp_path, changes={"characters": "code points"})
    list(train(order))
    (vectors,) = polyseme.load(order.output).embed([["w1", "ж"]])
    assert vectors.shape == (3, 2, 16)


@pytest.mark.parametrize("kind", ["full", "adaptive"])
def test_every_kind_of_softmax_can_be_trained_and_asked(tmp_path, kind):
    order = make_order(tmp_path, changes={"loss": {"kind": kind, "cutoffs": [10], "words": 50, "min_count": 1}})
    list(train(order))
    found = LanguageModel.load(order.output).predict_next(["w1"], top=100)
    assert 0.5 < sum(share for _, share in found) <= 1.0001


def test_without_held_out_text_the_last_model_is_kept(tmp_path):
    order = make_order(tmp_path, changes={"data": {"tokenized": True, "held_out": 0.0}})
    events = list(train(order))
    assert events[-1].best is None
    polyseme.load(order.output)


def test_the_published_recipe_runs(tmp_path):
    order = make_order(tmp_path, recipe="bilm-tf")
    plan = next(event for event in list(train(order)) if isinstance(event, Plan))
    assert plan.settings.training.optimizer == "adagrad"
    assert plan.settings.model.lstm.cell_clip == 3
    polyseme.load(order.output)


def test_a_full_disk_loses_nothing_that_was_saved(tmp_path, monkeypatch):
    order = make_order(tmp_path, changes={"training": {"save_seconds": 0.0, "steps": 12, "rows": 4, "window": 5}})
    events = train(order)
    for event in events:
        if isinstance(event, Saved) and event.step == 4:
            break

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("polyseme.training.checkpoint.save_file", full)
    with pytest.raises(OutputError, match="cannot be written: No space left on device"):
        list(events)
    monkeypatch.undo()
    resumed = list(train(make_order(tmp_path, changes=order.changes, resume=True)))
    assert next(event for event in resumed if isinstance(event, Plan)).first_step == 4
