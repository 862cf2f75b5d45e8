"""The loop learns, goes on as if it had never stopped, and is the same in one process or two."""

import math
import sys
from dataclasses import replace

import pytest
import torch
from torch import multiprocessing
from training_fixture import make_shards, make_trainer, settings_of

from polyseme.errors import ConfigError, FormatError, TrainingError
from polyseme.training.loop.checkpoint import TrainingCheckpoint, load_checkpoint, save_checkpoint
from polyseme.training.loop.distributed import ProcessGroup, join_process_group, leave_process_group
from polyseme.training.loop.trainer import learning_rate
from polyseme.training.settings import LoopSettings


def losses(trainer, steps):
    return [trainer.take_step().loss for _ in range(steps)]


def test_what_follows_from_the_word_before_is_learned(tmp_path):
    shards = make_shards(tmp_path)
    trainer = make_trainer(shards, settings_of(steps=80, rows=16, learning_rate=0.03, dropout=0.0))
    values = losses(trainer, 80)
    # At first it knows how often words occur; whoever looks at the word before knows more.
    assert sum(values[-10:]) < 0.85 * sum(values[:10])


@pytest.mark.parametrize("optimizer", ["adam", "adagrad"])
@pytest.mark.parametrize("shard_tokens", [200, 1 << 20])
def test_a_run_goes_on_from_a_checkpoint_to_the_last_bit(tmp_path, optimizer, shard_tokens):
    shards = make_shards(tmp_path, shard_tokens)
    settings = settings_of(steps=40, optimizer=optimizer, fresh_rows=0.5)
    whole = make_trainer(shards, settings)
    expected = losses(whole, 40)
    first = make_trainer(shards, settings)
    assert losses(first, 20) == expected[:20]
    save_checkpoint(first.checkpoint(), tmp_path / "last")
    second = make_trainer(shards, replace(settings, training=replace(settings.training, seed=0)))
    second.restore(load_checkpoint(tmp_path / "last"))
    assert losses(second, 20) == expected[20:]
    for one, other in zip(whole.model.bilm.parameters(), second.model.bilm.parameters(), strict=True):
        assert torch.equal(one, other)


def _gradients_of_two(rank, port, folder, settings, results):
    import os

    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    os.environ["GLOO_SOCKET_IFNAME"] = "lo0" if sys.platform == "darwin" else "lo"  # whatever the machine is called
    from polyseme.training.shards.store import Shards

    processes, _ = join_process_group("cpu")
    trainer = make_trainer(Shards.open(folder), settings, processes=processes)
    found = [trainer.take_step().loss for _ in range(3)]
    if processes.is_leader:
        results.put((found, [gradient.numpy() for gradient in trainer.gradients()]))
    trainer.checkpoint()
    processes.wait()
    leave_process_group()


def test_two_processes_are_one_with_twice_the_rows(tmp_path, free_port):
    shards = make_shards(tmp_path)
    settings = settings_of(dropout=0.0, fresh_rows=0.5, clip=1e9)
    alone = make_trainer(shards, settings)
    expected = losses(alone, 3)
    context = multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    arguments = (free_port, shards.folder, settings, results)
    multiprocessing.spawn(_gradients_of_two, arguments, nprocs=2)
    found, gradients = results.get()
    assert found == pytest.approx(expected, abs=1e-6)
    for one, other in zip(gradients, alone.gradients(), strict=True):
        torch.testing.assert_close(torch.from_numpy(one), other, rtol=0, atol=1e-6)


def test_rows_that_processes_cannot_share_are_refused():
    with pytest.raises(ConfigError, match=r"multiple of the number of processes \(3\)"):
        ProcessGroup(0, 3).own_rows(64)


def test_steps_without_a_finite_gradient_are_skipped_and_counted(tmp_path):
    trainer = make_trainer(make_shards(tmp_path), settings_of(steps=30, patience=3))
    losses(trainer, 2)
    before = [parameter.clone() for parameter in trainer.model.bilm.parameters()]
    trainer._states[0].cell[0, 1] = math.inf  # as a run that went wrong leaves it
    trainer._states[1].hidden[:] = math.nan
    report = trainer.take_step()
    assert report.skipped == 0  # what is not finite is forgotten, so it does no harm
    with torch.no_grad():
        trainer.model.head.bias[5] = math.nan
    before = [parameter.clone() for parameter in trainer.model.bilm.parameters()]
    assert trainer.take_step().skipped == 1
    assert trainer.take_step().skipped == 2
    for one, other in zip(before, trainer.model.bilm.parameters(), strict=True):
        assert torch.equal(one, other)
    with pytest.raises(TrainingError, match="3 steps in a row had no finite gradient"):
        trainer.take_step()


def test_a_good_step_after_bad_ones_counts_from_the_beginning(tmp_path):
    trainer = make_trainer(make_shards(tmp_path), settings_of(steps=30, patience=2))
    for bad in (True, False, True, False):
        with torch.no_grad():
            trainer.model.head.bias[5] = math.nan if bad else 0.0
        report = trainer.take_step()
    assert report.skipped == 2


@pytest.mark.parametrize(
    "damage",
    [
        lambda tensors, facts: (tensors, {**facts, "position": {}}),
        lambda tensors, facts: ({n: t for n, t in tensors.items() if not n.startswith("state.1")}, facts),
        lambda tensors, facts: ({n: t[:1] if n.startswith("bilm") else t for n, t in tensors.items()}, facts),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused(tmp_path, damage):
    trainer = make_trainer(make_shards(tmp_path), settings_of())
    trainer.take_step()
    broken = TrainingCheckpoint(*damage(*trainer.checkpoint()))
    with pytest.raises(FormatError, match="does not fit this run"):
        trainer.restore(broken)


def test_a_damaged_checkpoint_is_named(tmp_path):
    trainer = make_trainer(make_shards(tmp_path), settings_of())
    trainer.take_step()
    save_checkpoint(trainer.checkpoint(), tmp_path / "last")
    file = tmp_path / "last" / "tensors.safetensors"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(FormatError, match="last cannot be read"):
        load_checkpoint(tmp_path / "last")


def test_the_learning_rate_rises_and_falls():
    settings = LoopSettings(learning_rate=2.0, warm_up=0.1, floor=0.1)
    rates = [learning_rate(settings, step, 100) for step in range(100)]
    assert rates[0] == pytest.approx(0.2)
    assert max(rates) == pytest.approx(2.0)
    assert rates[-1] == pytest.approx(0.2, rel=0.01)
    assert rates[10:] == sorted(rates[10:], reverse=True)
    steady = replace(settings, decay="none", warm_up=0.0)
    assert {learning_rate(steady, step, 100) for step in range(100)} == {2.0}


@pytest.mark.parametrize("threads", [1, 2])
def test_directions_side_by_side_are_directions_one_by_one(tmp_path, threads):
    shards = make_shards(tmp_path)
    expected = losses(make_trainer(shards, settings_of()), 5)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert losses(make_trainer(shards, settings_of()), 5) == expected
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
