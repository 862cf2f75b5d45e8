"""A whole run: what it leaves behind, and what survives whatever happens to it."""

import dataclasses
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from training_fixture import TABLES, make_job, write_text

import polyseme
from polyseme.errors import ConfigError, FormatError, InputError, OutputError, TrainingError
from polyseme.lm import LanguageModel
from polyseme.training.loop.trainer import StepReport
from polyseme.training.run import CheckpointSaved, Evaluation, TrainFinished, TrainPlan, train
from polyseme.training.settings import merge_tables


def test_a_run_leaves_a_model_that_embeds_and_predicts(tmp_path):
    events = list(train(make_job(tmp_path)))
    kinds = [type(event) for event in events]
    assert kinds.index(TrainPlan) < kinds.index(StepReport) < kinds.index(Evaluation) < kinds.index(CheckpointSaved)
    assert kinds[-1] is TrainFinished
    assert sum(kind is StepReport for kind in kinds) == 12
    (vectors,) = polyseme.load(tmp_path / "model").embed([["w1", "w8", "new"]])
    assert vectors.shape == (3, 3, 16)
    assert len(LanguageModel.load(tmp_path / "model").predict_next(["w1", "w8"], top=5)) == 5
    told = json.loads((tmp_path / "model" / "training.json").read_text())
    assert told["settings"]["training"]["steps"] == 12
    assert (tmp_path / "model" / "training.png").read_bytes().startswith(b"\x89PNG")


def test_the_evaluation_is_that_of_the_saved_model(tmp_path):
    job = make_job(tmp_path)
    last = [event for event in train(job) if isinstance(event, Evaluation) and event.best][-1]
    from polyseme.lm import perplexity
    from polyseme.training.shards.store import Shards

    documents = Shards.open(job.run / "text").held_out_documents(200)
    again = perplexity(LanguageModel.load(job.output), documents)
    assert again.both == pytest.approx(last.fresh.both, rel=1e-5)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return {**load_file(folder / "model.safetensors"), **load_file(folder / "softmax.safetensors")}


def test_a_run_that_was_left_goes_on_and_ends_the_same(tmp_path):
    list(train(make_job(tmp_path, "whole")))
    events = train(make_job(tmp_path, "cut"))
    for event in events:
        if isinstance(event, StepReport) and event.step == 5:
            break
    events.close()
    resumed = list(train(make_job(tmp_path, "cut", resume=True)))
    assert next(event for event in resumed if isinstance(event, TrainPlan)).first_step == 5
    for name, weight in weights(tmp_path / "whole").items():
        assert torch.equal(weight, weights(tmp_path / "cut")[name])


@pytest.mark.parametrize("step", [5, 6, 12])
def test_a_run_that_is_told_to_stop_tells_the_same_story_in_the_end(tmp_path, monkeypatch, step):
    monkeypatch.setattr("polyseme.training.run.CURVE_POINTS", 3)  # so a point of the curve is the mean of four steps
    list(train(make_job(tmp_path, "whole")))
    asked = iter(range(1, 13))  # once after each step
    stopped = list(train(make_job(tmp_path, "cut"), stop=lambda: next(asked) == step))
    assert stopped[-1] == CheckpointSaved(tmp_path / "cut.run" / "last", step)
    resumed = list(train(make_job(tmp_path, "cut", resume=True)))
    assert isinstance(resumed[-1], TrainFinished)
    whole, cut = (json.loads((tmp_path / name / "training.json").read_text()) for name in ("whole", "cut"))
    assert cut == whole


