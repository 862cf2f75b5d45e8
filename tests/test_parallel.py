"""The ordered map over processes or threads."""

import math
import operator
import os
import subprocess
import sys
from functools import partial

import pytest

from polyseme.errors import ConfigError, PolysemeError
from polyseme.parallel import map_processes, map_threads, number_of_workers

MAPS = {
    "one process": partial(map_processes, workers=1),
    "two processes": partial(map_processes, workers=2),
    "two threads": partial(map_threads, threads=2, ahead=3),
}


@pytest.mark.parametrize("name", MAPS)
def test_results_come_in_the_order_of_the_items(name):
    assert list(MAPS[name](operator.neg, range(50))) == [-number for number in range(50)]
    assert list(MAPS[name](operator.neg, [])) == []


@pytest.mark.parametrize("name", MAPS)
def test_a_fault_of_the_work_reaches_the_caller(name):
    results = MAPS[name](math.sqrt, [4.0, -1.0, 9.0])
    assert next(results) == 2
    with pytest.raises(ValueError, match=r"math domain|nonnegative"):
        next(results)


@pytest.mark.parametrize("name", MAPS)
def test_items_are_taken_as_they_are_needed(name):
    taken = []
    results = MAPS[name](operator.neg, (taken.append(number) or number for number in range(1000)))
    assert [next(results) for _ in range(3)] == [0, -1, -2]
    assert len(taken) <= 3 + 4
    results.close()


def test_a_worker_that_is_killed_is_noticed():
    with pytest.raises(PolysemeError, match="a worker process died"):
        list(map_processes(os._exit, [9], 2))


def test_each_process_is_started_with_a_call_of_the_caller_s(tmp_path):
    assert list(map_processes(operator.neg, [1, 2], 2, start=(tmp_path / "begun").touch)) == [-1, -2]
    assert (tmp_path / "begun").exists()


def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    code = "import os; from polyseme.parallel import map_processes\n"
    code += "if __name__ == '__main__':\n"
    code += "    results = map_processes(os.getenv, ['PATH'] * 9, 2); next(results)\n"
    code += "    os.kill(os.getpid(), 9)\n"
    script = tmp_path / "script.py"
    script.write_text(code)
    # A worker has the same standard output, so this would wait for as long as there is one.
    ended = subprocess.run([sys.executable, script], check=False, stdout=subprocess.PIPE, timeout=120)
    assert ended.returncode == -9


def test_the_number_of_workers_is_what_is_asked_for_or_what_is_worth_it():
    assert number_of_workers(3, 10) == 3
    assert number_of_workers(None, 10) == 1
    assert number_of_workers(None, None) >= 1
    with pytest.raises(ConfigError, match="workers must be at least 1, not 0"):
        number_of_workers(0, None)


def test_it_imports_no_torch():
    code = "import sys, polyseme.parallel; assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
