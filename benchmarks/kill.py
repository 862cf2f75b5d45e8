"""Kill every command that writes at random moments: no output may be half there, and every run must end the same.

    python benchmarks/kill.py                                # 20 kills -9 of each command
    python benchmarks/kill.py --only train --ranks 2         # of two processes of one training run

Every run is a fork of this process, which has imported torch and computed nothing, so that kills hit the work and not
the imports. Half of the kills come after a random time, the others at a random file event (an open, a rename, a
removal). Some runs replace an output, which must never be missing; some are killed several times. Then the run is
resumed to its end, or begun again where the command has no --resume, and its output compared with that of an
undisturbed run, byte for byte; only what a report says of its own timings may differ.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import re
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import torch
from writing_commands import COMMANDS, contents, write_inputs

import polyseme.cli as cli
from polyseme.formats.native import read_manifest, verify

FILE_EVENTS = ("open", "os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.chmod", "os.truncate", "shutil.rmtree")
# The kill came before there was anything to resume, or after the end; or what is there was copied with the text.
NOTHING = re.compile("nothing to resume|exists already|text has changed")
LEFTOVERS = (".*", "*.parts", "*.fitting")
REPLACING = 0.3  # share of the runs that replace an output
LIMIT = 600  # seconds that a run may take


def start(arguments, folder, hook=None, ranks=1):
    """Fork a run of a command in a folder, or one for each rank; the first gets the audit hook."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    return [fork(arguments, folder, hook if rank == 0 else None, rank, ranks, port) for rank in range(ranks)]


def fork(arguments, folder, hook, rank, ranks, port):
    child = os.fork()
    if child:
        return child
    os.chdir(folder)
    log = os.open(f"log-{rank}.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ["POLYSEME_CACHE"] = str(folder / "cache")
    if ranks > 1:
        own = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        os.environ.update({name: str(value) for name, value in own.items()})
    if hook is not None:
        sys.addaudithook(hook.count)
    sys.argv = ["polyseme", *arguments]
    status = 1
    try:
        cli.main()
        status = 0
    except SystemExit as leaving:
        status = leaving.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        if hook is not None:
            Path("events.txt").write_text(str(hook.seen))
        sys.stdout.flush()
        os._exit(status)


class FileEvents:
    """Audit hook that counts the file events of its process, and kills it at one of them."""

    def __init__(self, kill_at=math.inf):
        self.seen, self.kill_at = 0, kill_at

    def count(self, event, arguments):
        """Count an event of Python's, if it concerns a file."""
        if event in FILE_EVENTS and not str(arguments[0]).endswith((".py", ".pyc", ".so")):
            self.seen += 1
            if self.seen == self.kill_at:
                os.kill(os.getpid(), signal.SIGKILL)


def wait(children, seconds=LIMIT):
    """Wait for processes, and kill all of them after so many seconds or when one was killed; gives their statuses."""
    statuses, started = {}, time.monotonic()
    while len(statuses) < len(children):
        for child in (child for child in children if child not in statuses):
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                statuses[child] = os.waitstatus_to_exitcode(status)
        if time.monotonic() - started > seconds or -signal.SIGKILL in statuses.values():
            for child in (child for child in children if child not in statuses):
                os.kill(child, signal.SIGKILL)
                statuses[child] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        time.sleep(0.002)
    return [statuses[child] for child in children]


def finish(command, folder, ranks=1, options=()):
    """Run a command to its end, anew where there is nothing to resume; gives the bytes of its output."""
    statuses = wait(start([*command.arguments, *options], folder, ranks=ranks))
    if any(statuses) and options == command.resume and NOTHING.search(log(folder)):
        return finish(command, folder, ranks, command.replace if (folder / command.output).exists() else ())
    if any(statuses):
        raise SystemExit(f"{command.arguments}: status {statuses}: {log(folder)[-3000:]}")
    return finished(command, folder)


def finished(command, folder):
    """The bytes of a finished output; refuses leftovers in the folder."""
    left = [str(path) for pattern in LEFTOVERS for path in folder.rglob(pattern)]
    if left:
        raise SystemExit(f"{command.arguments}: left behind: {left}")
    return contents(folder / command.output)


def log(folder):
    return "".join(path.read_text() for path in sorted(folder.glob("log-*.txt")))


def is_whole(name, output, expected, replacing):
    """Whether an output is as an undisturbed run writes it; or not there, if none was to be replaced."""
    found = contents(output)
    if found is None:
        return not replacing
    if name == "train":  # which saves better and better models
        verify(output, *read_manifest(output))
        return True
    if name == "report":  # which writes one finished part after the other
        return all(expected.get(file) == data for file, data in found.items() if not Path(file).name.startswith("."))
    return found == expected


def kill_command(name, kills, ranks, generator):
    """Kill a command so many times, each time resume it to the end; gives what happened, as counts."""
    command, counts = COMMANDS[name], Counter()
    with tempfile.TemporaryDirectory() as scratch:
        untouched, reference = Path(scratch) / "untouched", Path(scratch) / "reference"
        untouched.mkdir()
        write_inputs(untouched)
        shutil.copytree(untouched, reference)
        expected = finish(command, reference, ranks)
        events, seconds = measure(command, copied(reference, Path(scratch) / "measured"), ranks)
        while counts["kills"] < kills:
            counts["runs"] += 1
            replacing = bool(command.replace) and generator.random() < REPLACING
            folder = copied(reference if replacing else untouched, Path(scratch) / f"run-{counts['runs']}")
            options = command.replace if replacing else ()
            for _ in range(generator.choice([1, 1, 2, 3])):
                timed = generator.random() < 0.5
                hook = None if timed else FileEvents(generator.randrange(1, events + 1))
                children = start([*command.arguments, *options], folder, hook, ranks)
                statuses = wait(children, generator.uniform(0, seconds) if timed else LIMIT)
                if -signal.SIGKILL not in statuses:
                    break
                counts["kills"] += 1
                counts["of them at a file event"] += not timed
                counts["of them while replacing"] += replacing
                if not is_whole(name, folder / command.output, expected, replacing):
                    raise SystemExit(f"{name}: half an output: {sorted(folder.rglob('*'))}")
                options = command.resume or (command.replace if (folder / command.output).exists() else ())
            done = not any(statuses)
            counts["same bytes"] += expected == (
                finished(command, folder) if done else finish(command, folder, ranks, options)
            )
            shutil.rmtree(folder)
    return counts


def copied(source, target):
    return Path(shutil.copytree(source, target))  # with the times of the texts, by which training knows them


def measure(command, folder, ranks):
    """The file events and the seconds of an undisturbed run."""
    for path in [folder / command.output, *folder.glob(f"{command.output}.*")]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    started = time.monotonic()
    wait(start(command.arguments, folder, FileEvents(), ranks))
    return int((folder / "events.txt").read_text()), time.monotonic() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20, help="of each command")
    parser.add_argument("--only", action="append", choices=COMMANDS, help="one command; repeatable")
    parser.add_argument("--ranks", type=int, default=1, help="processes of `train`, as torchrun starts them")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    for name in args.only or COMMANDS:
        started = time.monotonic()
        ranks = args.ranks if name == "train" else 1
        counts = kill_command(name, args.kills, ranks, random.Random(f"{args.seed} {name} {ranks}"))
        lost = counts["runs"] - counts["same bytes"]
        print(f"{name}: {dict(counts)}, {lost} lost, {time.monotonic() - started:.0f} s", flush=True)
        if lost:
            raise SystemExit(f"{name}: {lost} runs ended with other bytes")


if __name__ == "__main__":
    main()
