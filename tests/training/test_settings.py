"""Settings that cannot be are refused by name; the others arrive."""

import signal

import pytest

from polyseme.errors import ConfigError
from polyseme.training.settings import change, parse_set, preset
from polyseme.training.signals import GracefulStop


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("training=3", "training must be a table of settings"),
        ("training..steps=3", "--set takes table.setting=value"),
        ("characters=letters", "characters must be bytes or code points"),
        ("model.lstm.dim=16", "input's dim .64. and the LSTM's .16. must be equal"),
        ("training.epochs=Infinity", "epochs must be above 0 and finite"),
        ("training.learning_rate=NaN", "learning_rate must be above 0 and finite"),
        ("training.save_seconds=NaN", "save_seconds must be 0 or more"),
        ("training.seed=99999999999999999999", "seed must be below 2.63"),
        ("loss.cutoffs=[9,5]", "cutoffs must be above 0 and rise"),
        ("loss.cutoffs=[0]", "cutoffs must be above 0 and rise"),
        ("data.held_out=NaN", "held_out must be a fraction"),
    ],
)
def test_what_cannot_be_is_refused(wrong, message):
    with pytest.raises(ConfigError, match=message):
        change(preset("tiny"), parse_set([wrong]))


def test_set_reaches_every_table_and_the_last_word_counts():
    changed = change(preset("tiny"), parse_set(["characters=code points", "training=3", "training.steps=4"]))
    assert (changed.characters, changed.training.steps) == ("code points", 4)


def test_who_asks_to_stop_is_obeyed_at_once_before_there_is_anything_to_save_and_when_asking_twice():
    answers = []
    with GracefulStop(lambda: answers.append(1)) as stop:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        assert not stop.requested
        stop.defer = True
        signal.raise_signal(signal.SIGINT)
        assert (stop.requested, answers) == (True, [1])
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
