"""One writer for each output: the second is told who holds it, and death releases it."""

import errno
import fcntl
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from polyseme import files, locks
from polyseme.errors import OutputError
from polyseme.files import atomic_folder, atomic_write, locked_output

HOLD = """
import sys
from pathlib import Path
from polyseme.files import locked_output
with locked_output(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock of ``vectors.h5``."""
    command = [sys.executable, "-c", HOLD, str(tmp_path / "vectors.h5")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_the_second_is_told_at_once_who_holds_an_output_and_death_releases_it(tmp_path, holder):
    output = tmp_path / "vectors.h5"
    told = rf"vectors\.h5 is being written by process {holder.pid} \(-c .*vectors\.h5\) since 20..-..-.. ..:..:..; wait"
    for _ in range(2):  # the refused one has removed nothing
        with pytest.raises(OutputError, match=told), locked_output(output):
            pytest.fail("nothing is to be done")
    holder.kill()
    holder.wait()
    assert [path.name for path in tmp_path.iterdir()] == [".vectors.h5.lock"]
    with locked_output(output):
        assert json.loads((tmp_path / ".vectors.h5.lock").read_bytes())["pid"] == os.getpid()
    assert list(tmp_path.iterdir()) == []


def test_a_single_write_waits_a_little_for_another_and_is_then_refused(tmp_path, holder, monkeypatch):
    monkeypatch.setattr(files, "PATIENCE", 0)
    with pytest.raises(OutputError, match="is being written by process"), atomic_write(tmp_path / "vectors.h5"):
        pytest.fail("nothing is to be done")
    with pytest.raises(OutputError, match="is being written by process"), atomic_folder(tmp_path / "vectors.h5"):
        pytest.fail("nothing is to be done")
    monkeypatch.setattr(files, "PATIENCE", 60)
    threading.Timer(0.05, holder.kill).start()
    with atomic_write(tmp_path / "vectors.h5") as file:
        file.write(b"whole")
    assert [path.name for path in tmp_path.iterdir()] == ["vectors.h5"]


def test_a_run_writes_under_its_own_lock_and_no_second_run_begins_in_the_same_process(tmp_path):
    with locked_output(tmp_path / "out"):
        with atomic_write(tmp_path / "out") as file:
            file.write(b"whole")
        with pytest.raises(OutputError, match="written by this process already"), locked_output(tmp_path / "out"):
            pass
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_run_needs_no_further_locks_for_what_it_keeps_beside_its_output(tmp_path):
    with locked_output(tmp_path / "out"):
        (tmp_path / "out.parts").mkdir()
        for path, covered in (("out.parts/1.part", True), ("out.run", True), ("other", False), ("outer", False)):
            with atomic_write(tmp_path / path):
                hidden = {file.name for file in (tmp_path / path).parent.iterdir() if file.suffix == ".lock"}
                assert (f".{Path(path).name}.lock" not in hidden) == covered


def test_a_link_and_its_target_have_one_lock(tmp_path):
    (tmp_path / "target").touch()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with locked_output(tmp_path / "link"), pytest.raises(OutputError, match="target is being written"):
        locked_output(tmp_path / "target").__enter__()


def test_a_planted_link_is_not_followed(tmp_path):
    (tmp_path / "diary").write_text("dear diary")
    (tmp_path / ".out.lock").symlink_to(tmp_path / "diary")
    with pytest.raises(OutputError, match="out cannot be written"), locked_output(tmp_path / "out"):
        pass
    assert (tmp_path / "diary").read_text() == "dear diary"


def test_a_lock_on_a_file_that_was_deleted_meanwhile_is_none(tmp_path, monkeypatch):
    lock, flock, attempts = tmp_path / ".out.lock", fcntl.flock, []

    def late(*arguments):
        if not attempts:
            lock.unlink()  # as the last holder does, between our opening it and our locking it
        attempts.append(lock)
        return flock(*arguments)

    monkeypatch.setattr(fcntl, "flock", late)
    with locked_output(tmp_path / "out"):
        monkeypatch.undo()
        assert len(attempts) == 2
        locks._held.clear()  # as another process would see it
        with pytest.raises(OutputError, match="is being written by"), locked_output(tmp_path / "out"):
            pass


MANY = """
import os, sys, time
from pathlib import Path
from polyseme.errors import OutputError
from polyseme.locks import locked
folder, refused, mine = Path(sys.argv[1]), 0, 0
while mine < 60:
    try:
        with locked(folder / "out"):
            os.close(os.open(folder / "inside", os.O_CREAT | os.O_EXCL))  # fails where another one is inside
            mine += 1
            os.unlink(folder / "inside")
    except OutputError:
        refused += 1
print(refused)
"""


def test_three_at_once_are_never_two_inside(tmp_path):
    processes = [
        subprocess.Popen([sys.executable, "-c", MANY, tmp_path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    ended = [(process.communicate()[1], process.returncode) for process in processes]
    assert ended == [(b"", 0)] * 3
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(params=[errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def without_locks(request, monkeypatch):
    def refuse(*_):
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr(fcntl, "flock", refuse)


@pytest.mark.usefixtures("without_locks")
def test_a_file_system_without_locks_is_used_with_a_warning(tmp_path):
    with pytest.warns(UserWarning, match="file system without locks"), locked_output(tmp_path / "out"):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("without_locks")
def test_without_locks_a_living_process_is_believed_and_a_dead_one_is_not(tmp_path, holder):
    with pytest.raises(OutputError, match=f"process {holder.pid}"), locked_output(tmp_path / "vectors.h5"):
        pass
    holder.kill()
    holder.wait()
    with pytest.warns(UserWarning, match="without locks"), locked_output(tmp_path / "vectors.h5"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_said_before_the_work(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(locks.os, "open", refuse)
    with pytest.raises(OutputError, match="out cannot be written: Read-only file system"):
        locked_output(tmp_path / "out").__enter__()


def test_a_device_has_no_lock():
    with locked_output(Path("/dev/null")):
        assert not Path("/dev/.null.lock").exists()


@pytest.fixture
def read_only(tmp_path, monkeypatch):
    """A lock file of another user, which may be read and not written (root, who may run this, may do both)."""
    lock, opened = tmp_path / ".vectors.h5.lock", os.open

    def refuse(path, flags, *mode):
        if path == lock and flags & os.O_RDWR and lock.exists():
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return opened(path, flags, *mode)

    monkeypatch.setattr(locks.os, "open", refuse)
    return lock


def test_a_lock_file_that_another_user_left_is_replaced_once_its_holder_is_dead(tmp_path, holder, read_only):
    with pytest.raises(OutputError, match=f"process {holder.pid}"), locked_output(tmp_path / "vectors.h5"):
        pass
    holder.kill()
    holder.wait()
    with locked_output(tmp_path / "vectors.h5"):
        assert json.loads(read_only.read_bytes())["pid"] == os.getpid()
    assert list(tmp_path.iterdir()) == []


def test_a_lock_file_that_cannot_be_removed_is_named(tmp_path, read_only, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    read_only.touch()
    monkeypatch.setattr(Path, "unlink", refuse)
    named = r"another user left its lock file .*\.vectors\.h5\.lock \(Operation not permitted\)"
    with pytest.raises(OutputError, match=named), locked_output(tmp_path / "vectors.h5"):
        pass
