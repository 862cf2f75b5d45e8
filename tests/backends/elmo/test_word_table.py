"""A table of words says rightly what stands where, forgets what was not used for longest, and keeps to its size."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.backends.elmo.word_table import WordTable
from polyseme.text.word_encoder import BOUNDARIES

WORDS = ["", "<S>", "</S>", "the", "bank", "of", "river", ".", "a", "b", "c", "d"]
histories = st.lists(st.lists(st.sampled_from(WORDS), max_size=12), min_size=1, max_size=12)
sizes = st.integers(0, 14)
claim = settings(max_examples=50, deadline=None)


class Owner:
    """Keeps a table of what was encoded, here the words themselves, and does what it is told."""

    def __init__(self, size):
        self.names = WordTable(size)
        self.table = np.array(["opening", "closing"], dtype=object)

    def look_up(self, words):
        rows = self.names.look_up(words)
        if rows.kept is not None:
            self.table = self.table[rows.kept]
        self.table = np.append(self.table, rows.new)
        return rows

    @property
    def words(self):
        return self.table[BOUNDARIES:].tolist()


@claim
@given(sizes, histories)
def test_every_word_is_at_its_row(size, history):
    owner = Owner(size)
    for words in history:
        rows = owner.look_up(words)
        assert owner.table[rows.words].tolist() == words
        assert (rows.words >= BOUNDARIES).all()


@claim
@given(sizes, histories)
def test_the_boundaries_stay_where_they_are(size, history):
    owner = Owner(size)
    for words in history:
        owner.look_up(words)
        assert owner.table[:BOUNDARIES].tolist() == ["opening", "closing"]


@claim
@given(sizes, histories)
def test_it_holds_no_more_than_its_size_or_the_batch(size, history):
    owner = Owner(size)
    for words in history:
        owner.look_up(words)
        assert len(owner.names) == len(owner.table)
        assert len(owner.words) <= max(size, len(set(words)))


@claim
@given(sizes, histories)
def test_only_words_that_are_not_there_are_encoded_and_each_once(size, history):
    owner = Owner(size)
    for words in history:
        before = set(owner.words)
        rows = owner.look_up(words)
        assert sorted(rows.new) == sorted(set(words) - before)
        assert len(set(owner.words)) == len(owner.words)


@claim
@given(sizes, histories)
def test_nothing_moves_while_there_is_room(size, history):
    owner = Owner(size)
    for words in history:
        fits = len(set(owner.words) | set(words)) <= size
        assert (owner.look_up(words).kept is None) == fits


@claim
@given(sizes, histories)
def test_the_words_not_used_for_longest_go(size, history):
    owner, used = Owner(size), {}
    for time, words in enumerate(history):
        before = set(owner.words)
        owner.look_up(words)
        gone, stayed = before - set(owner.words), before & set(owner.words) - set(words)
        assert max((used[word] for word in gone), default=-1) <= min((used[word] for word in stayed), default=time)
        used.update(dict.fromkeys(words, time))


@claim
@given(histories)
def test_without_size_it_holds_the_last_batch_alone(history):
    owner = Owner(0)
    for words in history:
        owner.look_up(words)
        assert set(owner.words) == set(words)


@claim
@given(sizes, histories)
def test_the_report_counts_words_and_those_that_were_encoded(size, history):
    owner = Owner(size)
    encoded = sum(len(owner.look_up(words).new) for words in history)
    report = owner.names.report
    assert (report.words, report.encoded) == (sum(map(len, history)), encoded)
    assert report.hit_rate == (1 - encoded / report.words if report.words else 0)
