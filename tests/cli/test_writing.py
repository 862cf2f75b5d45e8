"""Every command that writes: one at a time, and an output that cannot be written is one sentence and no loss."""

import errno
import os
import resource
import shutil
import subprocess
import sys

import pytest
from writing_commands import COMMANDS, contents, write_inputs

from polyseme import locks

QUICK = ["embed", "index", "convert", "distil", "classify fit", "report"]  # the others share their code


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    write_inputs(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POLYSEME_CACHE", str(tmp_path / "cache"))
    return tmp_path


HOLD = """
import sys
from pathlib import Path
from polyseme.locks import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def hold():
    """Lock an output in another process, as a run there would."""
    started = []

    def start(output):
        output.parent.mkdir(exist_ok=True)
        command = [sys.executable, "-c", HOLD, str(output)]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        assert started[-1].stdout.readline() == "held\n"
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_second_run_on_an_output_is_told_who_writes_it(call, workplace, hold, name):
    command = COMMANDS[name]
    holder = hold(workplace / command.output / "parts" if name == "report" else workplace / command.output)
    for options in ((), command.replace):
        status, _, err = call(*command.arguments, *options)
        assert status == 2
        assert f"is being written by process {holder.pid}" in err
        assert err.count("\n") == 1
    assert not list(workplace.glob("*.parts")) + list(workplace.glob("*.run")) + list(workplace.glob("*.fitting"))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_read_only_folder_is_one_sentence(call, workplace, monkeypatch, name):
    def refuse(path, *arguments):
        if str(path).endswith(locks.LOCK):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return opened(path, *arguments)

    opened = os.open
    monkeypatch.setattr(locks.os, "open", refuse)
    status, _, err = call(*COMMANDS[name].arguments)
    assert status == 2
    assert "cannot be written: Read-only file system" in err
    assert err.count("\n") == 1


@pytest.fixture
def small_files():
    """A disk that takes no file larger than so many bytes, whoever writes it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("name", QUICK)
def test_a_full_disk_is_one_sentence_and_the_same_command_finishes_later(call, workplace, small_files, name):
    command = COMMANDS[name]
    assert call(*command.arguments)[0] == 0
    expected = contents(workplace / command.output)
    if name == "report":
        shutil.rmtree(workplace / "out")
    small_files(3000)
    status, _, err = call(*command.arguments, *command.replace)
    small_files(resource.RLIM_INFINITY)
    assert status == 2
    assert "cannot be written: File too large" in err
    assert sum(line.startswith("error: ") for line in err.splitlines()) == 1
    if name != "report":  # which replaces nothing
        assert contents(workplace / command.output) == expected
    status, _, err = call(*command.arguments, *(command.resume or command.replace))
    if "nothing to resume" in err or "exists already" in err:  # nothing was finished
        status, _, err = call(*command.arguments, *command.replace)
    assert status == 0, err
    assert contents(workplace / command.output) == expected
    assert not [path for pattern in (".*", "*.parts", "*.fitting") for path in workplace.rglob(pattern)]


KILLED = """
import os, signal, sys
from polyseme import cli
left, arguments = int(sys.argv[1]), sys.argv[2:]

def deadly(event, details):
    global left
    if event == "os.rename":
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(deadly)
sys.argv = ["polyseme", *arguments]
cli.main()
"""


@pytest.mark.parametrize(("name", "renames"), [("index", 3), ("classify fit", 3)])
def test_a_run_killed_before_its_output_is_in_place_is_resumed_to_the_same_bytes(call, workplace, name, renames):
    command = COMMANDS[name]
    killed = subprocess.run([sys.executable, "-c", KILLED, str(renames), *command.arguments], check=False)
    assert killed.returncode == -9
    assert contents(workplace / command.output) is None
    assert call(*command.arguments, *command.resume)[0] == 0
    resumed = contents(workplace / command.output)
    assert not [path for pattern in (".*", "*.parts", "*.fitting") for path in workplace.rglob(pattern)]
    assert call(*command.arguments, *command.replace)[0] == 0
    assert contents(workplace / command.output) == resumed
