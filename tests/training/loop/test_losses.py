"""The three ways to measure a prediction: what they estimate, and how well."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from polyseme.errors import ConfigError
from polyseme.model.softmax import AdaptiveSoftmax, Softmax, SoftmaxConfig
from polyseme.training.loop.losses import AdaptiveLoss, FullLoss, SampledLoss, make_loss
from polyseme.training.loop.sampled_softmax import Sampler, log_uniform, unigram
from polyseme.training.settings import LossSettings

WORDS, DIM, ROWS = 60, 8, 40
COUNTS = torch.tensor([1000 // (rank + 1) for rank in range(WORDS)])


def make_softmax() -> Softmax:
    torch.manual_seed(3)
    softmax = Softmax(SoftmaxConfig(WORDS, DIM))
    softmax.bias.data.normal_()
    return softmax


def predictions():
    generator = torch.Generator().manual_seed(5)
    hidden = torch.randn(ROWS, DIM, generator=generator)
    return hidden, torch.randint(WORDS, (ROWS,), generator=generator)


def gradients(loss, softmax, hidden, targets):
    hidden = hidden.clone().requires_grad_()
    softmax.zero_grad()
    value = loss(hidden, targets)
    (3 * value).backward()
    return [value.detach().double(), *(g.double() / 3 for g in (hidden.grad, softmax.weight.grad, softmax.bias.grad))]


def textbook(softmax, hidden, targets):
    return gradients(
        lambda h, t: F.cross_entropy(F.linear(h, softmax.weight, softmax.bias), t, reduction="sum"),
        softmax,
        hidden,
        targets,
    )


@pytest.mark.parametrize("block", [1, 7 * WORDS, 1 << 22])
def test_the_full_softmax_is_the_textbook_s_loss_and_gradient(monkeypatch, block):
    monkeypatch.setattr("polyseme.training.loop.cross_entropy.CPU_BLOCK", block)
    softmax, (hidden, targets) = make_softmax(), predictions()
    for one, other in zip(
        gradients(FullLoss(softmax), softmax, hidden, targets), textbook(softmax, hidden, targets), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_with_every_word_sampled_it_is_the_full_softmax():
    softmax, (hidden, targets) = make_softmax(), predictions()
    loss = SampledLoss(softmax, Sampler(unigram(COUNTS), WORDS))
    loss.draw(0.7)
    for one, other in zip(gradients(loss, softmax, hidden, targets), textbook(softmax, hidden, targets), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("weights", [unigram(COUNTS), log_uniform(WORDS)])
@pytest.mark.parametrize("samples", [1, 5, 20, 59])
def test_every_word_is_drawn_as_often_as_its_share_says(weights, samples):
    sampler = Sampler(weights, samples)
    places = (torch.arange(4000, dtype=torch.float64) + 0.5) / 4000
    drawn = torch.stack([torch.bincount(sampler.draw(float(place))[0], minlength=WORDS) for place in places])
    assert (drawn.sum(dim=1) == samples).all()
    assert drawn.max() == 1  # a word comes at most once
    # The places are spread evenly, so a share is met to one draw at each end of a word's stretch.
    torch.testing.assert_close(drawn.double().mean(dim=0), sampler.probabilities, rtol=0, atol=2 / 4000)
    assert sampler.probabilities.sum().item() == pytest.approx(samples)


def test_the_partition_function_is_estimated_without_bias():
    softmax, (hidden, _) = make_softmax(), predictions()
    scores = F.linear(hidden, softmax.weight, softmax.bias).detach()
    sampler = Sampler(unigram(COUNTS), 12)
    generator = torch.Generator().manual_seed(11)
    draws = 4000
    estimates = []
    for place in torch.rand(draws, generator=generator, dtype=torch.float64).tolist():
        words, log_probabilities = sampler.draw(place)
        estimates.append((scores[:, words] - log_probabilities).exp().sum(dim=1))
    estimates = torch.stack(estimates)
    error = estimates.std(dim=0) / draws**0.5
    # Four standard errors: one of the 40 rows would be beyond by chance once in 400 runs; the seed is fixed.
    assert ((estimates.mean(dim=0) - scores.exp().sum(dim=1)).abs() < 4 * error).all()


def test_the_gradient_s_bias_shrinks_as_samples_grow():
    softmax, (hidden, targets) = make_softmax(), predictions()
    exact = textbook(softmax, hidden, targets)[1].double()
    biases = []
    for samples in (6, 18, 54):
        loss = SampledLoss(softmax, Sampler(unigram(COUNTS), samples))
        total = torch.zeros_like(exact)
        for place in range(400):
            loss.draw((place + 0.5) / 400)
            total += gradients(loss, softmax, hidden, targets)[1]
        biases.append(float((total / 400 - exact).norm() / exact.norm()))
    assert biases[0] > 1.5 * biases[1] > 15 * biases[2]
    assert biases[2] < 0.01


def test_an_adaptive_softmax_is_measured_by_its_own_probabilities():
    softmax = AdaptiveSoftmax(SoftmaxConfig(WORDS, DIM, (20,)))
    hidden, targets = predictions()
    expected = -softmax.log_probs(hidden)[torch.arange(ROWS), targets].sum()
    torch.testing.assert_close(AdaptiveLoss(softmax)(hidden, targets), expected)


def test_settings_choose_the_loss():
    softmax = Softmax(SoftmaxConfig(WORDS, DIM))
    assert isinstance(make_loss(LossSettings(samples=WORDS), softmax, COUNTS), FullLoss)
    assert isinstance(make_loss(LossSettings(kind="full"), softmax, COUNTS), FullLoss)
    assert isinstance(make_loss(LossSettings(samples=10), softmax, COUNTS), SampledLoss)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=30), st.integers(1, 40), st.floats(0, 1, exclude_max=True))
def test_any_weights_give_shares_that_hold(weights, samples, place):
    sampler = Sampler(torch.tensor(weights), samples)
    words, log_probabilities = sampler.draw(place)
    assert len(set(words.tolist())) == len(words) == min(samples, len(weights))
    assert sampler.probabilities.max() <= 1
    assert (log_probabilities <= 0).all()


def test_no_samples_are_refused():
    with pytest.raises(ConfigError, match="1 sample or more"):
        Sampler(torch.ones(3), 0)
