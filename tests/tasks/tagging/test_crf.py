"""The CRF against the enumeration of all sequences."""

from itertools import pairwise, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.tasks.tagging.crf import Crf, _forward_by_halving, _forward_by_word
from polyseme.tasks.tagging.schemes import Constraints, constraints, inside_labels, read_spans, write_spans

LABELS = {"plain": ["A", "B", "C"], "BIOES": list(inside_labels(["X"]))}


def make(scheme="BIOES", seed=0, spread=2.0):
    torch.manual_seed(seed)
    crf = Crf(constraints(LABELS[scheme], scheme)).double()
    with torch.no_grad():
        for weight in crf.parameters():
            weight.normal_(std=spread)
    return crf


def batch(lengths, labels, seed, spread=2.0):
    generator = torch.Generator().manual_seed(seed)
    emissions = torch.randn(len(lengths), max(lengths), labels, generator=generator, dtype=torch.float64) * spread
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    return emissions, mask


def enumerate_scores(crf, emissions, scheme):
    """All allowed sequences of one sentence (T, K) and their scores, by the book."""
    start, between, end = constraints(LABELS[scheme], scheme)
    sequences, scores = [], []
    for sequence in product(range(emissions.shape[1]), repeat=len(emissions)):
        pairs = list(pairwise(sequence))
        if not (start[sequence[0]] and end[sequence[-1]] and all(between[pair] for pair in pairs)):
            continue
        score = crf.start[sequence[0]] + crf.end[sequence[-1]]
        score = score + sum(emissions[place, label] for place, label in enumerate(sequence))
        sequences.append(sequence)
        scores.append(score + sum(crf.between[pair] for pair in pairs))
    return sequences, torch.stack(scores)


cases = given(
    st.sampled_from(["plain", "BIOES"]), st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(0, 10**6)
)


@cases
@settings(max_examples=30, deadline=None)
def test_partition_best_sequence_and_marginals_are_those_of_the_enumeration(scheme, lengths, seed):
    crf = make(scheme, seed)
    emissions, mask = batch(lengths, len(LABELS[scheme]), seed)
    totals, best = crf.log_partition(emissions, mask), crf.decode(emissions, mask)
    shares = crf.marginals(emissions, mask)
    for row, length in enumerate(lengths):
        sequences, scores = enumerate_scores(crf, emissions[row, :length], scheme)
        assert totals[row].item() == pytest.approx(torch.logsumexp(scores, 0).item())
        assert tuple(best[row]) == sequences[int(scores.argmax())]
        likely = torch.softmax(scores, 0)
        for place, label in product(range(length), range(len(LABELS[scheme]))):
            wanted = [number for number, sequence in enumerate(sequences) if sequence[place] == label]
            assert shares[row, place, label].item() == pytest.approx(likely[wanted].sum().item(), abs=1e-9)
        assert not shares[row, length:].any()


@cases
@settings(max_examples=20, deadline=None)
def test_gradients_are_those_of_the_enumeration(scheme, lengths, seed):
    crf = make(scheme, seed)
    emissions, mask = batch(lengths, len(LABELS[scheme]), seed)
    emissions.requires_grad_()
    chosen, losses = torch.zeros(len(lengths), max(lengths), dtype=torch.int64), []
    for row, length in enumerate(lengths):
        sequences, scores = enumerate_scores(crf, emissions[row, :length], scheme)
        number = seed % len(sequences)
        chosen[row, :length] = torch.tensor(sequences[number])
        losses.append(torch.logsumexp(scores, 0) - scores[number])
    weights = [emissions, *crf.parameters()]
    expected = torch.autograd.grad(torch.stack(losses).sum(), weights, allow_unused=True)
    found = torch.autograd.grad(crf.loss(emissions, chosen, mask).sum(), weights)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, torch.zeros_like(one) if other is None else other)


@given(st.integers(1, 12), st.integers(0, 10**6), st.floats(0.1, 1e4))
@settings(max_examples=50, deadline=None)
def test_no_illegal_sequence_is_ever_predicted(length, seed, spread):
    crf = make("BIOES", seed, spread).float()
    emissions, mask = batch([length, 1], len(LABELS["BIOES"]), seed, spread)
    for numbers in crf.decode(emissions.float(), mask):
        labels = [LABELS["BIOES"][number] for number in numbers]
        assert write_spans(read_spans(labels), len(labels), "BIOES") == labels


def test_a_sentence_does_not_depend_on_its_company():
    crf = make()
    emissions, mask = batch([4, 2, 7], 5, 3)
    alone = [
        crf.log_partition(emissions[row : row + 1, :n], mask[row : row + 1, :n]) for row, n in enumerate([4, 2, 7])
    ]
    torch.testing.assert_close(crf.log_partition(emissions, mask), torch.cat(alone))


def test_what_lies_beyond_the_end_has_no_part():
    crf = make()
    emissions, mask = batch([2, 5], 5, 0)
    labels = torch.zeros(2, 5, dtype=torch.int64)
    other_emissions, other_labels = emissions.clone(), labels.clone()
    other_emissions[0, 2:], other_labels[0, 2:] = 1e6, 3
    torch.testing.assert_close(crf.loss(emissions, labels, mask), crf.loss(other_emissions, other_labels, mask))


def test_labels_that_nothing_leads_to_leave_gradients_numbers():
    blocked = Constraints(np.array([True, False]), np.array([[True, False], [False, True]]), np.array([True, True]))
    crf = Crf(blocked)
    emissions = torch.randn(1, 3, 2, requires_grad=True)
    crf.loss(emissions, torch.zeros(1, 3, dtype=torch.int64), torch.ones(1, 3, dtype=torch.bool)).sum().backward()
    assert emissions.grad is not None
    assert torch.isfinite(emissions.grad).all()
    assert crf.decode(emissions, torch.ones(1, 3, dtype=torch.bool)) == [[0, 0, 0]]


@cases
@settings(max_examples=30, deadline=None)
def test_joining_words_two_by_two_as_on_a_gpu_gives_the_same_sums_and_gradients(scheme, lengths, seed):
    crf = make(scheme, seed)
    emissions, mask = batch([*lengths, 9], len(LABELS[scheme]), seed)
    results = []
    for is_tree in (False, True):
        scores, (start, between, end) = emissions.clone().requires_grad_(), crf._scores()
        first = start + scores[:, 0]
        ways = first.unsqueeze(2) + _forward_by_halving(between, scores, mask) if is_tree else None
        last = _forward_by_word(first, between, scores, mask) if ways is None else torch.logsumexp(ways, dim=1)
        totals = torch.logsumexp(last + end, dim=1)
        weights = [scores, crf.start, crf.between, crf.end]
        results.append([totals, *torch.autograd.grad(totals.sum(), weights)])
    for one, other in zip(*results, strict=True):
        assert torch.allclose(one, other, atol=1e-9)
