"""Training on a GPU is training on a CPU, but for rounding. CI has none: run by hand, see docs/experiments.md."""

import copy
from dataclasses import replace

import pytest
import torch
from training_fixture import make_shards, make_trainer, settings_of

from polyseme.kernels.char_cnn import char_cnn_on_gpu
from polyseme.kernels.reference import LstmpWeights, LstmState
from polyseme.kernels.sequence import run_sequence
from polyseme.model.softmax import Softmax, SoftmaxConfig
from polyseme.training.loop.checkpoint import load_checkpoint, save_checkpoint
from polyseme.training.loop.losses import FullLoss, SampledLoss
from polyseme.training.loop.sampled_softmax import Sampler, unigram

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


def far(found, expected):
    found, expected = found.detach().double().cpu(), expected.detach().double().cpu()
    assert torch.isfinite(found).all()
    return float((found - expected).norm() / expected.norm())


@pytest.mark.parametrize(("dtype", "near"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
def test_the_recurrence_of_the_gpu_is_ours(dtype, near):
    generator = torch.Generator().manual_seed(0)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64) * 0.3

    leaves = [draw(16, 128), draw(16, 128), draw(128), draw(32, 16), draw(9, 8, 16)]
    state, change = LstmState(draw(8, 16), draw(8, 32)), draw(9, 8, 16)
    found = []
    for device in ("cpu", "cuda"):
        kind = torch.float64 if device == "cpu" else torch.float32
        here = [leaf.detach().to(device, kind, copy=True).requires_grad_() for leaf in leaves]
        settings = {"cell_clip": None, "output_clip": None, "forget_bias": 1.0}
        with torch.autocast("cuda", dtype, enabled=device == "cuda" and dtype != torch.float32):
            before = LstmState(*(part.to(device, kind) for part in state))
            outputs, after = run_sequence(LstmpWeights(*here[:4]), here[4], before, **settings)
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
            outputs.backward(change.to(device, outputs.dtype))
        found.append([outputs, *after, *(leaf.grad for leaf in here)])
    assert [far(one, other) for one, other in zip(found[1], found[0], strict=True) if far(one, other) > near] == []


@pytest.mark.parametrize(("dtype", "near"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
def test_the_gpu_reads_words_as_the_cpu_does(dtype, near):
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(3, 51, (300,), generator=generator)
    spellings = torch.randint(1, 260, (300, 50), generator=generator)
    spellings[torch.arange(50) >= lengths.unsqueeze(1)] = 0
    weights = [torch.randn(261, 16, generator=generator, dtype=torch.float64)]
    for width, count in ((1, 32), (3, 64), (7, 1500)):
        weights.append(torch.randn(count, 16, width, generator=generator, dtype=torch.float64))
        weights.append(torch.randn(count, generator=generator, dtype=torch.float64))
    change = torch.randn(300, 1596, generator=generator, dtype=torch.float64)
    found = []
    for device in ("cpu", "cuda"):
        kind = torch.float64 if device == "cpu" else torch.float32
        here = [weight.to(device, kind, copy=True).requires_grad_() for weight in weights]
        with torch.autocast("cuda", dtype, enabled=device == "cuda" and dtype != torch.float32):
            filters = list(zip(here[1::2], here[2::2], strict=True))
            answers = char_cnn_on_gpu(spellings.to(device), lengths, here[0], filters)
        answers.backward(change.to(device, answers.dtype))
        found.append([answers, *(leaf.grad for leaf in here)])
    near = [near] + [near if dtype == torch.float32 else 0.2] * 7  # rounding changes which of two places is the largest
    misses = [far(one, other) for one, other in zip(found[1], found[0], strict=True)]
    assert all(miss < limit for miss, limit in zip(misses, near, strict=True)), misses


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("samples", [None, 700])
def test_the_loss_of_the_gpu_is_the_loss(dtype, samples):
    generator = torch.Generator().manual_seed(0)
    softmax = Softmax(SoftmaxConfig(3000, 32))
    counts = torch.arange(3000, 0, -1) ** 2
    hidden = torch.randn(500, 32, generator=generator).to(dtype)
    targets = torch.randint(0, 3000, (500,), generator=generator)
    found = []
    for device in ("cpu", "cuda"):
        head = copy.deepcopy(softmax).to(device)
        loss = FullLoss(head) if samples is None else SampledLoss(head, Sampler(unigram(counts), samples))
        loss.draw(0.3)
        ahead = hidden.to(device, torch.float32 if device == "cpu" else dtype, copy=True).requires_grad_()
        total = loss(ahead, targets.to(device))
        total.backward()
        found.append([total, *(part.grad.clone() for part in (ahead, head.weight, head.bias))])
    misses = [far(one, other) for one, other in zip(found[1], found[0], strict=True)]
    assert max(misses) < (1e-5 if dtype == torch.float32 else 1e-2), misses
    assert misses[0] < 1e-4, misses


def test_a_gpu_takes_the_steps_of_a_cpu(tmp_path):
    shards = make_shards(tmp_path, shard_tokens=200)
    settings = settings_of(steps=30, dropout=0.0, fresh_rows=0.5)
    one, other = (make_trainer(shards, settings, device) for device in ("cpu", "cuda"))
    for _ in range(30):
        assert one.take_step().loss == pytest.approx(other.take_step().loss, rel=2e-4)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_a_run_on_a_gpu_goes_on_from_a_checkpoint(tmp_path, precision):
    shards = make_shards(tmp_path, shard_tokens=200)
    settings = settings_of(steps=40, precision=precision, fresh_rows=0.5)
    first = make_trainer(shards, settings, "cuda")
    for _ in range(17):
        first.take_step()
    save_checkpoint(first.checkpoint(), tmp_path / "last")
    second = make_trainer(shards, replace(settings, training=replace(settings.training)), "cuda")
    second.take_step()
    second.restore(load_checkpoint(tmp_path / "last"))
    for _ in range(20):
        expected, found = first.take_step(), second.take_step()
        assert found.loss == pytest.approx(expected.loss, rel=1e-4 if precision == "float32" else 3e-2)
        assert found.epochs == expected.epochs
        assert found.skipped == 0


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_short_numbers_learn(tmp_path, precision):
    shards = make_shards(tmp_path)
    settings = settings_of(steps=80, rows=16, learning_rate=0.03, dropout=0.0, precision=precision)
    trainer = make_trainer(shards, settings, "cuda")
    losses = [trainer.take_step().loss for _ in range(80)]
    assert sum(losses[-10:]) < 0.85 * sum(losses[:10])
