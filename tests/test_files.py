"""Files that appear whole or not at all, and what must never be replaced."""

import os
import threading
from pathlib import Path

import pytest

from polyseme.errors import OutputError
from polyseme.files import replacing, replacing_folder

FULL = Path("/dev/full")


def test_a_link_stays_and_what_it_points_to_is_replaced(tmp_path):
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("old")
    link.symlink_to(target)
    with replacing(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_pipe_is_written_into_and_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    with replacing(pipe) as file:
        file.write(b"words")
    reader.join()
    assert read == [b"words"]
    assert pipe.is_fifo()


@pytest.mark.skipif(not FULL.is_char_device(), reason="needs /dev/full, which Linux has")
def test_a_full_device_is_told_and_stays_a_device():
    with pytest.raises(OutputError, match="/dev/full cannot be written: No space left"), replacing(FULL) as file:
        file.write(b"words")
    assert FULL.is_char_device()


def test_a_folder_never_takes_the_place_of_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OutputError, match="no name for a new folder"), replacing_folder(pipe):
        pytest.fail("nothing is to be done")
    assert pipe.is_fifo()
