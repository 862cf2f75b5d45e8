"""Open hostile models one after the other, and measure time and memory: ``python -m hostile_models.attack``.

Reads names of cases from standard input, one per line, and writes a line of JSON for each. The limit of address space
only protects the machine from what a test is there to find.
"""

import json
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

import polyseme
from hostile_models import CASES
from polyseme.errors import PolysemeError

GIVE_UP = 60  # seconds
ADDRESS_SPACE = 8 << 30  # bytes
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def main() -> None:
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    signal.signal(signal.SIGALRM, _too_long)
    for line in sys.stdin:
        with tempfile.TemporaryDirectory(prefix="polyseme-attack-") as folder:
            sys.stdout.write(json.dumps(attack(line.strip(), Path(folder))) + "\n")
            sys.stdout.flush()


def attack(name: str, folder: Path) -> dict[str, Any]:
    """Open one model and embed a sentence with it: what was said, and what it took."""
    path = CASES[name].make(folder)
    _CLEAR.write_text("5")  # forget the peak of memory so far
    started = time.process_time()
    signal.alarm(GIVE_UP)
    try:
        outcome, said = "opens", open_and_use(path, name)
    except PolysemeError as error:
        outcome, said = "refused", str(error)
    except BaseException as error:
        outcome, said = type(error).__name__, str(error)
    finally:
        signal.alarm(0)
    return {
        "name": name,
        "outcome": outcome,
        "said": said.replace(str(folder), ""),
        "seconds": time.process_time() - started,
        "peak": _peak(),
    }


def open_and_use(path: Path, name: str) -> str:
    """Open a model of any kind and use it once; says so if what it gives is not finite."""
    if name.startswith("tasks"):
        polyseme.Tagger.load(path).predict([["a", "b"]])
        return ""
    encoder = polyseme.load(path)
    vectors = next(iter(encoder.embed([["a", "bank", "word"]])))
    return "" if torch.from_numpy(vectors).isfinite().all() else "NaN"


def _peak() -> int:
    peak = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
    return int(peak.split()[1]) << 10


def _too_long(*_: object) -> None:
    raise TimeoutError


if __name__ == "__main__":
    main()
