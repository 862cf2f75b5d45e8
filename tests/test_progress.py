"""Progress: stages are counted, and shown only where somebody asked for it."""

import io
import threading

import numpy as np
import pytest
from rich.console import Console
from tiny_models import make_encoder

import polyseme
from polyseme import progress
from polyseme.progress import Stage, format_seconds, reading, remark, show_progress, stage, track
from polyseme.text.corpus import open_text, plain_sizes


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


class Log(io.StringIO):
    """A log file that says when a line has arrived."""

    def __init__(self):
        super().__init__()
        self.arrived = threading.Event()

    def flush(self):
        self.arrived.set()


def running_lines(monkeypatch):
    """A display off a terminal whose lines come at once."""
    log = Log()
    monkeypatch.setattr(progress.sys, "stderr", log)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.001)
    return log


def test_a_stage_says_how_much_how_fast_and_what_remains(clock):
    now = Stage("embedding", total=400)
    assert now.describe() == "embedding: 0 of 400 sentences"
    clock[0] += 10
    now.advance(100, words=2_000)
    assert now.describe() == "embedding: 100 of 400 sentences, 200 words/s, about 30 s left"
    now.note = "loss 0.5"
    assert now.describe().endswith("left, loss 0.5")


def test_a_stage_of_unknown_length_counts_without_promises(clock):
    now = Stage("embedding")
    assert now.describe() == "embedding ..."
    clock[0] += 10
    now.advance(5)
    assert now.describe() == "embedding: 5 sentences, 0.5/s"


@pytest.mark.parametrize(
    ("total", "text"), [(2_000_000, "0.5 of 2.0 MB"), (None, "500.0 kB"), (600_000, "500.0 of 600.0 kB")]
)
def test_bytes_have_a_readable_unit(total, text):
    now = Stage("reading", total, "bytes")
    now.advance(500_000)
    assert now.describe() == f"reading: {text}"


def test_work_of_an_earlier_run_does_not_flatter_the_estimate(clock):
    now = Stage("embedding", total=100, already=50)
    clock[0] += 10
    now.advance(10)
    assert now.describe() == "embedding: 60 of 100 sentences, 1.0/s, about 40 s left"


@pytest.mark.parametrize(("seconds", "text"), [(0.2, "1 s"), (99, "99 s"), (720, "12 min"), (12_000, "3 h 20 min")])
def test_durations_are_for_people(seconds, text):
    assert format_seconds(seconds) == text


def test_nobody_pays_for_progress_that_nobody_watches(capfd):
    items = [1, 2, 3]
    assert type(track(items, "counting")) is type(iter(items))
    with stage("counting") as now:
        now.advance()
    remark("done")
    assert capfd.readouterr() == ("", "")


def test_off_a_terminal_running_stages_are_lines(monkeypatch):
    log = running_lines(monkeypatch)
    with show_progress(), stage("comparing"), stage("embedding", total=4) as now:
        now.advance(2)
        assert log.arrived.wait(60)
        remark("epoch 1: loss 0.5")
    assert "comparing; embedding: 2 of 4 sentences\n" in log.getvalue()
    assert log.getvalue().endswith("epoch 1: loss 0.5\n")


def test_on_a_terminal_they_are_bars_above_which_lines_stay(monkeypatch):
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=80, highlight=False)
    display = progress._Bars(console)
    display.stages.append(Stage("embedding", total=4, already=2))
    with display.run():
        display.print_line("epoch 1: loss 0.5")
    assert "━" in screen.getvalue()
    assert "embedding: 2 of 4 sentences" in screen.getvalue()
    assert "epoch 1: loss 0.5" in screen.getvalue()


def test_stages_end_with_their_block_and_displays_do_not_nest():
    with show_progress():
        display = progress._display.get()
        with show_progress(), stage("one"):
            assert progress._display.get() is display
            assert list(track("ab", "two")) == ["a", "b"]
            assert [each.what for each in display.stages] == ["one"]
        assert display.stages == []
    assert progress._display.get() is None


def test_files_say_how_much_of_them_is_read(tmp_path):
    (tmp_path / "a.txt").write_text("ab\ncd\n")
    sizes = plain_sizes([tmp_path / "a.txt"])
    assert (sizes, plain_sizes(["-", tmp_path / "b.gz"])) == ([6], [None, None])
    with show_progress(), reading(sizes):
        display = progress._display.get()
        with open_text(tmp_path / "a.txt") as lines:
            next(lines)
            next(lines)
            assert display.reading.done == 6
        assert display.reading.fraction == 1


def test_embedding_counts_sentences_and_words_and_gives_the_same_vectors():
    encoder, sentences = make_encoder(), [["a", "b"], ["c"], []]
    silent = list(encoder.embed(sentences))
    with polyseme.show_progress():
        stages = progress._display.get().stages
        shown = []
        for vectors in encoder.embed(sentences):
            shown.append(vectors)
            assert (stages[0].what, stages[0].total) == ("embedding", 3)
        assert stages == []
    for one, other in zip(silent, shown, strict=True):
        np.testing.assert_array_equal(one, other)
