"""The one loop: the best is kept, and a run that was killed ends as any other."""

import dataclasses
import json
import platform
from itertools import islice

import numpy as np
import pytest
import torch
from torch import nn

from polyseme.errors import ConfigError, FormatError, OutputError
from polyseme.tasks.fitting.checkpoint import FitCheckpoint
from polyseme.tasks.fitting.loop import DevScore, FitSettings, fit, length_batches

SETTINGS = FitSettings(epochs=6, epoch_steps=1, patience=2, batch_size=4, rate=0.05, average=0)


class Line:
    """A task whose network learns a line; its scores are told beforehand."""

    def __init__(self, scores=(), layers=0):
        torch.manual_seed(0)
        self.network = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3), nn.Dropout(0.3), nn.Linear(3, 1))
        self.data = torch.randn(20, 3, generator=torch.Generator().manual_seed(1))
        self.scores, self.layers = iter(scores), layers
        self.seen = []

    def encoder_layers(self):
        return [list(self.network[number].parameters()) for number in range(self.layers)]

    def batches(self, rng):
        return length_batches(np.arange(20) % 5, 4, rng)

    def loss(self, batch):
        self.seen.append([weight.requires_grad for weight in self.network.parameters()])
        rows = self.data[batch]
        return ((self.network(rows).squeeze(1) - rows.sum(1)) ** 2).mean()

    def score(self):
        value = next(self.scores, None)
        return None if value is None else DevScore(value, "made up")

    def weights(self):
        return torch.cat([weight.flatten() for weight in self.network.state_dict().values()]).tolist()


def test_every_step_is_reported_and_the_score_at_the_end_of_an_epoch():
    reports = list(fit(Line([0.1, 0.2, 0.3]), dataclasses.replace(SETTINGS, epochs=3)))
    assert [(report.epoch, report.step) for report in reports] == [(e, s) for e in (1, 2, 3) for s in range(1, 6)]
    assert [report.score.value for report in reports if report.score] == [0.1, 0.2, 0.3]
    assert [report.is_last for report in reports] == [False] * 14 + [True]


def test_an_epoch_over_a_small_set_is_several_passes_in_different_orders():
    orders = []

    class Watched(Line):
        def batches(self, rng):
            orders.append(np.concatenate(super().batches(rng)).tolist())
            return super().batches(rng)

    reports = list(fit(Watched([0.1]), dataclasses.replace(SETTINGS, epochs=1, epoch_steps=12)))
    assert [report.step for report in reports] == list(range(1, 16))  # three passes of five steps
    assert all(sorted(order) == list(range(20)) for order in orders)
    assert len({tuple(order) for order in orders}) == len(orders) == 3


def test_what_is_switched_off_for_a_step_is_on_again_after_it():
    before = torch.backends.mkldnn.enabled
    seen = []

    class Watched(Line):
        def loss(self, batch):
            seen.append(torch.backends.mkldnn.enabled)
            raise ConfigError("on purpose")

    with pytest.raises(ConfigError, match="on purpose"):
        list(fit(Watched([0.1]), SETTINGS))
    is_arm = platform.machine().lower() in ("aarch64", "arm64")
    assert seen == [before and not is_arm]
    assert torch.backends.mkldnn.enabled == before


def test_it_ends_when_patience_does_and_the_best_weights_are_kept():
    task = Line([0.5, 0.9, 0.9, 0.8, 1.0])
    best = None
    for report in fit(task, SETTINGS):
        if report.score and report.epoch == 2:
            best = task.weights()
    assert (report.epoch, report.best, report.best_epoch) == (4, 0.9, 2)
    assert task.weights() == best


def test_epochs_that_find_nothing_yet_do_not_try_patience():
    reports = list(fit(Line([0, 0, 0, 0, 0.1, 0.05]), SETTINGS))
    assert (reports[-1].epoch, reports[-1].best_epoch) == (6, 5)


def test_without_a_dev_set_all_epochs_are_run_and_the_last_is_kept():
    task = Line()
    seen = [(report, task.weights()) for report in fit(task, SETTINGS)]
    report, last = seen[-1]
    assert (report.epoch, report.best, report.is_last) == (6, None, True)
    assert task.weights() == last


def test_the_same_seed_gives_the_same_bits_whatever_the_caller_does_meanwhile():
    one, other = Line(), Line()
    list(fit(one, SETTINGS))
    for _ in fit(other, SETTINGS):
        torch.rand(3)
    assert one.weights() == other.weights()
    third = Line()
    list(fit(third, dataclasses.replace(SETTINGS, seed=1)))
    assert third.weights() != one.weights()


def test_a_callers_random_numbers_are_left_alone():
    torch.manual_seed(7)
    expected = torch.rand(6)
    task = Line()
    torch.manual_seed(7)
    found = [torch.rand(3)]
    list(fit(task, SETTINGS))
    assert torch.equal(torch.cat([*found, torch.rand(3)]), expected)


def test_the_mean_of_the_weights_is_judged_and_kept():
    task = Line()
    seen = []
    task.score = lambda: seen.append(task.weights())
    raw = Line()
    list(fit(task, dataclasses.replace(SETTINGS, epochs=2, average=0.999)))
    steps = [raw.weights() for _ in fit(raw, dataclasses.replace(SETTINGS, epochs=2))]
    means = np.cumsum(steps, axis=0) / np.arange(1, 11)[:, None]
    np.testing.assert_allclose(seen, means[[4, 9]], rtol=1e-5, atol=1e-6)
    assert task.weights() == seen[-1]


