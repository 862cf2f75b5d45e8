"""The on-disk cache of arrays: whole files or none, within a budget, whoever else is at work there."""

import os
import subprocess
import sys

import numpy as np
import pytest

from polyseme.array_cache import ArrayCache, user_cache_folder


def fetch(cache, key, array):
    """The entry of a key, and whether it was written now."""
    written = []

    def write(file):
        written.append(key)
        np.save(file, array)

    return cache.fetch(key, lambda path: np.load(path, mmap_mode="r"), write, array.nbytes), bool(written)


def keys(folder):
    return sorted(path.stem for path in folder.glob("*.npy"))


def test_an_entry_is_written_once_and_mapped_from_then_on(tmp_path):
    array = np.arange(12).reshape(3, 4)
    for new in (True, False):
        found, written = fetch(ArrayCache(tmp_path / "deep" / "folder", ".npy"), "key", array)
        assert written == new
        assert isinstance(found, np.memmap)
        np.testing.assert_array_equal(found, array)


def test_the_least_recently_used_goes_first_and_what_is_in_use_stays(tmp_path):
    array = np.zeros(1000, dtype=np.uint8)
    for number, key in enumerate("abc"):
        fetch(ArrayCache(tmp_path, ".npy"), key, array)
        os.utime(tmp_path / f"{key}.npy", (number, number))
    cache = ArrayCache(tmp_path, ".npy", budget=4000)
    assert fetch(cache, "a", array)[1] is False
    assert fetch(cache, "d", array)[1]
    assert keys(tmp_path) == ["a", "c", "d"]
    os.utime(tmp_path / "a.npy", (0, 0))  # the oldest, but in use
    fetch(cache, "e", array)
    assert keys(tmp_path) == ["a", "d", "e"]


def test_an_entry_beyond_the_budget_stays_alone(tmp_path):
    cache = ArrayCache(tmp_path, ".npy", budget=500)
    for key in "ab":
        fetch(ArrayCache(tmp_path, ".npy", budget=500), key, np.zeros(1000))
    assert keys(tmp_path) == ["b"]
    assert fetch(cache, "b", np.zeros(1000))[1] is False


def test_files_of_others_are_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine" * 1000)
    (tmp_path / ".hidden.npy").write_text("mine" * 1000)
    fetch(ArrayCache(tmp_path, ".npy", budget=10), "key", np.zeros(10))
    assert (tmp_path / "notes.txt").exists()
    assert (tmp_path / ".hidden.npy").exists()


@pytest.mark.parametrize("content", [b"", b"x" * 300, b"\x93NUMPY"])
def test_a_damaged_or_foreign_file_is_written_again(tmp_path, content):
    (tmp_path / "key.npy").write_bytes(content)
    assert fetch(ArrayCache(tmp_path, ".npy"), "key", np.ones(3))[0].tolist() == [1, 1, 1]


def test_what_a_killed_process_left_is_removed_when_it_is_old(tmp_path):
    old, new = (tmp_path / f".key.npy.{name}.unfinished" for name in ("old", "new"))
    for left in (old, new):
        left.write_text("half")
    os.utime(old, (1, 1))
    fetch(ArrayCache(tmp_path, ".npy"), "key", np.ones(3))
    assert not old.exists()
    assert new.exists()


def test_a_fault_while_writing_leaves_nothing(tmp_path):
    def fail(file):
        file.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ArrayCache(tmp_path, ".npy").fetch("key", np.load, fail)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_another_process_evicts_stays_readable_and_comes_again(tmp_path):
    found, _ = fetch(ArrayCache(tmp_path, ".npy"), "key", np.ones(3))
    (tmp_path / "key.npy").unlink()
    assert found.tolist() == [1, 1, 1]
    assert fetch(ArrayCache(tmp_path, ".npy"), "key", np.ones(3))[1]


def test_two_processes_share_a_folder_that_is_too_small_for_both(tmp_path):
    code = "import sys, numpy as np; from pathlib import Path; from polyseme.array_cache import ArrayCache\n"
    code += "for number in range(300):\n"
    code += "    array = np.full(100, number % 7)\n"
    code += "    cache = ArrayCache(Path(sys.argv[1]), '.npy', budget=3000)\n"
    code += "    found = cache.fetch(str(number % 7), np.load, lambda file: np.save(file, array), array.nbytes)\n"
    code += "    assert found is None or (found == array).all()\n"
    both = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)]) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    assert not list(tmp_path.glob(".*"))


def test_the_user_s_cache_is_where_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYSEME_CACHE", str(tmp_path))
    assert user_cache_folder("vectors") == tmp_path / "vectors"
    monkeypatch.delenv("POLYSEME_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert user_cache_folder("vectors") == tmp_path / "polyseme" / "vectors"