FORTY = {"training": {"steps": 40, "rows": 4, "window": 5, "evaluations": 2}}
KILLED = """
import os, signal, sys
sys.path[:0] = [{tests!r}]
import torch
torch.set_num_threads(1)
from pathlib import Path
from training_fixture import make_job
from polyseme.training.run import train
from polyseme.training.loop.trainer import StepReport
job = make_job(Path({folder!r}), {name!r}, changes={changes})
for event in train(job):
    if isinstance(event, StepReport):
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
        events = train(make_job(tmp_path, name, changes=FORTY, **more))
        return {str(event.step): event.loss.hex() for event in events if isinstance(event, StepReport)}

    first = run("cut", kill_at=25)  # the last checkpoint is that of step 20
    second = losses("cut", resume=True)
    whole = losses("whole")
    assert next(iter(second)) == "21"
    assert len(whole) == 40
    assert {**first, **second} == whole


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "holds an earlier run; continue it with --resume"),
        ({"resume": True, "changes": {"training": {"rows": 2}}}, "training.rows was .* and is now 2"),
        ({"resume": True, "changes": {"training": {"steps": 1}}}, "has taken 2 steps, so it cannot end after 1"),
        ({"resume": True, "overwrite": True}, "give only one of them"),
    ],
)
def test_what_would_lose_a_run_is_refused(tmp_path, change, message):
    events = train(make_job(tmp_path))
    for event in events:
        if isinstance(event, StepReport) and event.step == 2:
            break
    events.close()
    changes = merge_tables(TABLES, change.pop("changes", {}))
    with pytest.raises((ConfigError, OutputError), match=message):
        list(train(make_job(tmp_path, changes=changes, **change)))


def test_a_changed_text_is_not_gone_on_with(tmp_path):
    events = train(make_job(tmp_path))
    for event in events:
        if isinstance(event, StepReport):
            break
    events.close()
    write_text(tmp_path / "text.txt", sentences=310)
    with pytest.raises(InputError, match="the text has changed"):
        list(train(make_job(tmp_path, resume=True)))
    list(train(make_job(tmp_path, overwrite=True)))


def test_a_run_is_made_shorter_or_longer_when_it_is_resumed(tmp_path):
    events = train(make_job(tmp_path))
    for event in events:
        if isinstance(event, StepReport) and event.step == 2:
            break
    events.close()
    for steps, taken in ((4, [3, 4]), (6, [5, 6])):
        changes = merge_tables(TABLES, {"training": {"steps": steps}})
        resumed = list(train(make_job(tmp_path, changes=changes, resume=True)))
        assert [event.step for event in resumed if isinstance(event, StepReport)] == taken
        assert isinstance(resumed[-1], TrainFinished)
        assert json.loads((tmp_path / "model.run" / "settings.json").read_text())["training"]["steps"] == steps


def test_where_nothing_is_to_resume_a_run_begins_and_a_name_that_is_taken_is_refused(tmp_path):
    resumed = train(make_job(tmp_path, resume=True))
    with pytest.warns(UserWarning, match=r"there is no unfinished run of .*model; starting from the beginning"):
        next(resumed)
    assert next(event for event in resumed if isinstance(event, TrainPlan)).first_step == 0
    resumed.close()
    shutil.rmtree(tmp_path / "model.run")
    (tmp_path / "model").mkdir()
    for resume in (False, True):
        with pytest.raises(OutputError, match="exists already"):
            list(train(make_job(tmp_path, resume=resume)))


def test_a_run_that_goes_wrong_names_its_last_good_checkpoint(tmp_path):
    changes = {"training": {"learning_rate": 1e30, "patience": 3, "save_seconds": 0.0, "steps": 30, "clip": 1e30}}
    with pytest.raises(TrainingError, match=r"no finite gradient.*the last good checkpoint is .*last"):
        list(train(make_job(tmp_path, changes=changes)))


def test_a_model_that_computes_no_numbers_replaces_none_and_is_not_kept(tmp_path, monkeypatch):
    from polyseme.training import run

    measure, answers = run.perplexity, iter([5.0, 5.0, *[float("nan")] * 6])
    monkeypatch.setattr(
        run, "perplexity", lambda *given, **more: dataclasses.replace(measure(*given, **more), both=next(answers))
    )
    found = [event.best for event in train(make_job(tmp_path)) if isinstance(event, Evaluation)]
    assert found[:2] == [True, False]
    before = weights(tmp_path / "model")
    answers = iter([float("nan")] * 8)
    with pytest.raises(TrainingError, match="never finite, so no model was saved; lower training"):
        list(train(make_job(tmp_path, overwrite=True)))
    assert all(torch.equal(before[name], value) for name, value in weights(tmp_path / "model").items())


def test_the_head_that_a_published_model_gets_is_the_same_every_time(tmp_path, fixtures):
    found = []
    for number in range(2):
        torch.manual_seed(number)
        job = from_published(tmp_path, fixtures, overwrite=True)
        found.append([event.fresh.both for event in train(job) if isinstance(event, Evaluation)])
    assert found[0] == found[1]


def test_words_are_added_to_a_vocabulary_that_is_larger_than_asked_for(tmp_path):
    list(train(make_job(tmp_path)))
    text = tmp_path / "text.txt"
    text.write_text(text.read_text().replace("w1", "x1"))
    few = {"loss": {"words": 4}}
    list(train(make_job(tmp_path, "wider", start_from=tmp_path / "model", extend=True, changes=few)))
    old, new = (set(LanguageModel.load(tmp_path / name).vocabulary) for name in ("model", "wider"))
    assert len(new) == len(old) + 4


def test_words_that_a_model_does_not_know_are_counted_when_training_goes_on(tmp_path):
    list(train(make_job(tmp_path)))
    text = tmp_path / "text.txt"
    words = text.read_text().split()
    unknown = sum(word.startswith("w1") for word in words) / len(words)
    text.write_text(text.read_text().replace("w1", "x1"))
    plan = next(
        e for e in train(make_job(tmp_path, "tuned", start_from=tmp_path / "model")) if isinstance(e, TrainPlan)
    )
    assert plan.unknown == pytest.approx(unknown, abs=0.02)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_a_cpu_trains_in_its_own_precision(tmp_path, precision):
    with pytest.raises(ConfigError, match=f"a CPU trains in float32, not in {precision}"):
        list(train(make_job(tmp_path, changes={"training": {"precision": precision}})))


def test_going_on_from_a_model_measures_both_domains_before_and_after(tmp_path):
    list(train(make_job(tmp_path)))
    new = tmp_path / "new"
    new.mkdir()
    write_text(new / "text.txt", seed=1)
    (new / "text.txt").write_text((new / "text.txt").read_text().replace("w1", "x1"))
    old = str(tmp_path / "text.txt")
    for extend in (False, True):
        job = make_job(new, f"tuned-{extend}", start_from=tmp_path / "model", extend=extend, other_texts=(old,))
        found = [event for event in train(job) if isinstance(event, Evaluation)]
        assert [(event.step, event.text) for event in found] == [
            (0, "held-out"), (0, old), (6, "held-out"), (12, "held-out"), (12, "all held-out"), (12, old)
        ]  # fmt: skip
        assert found[3].fresh.both < found[0].fresh.both
        told = json.loads((job.output / "training.json").read_text())
        assert [each["fresh"]["both"] for each in told["evaluations"]] == [event.fresh.both for event in found]
        assert ("x1" in LanguageModel.load(job.output).vocabulary) == extend


def test_a_published_model_gets_a_head_of_its_own(tmp_path, fixtures):
    job = from_published(tmp_path, fixtures)
    events = list(train(job))
    plan = next(event for event in events if isinstance(event, TrainPlan))
    assert plan.settings.model == polyseme.formats.open_model(fixtures / "bilm-relu").config
    assert isinstance(events[-1], TrainFinished)
    assert len(LanguageModel.load(job.output).vocabulary) > 10


def from_published(tmp_path, fixtures, **more):
    job = make_job(tmp_path, start_from=fixtures / "bilm-relu", **more)
    return dataclasses.replace(job, changes={name: table for name, table in job.changes.items() if name != "model"})


def test_a_model_that_is_gone_on_from_stays_what_it_is(tmp_path, fixtures):
    with pytest.raises(ConfigError, match="leave out the settings of model"):
        list(train(make_job(tmp_path, start_from=fixtures / "bilm-relu")))
    with pytest.raises(ConfigError, match="has no vocabulary to extend"):
        list(train(from_published(tmp_path, fixtures, extend=True)))
    with pytest.raises(ConfigError, match="name the model with --from"):
        list(train(make_job(tmp_path, extend=True)))


def test_words_can_be_spelt_by_code_points(tmp_path):
    job = make_job(tmp_path, changes={"characters": "code points"})
    list(train(job))
    (vectors,) = polyseme.load(job.output).embed([["w1", "ж"]])
    assert vectors.shape == (3, 2, 16)


@pytest.mark.parametrize("kind", ["full", "adaptive"])
def test_every_kind_of_softmax_can_be_trained_and_asked(tmp_path, kind):
    job = make_job(tmp_path, changes={"loss": {"kind": kind, "cutoffs": [10], "words": 50, "min_count": 1}})
    list(train(job))
    found = LanguageModel.load(job.output).predict_next(["w1"], top=100)
    assert 0.5 < sum(share for _, share in found) <= 1.0001


def test_without_held_out_text_the_last_model_is_kept(tmp_path):
    job = make_job(tmp_path, changes={"data": {"tokenized": True, "held_out": 0.0}})
    events = list(train(job))
    assert events[-1].best is None
    polyseme.load(job.output)


def test_the_published_recipe_runs(tmp_path):
    job = make_job(tmp_path, recipe="bilm-tf")
    plan = next(event for event in list(train(job)) if isinstance(event, TrainPlan))
    assert plan.settings.training.optimizer == "adagrad"
    assert plan.settings.model.lstm.cell_clip == 3
    polyseme.load(job.output)


def test_a_full_disk_loses_nothing_that_was_saved(tmp_path, monkeypatch):
    job = make_job(tmp_path, changes={"training": {"save_seconds": 0.0, "steps": 12, "rows": 4, "window": 5}})
    events = train(job)
    for event in events:
        if isinstance(event, CheckpointSaved) and event.step == 4:
            break

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("polyseme.training.loop.checkpoint.save_file", full)
    with pytest.raises(OutputError, match="cannot be written: No space left on device"):
        list(events)
    monkeypatch.undo()
    resumed = list(train(make_job(tmp_path, changes=job.changes, resume=True)))
    assert next(event for event in resumed if isinstance(event, TrainPlan)).first_step == 4


def begin(job):
    """Take a step, and leave."""
    events = train(job)
    for event in events:
        if isinstance(event, StepReport):
            break
    events.close()


def test_an_order_that_is_refused_forgets_nothing(tmp_path):
    begin(make_job(tmp_path))
    for wrong in ({"changes": {"training": {"stepz": 1}}}, {"start_from": Path("nowhere")}, {"device": "abacus"}):
        with pytest.raises((ConfigError, FormatError)):
            list(train(make_job(tmp_path, overwrite=True, **wrong)))
    assert isinstance(list(train(make_job(tmp_path, resume=True)))[-1], TrainFinished)


def test_two_runs_do_not_write_into_one_folder(tmp_path):
    events = train(make_job(tmp_path))
    next(events)
    for again in ({}, {"overwrite": True}):
        with pytest.raises(OutputError, match="is being written by this process already"):
            list(train(make_job(tmp_path, **again)))
    events.close()


def test_what_is_not_a_model_is_refused_before_the_text_is_read(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "thesis.txt").touch()
    with pytest.raises(OutputError, match="not a polyseme model"):
        list(train(make_job(tmp_path, overwrite=True)))
    assert not (tmp_path / "model.run").exists()


def test_a_text_to_measure_on_is_looked_at_before_anything_is_trained(tmp_path):
    (tmp_path / "blank.txt").write_text("\n\n")
    for name, message in (("blank.txt", "no words to evaluate on"), ("gone.txt", "no such file")):
        with pytest.raises(InputError, match=message):
            list(train(make_job(tmp_path, other_texts=(str(tmp_path / name),))))


def test_the_output_may_lie_among_the_texts(tmp_path):
    write_text(tmp_path / "text.txt")
    job = dataclasses.replace(make_job(tmp_path), texts=str(tmp_path))
    for event in train(job):
        if isinstance(event, CheckpointSaved):  # by now there is a model, too
            break
    assert isinstance(list(train(dataclasses.replace(job, resume=True)))[-1], TrainFinished)


def test_a_checkpoint_that_stepped_aside_when_the_run_was_killed_is_found(tmp_path):
    job = make_job(tmp_path)
    begin(job)
    (job.run / "last").rename(job.run / ".last.polyseme-old")
    resumed = list(train(make_job(tmp_path, resume=True)))
    assert next(event for event in resumed if isinstance(event, TrainPlan)).first_step == 1


def test_words_that_are_all_rare_are_no_vocabulary(tmp_path):
    (tmp_path / "text.txt").write_text("hello\n")
    with pytest.raises(InputError, match=r"lower loss\.min_count"):
        list(train(make_job(tmp_path, changes={"loss": {"min_count": 2}})))
