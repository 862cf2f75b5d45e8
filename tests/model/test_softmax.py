import pickle

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from polyseme.errors import ConfigError
from polyseme.model import softmax
from polyseme.model.config import from_dict
from polyseme.model.softmax import AdaptiveSoftmax, Softmax, SoftmaxConfig, build_softmax

FULL = SoftmaxConfig(50, 8)
ADAPTIVE = SoftmaxConfig(50, 32, (10, 25))


def make(config, places=40):
    torch.manual_seed(1)
    head = build_softmax(config)
    return head, torch.randn(places, config.dim), torch.randint(config.num_words, (places,))


def test_the_full_softmax_is_the_textbooks():
    head, hidden, targets = make(FULL)
    nn.init.normal_(head.bias)
    scores = hidden @ head.weight.t() + head.bias
    torch.testing.assert_close(head.log_probs(hidden), F.log_softmax(scores, dim=1))
    torch.testing.assert_close(-head.log_prob(hidden, targets), F.cross_entropy(scores, targets, reduction="none"))


def test_the_adaptive_softmax_is_torchs():
    head, hidden, targets = make(ADAPTIVE)
    own = nn.AdaptiveLogSoftmaxWithLoss(32, 50, [10, 25])
    own.load_state_dict({name.removeprefix("clusters."): value for name, value in head.state_dict().items()})
    torch.testing.assert_close(head.log_probs(hidden), own.log_prob(hidden))
    torch.testing.assert_close(-head.log_prob(hidden, targets).mean(), own(hidden, targets).loss)


@pytest.mark.parametrize("config", [FULL, ADAPTIVE])
def test_probabilities_sum_to_one_and_both_ways_agree(config):
    head, hidden, targets = make(config)
    everything = head.log_probs(hidden)
    torch.testing.assert_close(everything.exp().sum(dim=1), torch.ones(len(hidden)))
    torch.testing.assert_close(head.log_prob(hidden, targets), everything.gather(1, targets[:, None]).squeeze(1))
    assert head.log_prob(hidden[:0], targets[:0]).shape == (0,)


@pytest.mark.parametrize("config", [FULL, ADAPTIVE])
def test_pieces_change_neither_numbers_nor_gradients(config, monkeypatch):
    head, hidden, targets = make(config)

    def compute():
        head.zero_grad()
        rows = hidden.clone().requires_grad_()
        found = head.log_prob(rows, targets)
        found.sum().backward()
        with torch.no_grad():
            torch.testing.assert_close(head.log_prob(rows, targets), found)
        return [found.detach(), rows.grad, *(weight.grad.clone() for weight in head.parameters())]

    whole = compute()
    monkeypatch.setattr(softmax, "PIECE", 3 * config.num_words)
    for one, other in zip(whole, compute(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_no_more_than_a_piece_of_the_matrix_is_held(monkeypatch):
    head, hidden, targets = make(FULL)
    seen = []
    original = Softmax._scores
    monkeypatch.setattr(Softmax, "_scores", lambda self, rows: seen.append(len(rows)) or original(self, rows))
    monkeypatch.setattr(softmax, "PIECE", 7 * FULL.num_words)
    head.log_prob(hidden, targets)
    assert max(seen) == 7
    assert sum(seen) == len(hidden)


def test_a_fresh_head_is_small_and_unbiased():
    torch.manual_seed(0)
    head = build_softmax(SoftmaxConfig(4000, 100))
    assert isinstance(head, Softmax)
    assert head.weight.std().item() == pytest.approx(0.1, rel=0.02)
    assert not head.bias.any()


def test_names_of_weights_and_pickling():
    assert set(build_softmax(FULL).state_dict()) == {"weight", "bias"}
    adaptive = pickle.loads(pickle.dumps(build_softmax(ADAPTIVE)))
    assert isinstance(adaptive, AdaptiveSoftmax)
    assert set(adaptive.state_dict()) == {
        "clusters.head.weight",
        *(f"clusters.tail.{cluster}.{layer}.weight" for cluster in range(2) for layer in range(2)),
    }


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_words": 2, "dim": 8}, "num_words of a softmax must be 3 to"),
        ({"num_words": 9, "dim": 0}, "dim of a softmax must be 1 to"),
        ({"num_words": 9, "dim": 8, "cutoffs": [9]}, "cutoffs must rise from 1 to below 9"),
        ({"num_words": 9, "dim": 8, "cutoffs": [0, 4]}, "cutoffs must rise"),
        ({"num_words": 9, "dim": 99, "cutoffs": [4, 4]}, "cutoffs must rise"),
        ({"num_words": 9, "dim": 8, "cutoffs": [3, 6]}, "8 dimensions are too few for 2 cutoffs"),
        ({"num_words": 9, "dim": 8, "cutoff": [3]}, "Did you mean 'cutoffs'"),
    ],
)
def test_settings_that_make_no_head_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        from_dict(SoftmaxConfig, settings, "softmax")
