"""Files and folders that appear whole or not at all, and what must never be replaced."""

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from polyseme.errors import OutputError
from polyseme.files import atomic_folder, atomic_write, locked_folder, recover_folder

FULL = Path("/dev/full")


def test_a_link_stays_and_what_it_points_to_is_replaced(tmp_path):
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("old")
    link.symlink_to(target)
    with atomic_write(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_pipe_is_written_into_and_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    with atomic_write(pipe) as file:
        file.write(b"words")
    reader.join()
    assert read == [b"words"]
    assert pipe.is_fifo()


@pytest.mark.skipif(not FULL.is_char_device(), reason="needs /dev/full, which Linux has")
def test_a_full_device_is_told_and_stays_a_device():
    with pytest.raises(OutputError, match="/dev/full cannot be written: No space left"), atomic_write(FULL) as file:
        file.write(b"words")
    assert FULL.is_char_device()


def test_a_folder_never_takes_the_place_of_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OutputError, match="not a name for a new folder"), atomic_folder(pipe):
        pytest.fail("nothing is to be done")
    assert pipe.is_fifo()


def write(folder, text):
    with atomic_folder(folder) as place:
        (place / "file").write_text(text)


def test_a_folder_that_stepped_aside_in_a_killed_run_comes_back(tmp_path):
    folder = tmp_path / "folder"
    write(folder, "first")
    folder.rename(tmp_path / ".folder.old")  # as between the two renames
    recover_folder(folder)
    assert (folder / "file").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_what_a_killed_run_had_no_time_to_remove_is_in_nobody_s_way(tmp_path):
    folder = tmp_path / "folder"
    write(folder, "first")
    write(tmp_path / ".folder.old", "older")
    write(folder, "second")
    assert (folder / "file").read_text() == "second"
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_folder_is_held_by_one_at_a_time(tmp_path):
    with locked_folder(tmp_path, "somebody"):
        for _ in range(2):  # the refused one has removed nothing
            with pytest.raises(OutputError, match="in use by somebody"), locked_folder(tmp_path, "somebody"):
                pass
    with locked_folder(tmp_path, "somebody"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_lock_ends_with_the_process_that_holds_it(tmp_path):
    code = "import os, sys; from pathlib import Path; from polyseme.files import locked_folder\n"
    code += "with locked_folder(Path(sys.argv[1]), 'somebody'):\n    print('held', flush=True); sys.stdin.read()\n"
    process = subprocess.Popen(
        [sys.executable, "-c", code, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    with pytest.raises(OutputError, match="in use by somebody"), locked_folder(tmp_path, "somebody"):
        pass
    process.kill()
    process.communicate()
    with locked_folder(tmp_path, "somebody"):
        pass


def test_a_disk_without_locks_is_used_without(tmp_path, monkeypatch):
    def unknown(lock):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("filelock.FileLock._acquire", unknown)
    with locked_folder(tmp_path, "somebody"):
        pass
