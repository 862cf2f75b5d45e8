"""Folders that appear whole or not at all."""

import pytest

from polyseme.errors import OutputError
from polyseme.files import held_alone, recover_folder, replacing_folder


def write(folder, text):
    with replacing_folder(folder) as place:
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
    pytest.importorskip("fcntl")
    with held_alone(tmp_path, "somebody"):
        again = held_alone(tmp_path, "somebody")
        with pytest.raises(OutputError, match="in use by somebody"):
            again.__enter__()
    with held_alone(tmp_path, "somebody"):
        pass
