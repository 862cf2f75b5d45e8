"""Run the attack in a process of its own, and judge each answer."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hostile_models.case import CASES, OPENS

TESTS = Path(__file__).parents[1]
MOST_SECONDS = 10  # of processor time
MOST_MEMORY = 1_500_000_000  # bytes, the interpreter and its libraries included
LONGEST_MESSAGE = 600  # characters


def faults(names: Sequence[str], cache: Path) -> dict[str, str]:
    """What is wrong with how hostile models are answered, by name; empty if nothing is."""
    return {result["name"]: wrong for result in attack(names, cache) if (wrong := fault(result))}


def attack(names: Sequence[str], cache: Path) -> list[dict[str, Any]]:
    """Open models one after the other: what was said, seconds and peak memory of each."""
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


def fault(result: dict[str, Any]) -> str | None:
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
