"""Labels of entities: every scheme is read, one is used inside, and nothing is lost between."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyseme.tasks.tagging.schemes import Span, constraints, convert, detect, inside_labels, read_spans, write_spans

TYPES = ("LOC", "PER", "creative-work")


@st.composite
def spans(draw):
    """Entities that do not overlap, in a sentence of a few words."""
    length = draw(st.integers(0, 8))
    ends = sorted(draw(st.lists(st.integers(0, length), max_size=8, unique=True)))
    pairs = [pair for pair in pairwise(ends) if draw(st.booleans())]
    return [Span(begin, end, draw(st.sampled_from(TYPES))) for begin, end in pairs], length


@given(spans(), st.sampled_from(["IOB1", "IOB2", "BIOES"]))
def test_what_is_written_is_read_again(case, scheme):
    entities, length = case
    labels = write_spans(entities, length, scheme)
    assert len(labels) == length
    assert read_spans(labels) == entities


@given(spans(), st.sampled_from(["IOB1", "IOB2", "BIOES"]), st.sampled_from(["IOB1", "IOB2", "BIOES"]))
def test_a_scheme_and_back_is_the_same(case, one, other):
    labels = write_spans(*case, one)
    assert convert(convert(labels, other), one) == labels


@given(spans())
def test_labels_of_real_entities_are_never_forbidden(case):
    names = list(inside_labels(TYPES))
    start, between, end = constraints(names, "BIOES")
    numbers = [names.index(label) for label in write_spans(*case, "BIOES")]
    if numbers:
        assert start[numbers[0]]
        assert end[numbers[-1]]
    assert all(between[one, other] for one, other in pairwise(numbers))


def test_what_is_allowed_is_just_what_bioes_says():
    names = list(inside_labels(["X", "Y"]))
    start, between, end = constraints(names, "BIOES")
    assert [name for name, allowed in zip(names, start, strict=True) if allowed] == ["O", "B-X", "S-X", "B-Y", "S-Y"]
    assert [name for name, allowed in zip(names, end, strict=True) if allowed] == ["O", "E-X", "S-X", "E-Y", "S-Y"]

    def after(name):
        return {names[number] for number in np.flatnonzero(between[names.index(name)])}

    assert after("B-X") == after("I-X") == {"I-X", "E-X"}
    assert after("O") == after("E-X") == after("S-Y") == {"O", "B-X", "S-X", "B-Y", "S-Y"}


def test_plain_labels_may_follow_each_other_freely():
    assert all(part.all() for part in constraints(["DET", "NOUN"], "plain"))


@pytest.mark.parametrize(
    ("sentences", "scheme"),
    [
        ([["I-PER", "I-PER", "B-PER", "O"]], "IOB1"),
        ([["O", "I-LOC"], ["I-LOC", "I-PER"]], "IOB1"),
        ([["B-PER", "I-PER", "O"], ["B-LOC", "B-LOC"]], "IOB2"),
        ([["B-PER", "O", "I-PER"]], "IOB2"),  # a slip in a file that else begins entities with B
        ([["B-PER", "E-PER", "O"]], "BIOES"),
        ([["S-PER", "O"]], "BIOES"),
        ([["NOUN", "O"]], "plain"),
        ([["O", "O"]], "plain"),
        ([["-LRB-", "B-"]], "plain"),
        ([[], ["O"], ["B-a b"]], "IOB2"),
        ([], "plain"),
    ],
)
def test_the_scheme_is_told_from_the_labels(sentences, scheme):
    assert detect(sentences) == scheme


def test_conll_2003_as_published_is_understood():
    labels = ["I-ORG", "O", "I-MISC", "O", "I-PER", "I-PER", "B-PER", "I-LOC"]
    assert convert(labels, "BIOES") == ["S-ORG", "O", "S-MISC", "O", "B-PER", "E-PER", "S-PER", "S-LOC"]
