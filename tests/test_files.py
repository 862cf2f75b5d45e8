"""Files and folders that appear whole or not at all, and what must never be replaced."""

import os
import sys
import threading
from pathlib import Path

import pytest

from polyseme import files
from polyseme.errors import OutputError
from polyseme.files import atomic_folder, atomic_write, recover_folder

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


@pytest.mark.skipif(sys.platform != "linux", reason="needs renameat2")
def test_a_folder_that_is_replaced_is_never_missing(tmp_path, monkeypatch):
    folder, seen = tmp_path / "folder", []
    write(folder, "first")
    monkeypatch.setattr(Path, "rename", lambda *_: pytest.fail("there is a moment between two renames"))
    monkeypatch.setattr(files, "_remove", lambda path: seen.append((folder / "file").read_text()))
    write(folder, "second")
    assert seen[-1] == "second"  # before the old version is removed
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_where_folders_cannot_be_swapped_they_are_renamed(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_swap", lambda *_: False)
    write(tmp_path / "folder", "first")
    write(tmp_path / "folder", "second")
    assert (tmp_path / "folder" / "file").read_text() == "second"
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_folder_that_stepped_aside_in_a_killed_run_comes_back(tmp_path):
    folder = tmp_path / "folder"
    write(folder, "first")
    folder.rename(tmp_path / ".folder.polyseme-old")  # as between the two renames
    recover_folder(folder)
    assert (folder / "file").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_what_a_killed_run_had_not_finished_is_removed_when_the_next_one_begins(tmp_path):
    (tmp_path / ".folder.unfinished").mkdir()
    (tmp_path / ".file.unfinished").touch()
    with files.locked_output(tmp_path / "folder"), files.locked_output(tmp_path / "file"):
        assert not list(tmp_path.glob("*.unfinished"))


def test_what_a_killed_run_had_no_time_to_remove_is_in_nobody_s_way(tmp_path):
    folder = tmp_path / "folder"
    write(folder, "first")
    write(tmp_path / ".folder.polyseme-old", "older")
    write(folder, "second")
    assert (folder / "file").read_text() == "second"
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_link_planted_at_the_temporary_name_is_not_followed(tmp_path):
    (tmp_path / "diary").write_text("dear diary")
    (tmp_path / ".out.unfinished").symlink_to(tmp_path / "diary")
    with atomic_write(tmp_path / "out") as file:
        file.write(b"whole")
    assert (tmp_path / "diary").read_text() == "dear diary"
    assert not (tmp_path / "out").is_symlink()
    with pytest.raises(FileExistsError):  # planted in the last moment
        files._open_new(str(tmp_path / "diary"), os.O_WRONLY | os.O_CREAT)


def test_a_link_to_a_folder_at_the_temporary_name_is_removed_and_the_folder_is_not(tmp_path):
    write(tmp_path / "diary", "dear diary")
    (tmp_path / ".folder.unfinished").symlink_to(tmp_path / "diary")
    write(tmp_path / "folder", "first")
    assert (tmp_path / "diary" / "file").read_text() == "dear diary"
    assert {path.name for path in tmp_path.iterdir()} == {"diary", "folder"}


@pytest.mark.parametrize("name", ["loop", "nul\0"])
def test_a_path_that_leads_nowhere_is_one_sentence(tmp_path, name):
    (tmp_path / "loop").symlink_to("loop")
    for writing in (atomic_write, files.locked_output):
        with pytest.raises(OutputError, match=r"cannot be written: (it is a link that leads back|embedded null)"):
            writing(tmp_path / name).__enter__()


@pytest.mark.parametrize("name", ["n" * 255, "é" * 127])
def test_the_longest_names_can_be_written(tmp_path, monkeypatch, name):
    monkeypatch.setattr(files, "_swap", lambda *_: False)
    for _ in range(2):
        write(tmp_path / name, "whole")
    with files.locked_output(tmp_path / name[1:]), atomic_write(tmp_path / name[1:]):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {name, name[1:]}


def test_a_folder_of_the_user_beside_the_output_is_left_alone(tmp_path):
    write(tmp_path / ".folder.old", "mine")
    for text in ("first", "second"):
        with files.locked_output(tmp_path / "folder"):
            write(tmp_path / "folder", text)
    assert (tmp_path / ".folder.old" / "file").read_text() == "mine"


def test_a_model_that_an_earlier_version_moved_aside_comes_back(tmp_path):
    write(tmp_path / ".model.old", "weights")
    (tmp_path / ".model.old" / "manifest.json").write_text('{"files": {}}')
    recover_folder(tmp_path / "model")
    assert (tmp_path / "model" / "file").read_text() == "weights"