@pytest.mark.parametrize(("killed_after", "average"), [(1, 0), (7, 0.9), (10, 0.9), (12, 0)])
def test_a_run_that_was_killed_and_goes_on_ends_with_the_same_bits(tmp_path, killed_after, average):
    settings = dataclasses.replace(SETTINGS, average=average)
    scores = [0.5, 0.9, 0.1, 0.2, 0.3]
    whole = Line(scores)
    list(fit(whole, settings))
    killed = Line(scores)
    report = list(islice(fit(killed, settings, FitCheckpoint(tmp_path / "c", {"data": 1})), killed_after))[-1]
    finished = report.epoch - (report.step < report.steps)
    again = Line(scores[finished:])
    reports = list(fit(again, settings, FitCheckpoint(tmp_path / "c", {"data": 1})))
    assert reports[0].epoch == finished + 1
    assert again.weights() == whole.weights()


def test_a_run_that_is_over_only_takes_up_its_best_weights(tmp_path):
    scores = [0.5, 0.1, 0.1]
    whole = Line(scores)
    list(fit(whole, SETTINGS, FitCheckpoint(tmp_path / "c", {})))
    again = Line()
    assert list(fit(again, SETTINGS, FitCheckpoint(tmp_path / "c", {}))) == []
    assert again.weights() == whole.weights()


def test_a_checkpoint_of_another_run_is_refused_by_what_differs(tmp_path):
    list(
        fit(Line([0.1]), dataclasses.replace(SETTINGS, epochs=1), FitCheckpoint(tmp_path / "c", {"data": 1, "seed": 0}))
    )
    with pytest.raises(OutputError, match="was started with other data; resume with the same"):
        list(fit(Line(), SETTINGS, FitCheckpoint(tmp_path / "c", {"data": 2, "seed": 0})))


@pytest.mark.parametrize(
    "name", ["state.json", "weights.safetensors", "best.safetensors", "adam.safetensors", "means.safetensors"]
)
@pytest.mark.parametrize("how", ["gone", "cut"])
def test_a_damaged_checkpoint_is_said(tmp_path, name, how):
    checkpoint = FitCheckpoint(tmp_path / "c", {})
    list(fit(Line([0.1, 0.2]), dataclasses.replace(SETTINGS, epochs=1), checkpoint))
    file = tmp_path / "c" / name
    content = file.read_bytes()
    file.unlink() if how == "gone" else file.write_bytes(content[: len(content) // 2])
    with pytest.raises(FormatError, match="c"):
        list(fit(Line(), SETTINGS, checkpoint))


def test_a_checkpoint_holds_no_pickles_and_goes_away_when_told(tmp_path):
    checkpoint = FitCheckpoint(tmp_path / "c", {})
    list(fit(Line([0.1]), dataclasses.replace(SETTINGS, epochs=1), checkpoint))
    assert json.loads((tmp_path / "c" / "state.json").read_text())["epoch"] == 1
    assert all(file.suffix in (".json", ".safetensors") for file in (tmp_path / "c").iterdir())
    checkpoint.remove()
    assert not (tmp_path / "c").exists()
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "thesis.txt").write_text("mine")
    checkpoint.remove()
    assert (tmp_path / "c" / "thesis.txt").exists()


def test_a_loss_that_is_no_number_is_said():
    task = Line()
    task.data[3] = float("nan")
    with pytest.raises(ConfigError, match="the loss became NaN or infinite"):
        list(fit(task, SETTINGS))


def test_the_rate_falls_when_the_score_stands_still():
    task, seen = Line([0.5, 0.4, 0.4, 0.4, 0.4, 0.4]), []
    settings = dataclasses.replace(SETTINGS, patience=9, decay=0.5, decay_after=2, epochs=6)
    step = torch.optim.AdamW.step

    def watched(self, *arguments):
        seen.append(self.param_groups[0]["lr"])
        return step(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.AdamW, "step", watched)
        list(fit(task, settings))
    assert seen[::5] == [0.05, 0.05, 0.05, 0.025, 0.025, 0.0125]


def test_encoders_learn_from_the_top_down_when_that_is_asked():
    task = Line(layers=2)
    list(fit(task, dataclasses.replace(SETTINGS, epochs=4, gradual=True)))
    learning = [tuple(flags[:4]) for flags in task.seen[::5]]
    assert learning == [(False,) * 4, (False, False, True, True), (True,) * 4, (True,) * 4]


def test_encoders_have_a_rate_of_their_own():
    task = Line(layers=2)
    before = [weight.clone() for weight in task.network.parameters()]
    list(fit(task, dataclasses.replace(SETTINGS, epochs=1, encoder_rate=0.0)))
    same = [torch.equal(*pair) for pair in zip(before, task.network.parameters(), strict=True)]
    assert same == [True, True, True, True, False, False]


@pytest.mark.parametrize(
    "wrong", [{"epochs": 0}, {"patience": 0}, {"rate": -1}, {"clip": 0}, {"seed": -1}, {"decay": 2}, {"rate": "fast"}]
)
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        FitSettings(**wrong)


def test_batches_hold_everything_once_and_like_lengths_together():
    lengths = np.random.default_rng(0).integers(1, 60, 500)
    groups = length_batches(lengths, 32, np.random.default_rng(1))
    assert sorted(np.concatenate(groups).tolist()) == list(range(500))
    assert max(np.ptp(lengths[group]) for group in groups) <= 10
