"""Every hostile model is refused in one short sentence, or opens right, within 10 seconds and 1.5 GB."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hostile_models import CASES, OPENS

TESTS = Path(__file__).parents[1]
MOST_SECONDS = 10  # of processor time
MOST_MEMORY = 1_500_000_000  # bytes, the interpreter and its libraries included
LONGEST_MESSAGE = 600  # characters


def attack(names, cache):
    paths = os.pathsep.join([str(TESTS.parent), str(TESTS)])
    settings = {"PYTHONPATH": paths, "POLYSEME_CACHE": str(cache), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "hostile_models.attack"],
        input="\n".join(names),
        capture_output=True,
        text=True,
        env={**os.environ, **settings},
        check=False,
    )
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(results) == len(names), f"{names[len(results)]} ended the process: {done.stderr[-2000:]}"
    return results


def fault(result):
    """What is wrong with how a hostile model was answered; None if nothing is."""
    expected, said = CASES[result["name"]].expected, result["said"]
    if result["peak"] > MOST_MEMORY or result["seconds"] > MOST_SECONDS:
        return f"took {result['peak']:,} bytes and {result['seconds']:.1f} s"
    if result["outcome"] == "opens":
        return said if expected == OPENS else f"opened, but should be refused: {expected}"
    if result["outcome"] != "refused" or expected == OPENS:
        return f"{result['outcome']}: {said}"
    if not re.search(expected, said) or "\n" in said or not 0 < len(said) <= LONGEST_MESSAGE:
        return f"said {said!r}, not {expected!r}"
    return None


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is measured through /proc")
@pytest.mark.timeout(300)
def test_hostile_models_are_refused_in_a_sentence_or_open_right(tmp_path):
    names = [name for name, case in CASES.items() if not case.slow]
    assert len(names) > 200
    faults = {result["name"]: wrong for result in attack(names, tmp_path) if (wrong := fault(result))}
    assert not faults, "\n".join(f"{name}: {wrong}" for name, wrong in faults.items())
    assert not Path("/tmp/polyseme-attack-ran").exists(), "code of a pickle has run"
