"""How long a large file of static vectors takes to open, and what it adds to the process.

    python benchmarks/vectors.py [--words 1000000] [--dim 50] [--file glove.txt]

Makes a GloVe-like file of random words and numbers (or takes one that is there), and opens it in processes of their
own: the first time, when it is read, and again, when it is mapped. Memory is what opening adds to the process, with the
library imported already; then what a thousand look-ups and one search for neighbours add to that.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

LETTERS = np.frombuffer(b"etaoinshrdlucmfwypvbgkqjxz", dtype=np.uint8)


def resident() -> float:
    """MB of this process in memory, mapped pages of files included."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def make(path: Path, words: int, dim: int) -> None:
    rng = np.random.default_rng(0)
    with path.open("w") as file:
        for first in range(0, words, 10_000):
            rows = rng.standard_normal((min(10_000, words - first), dim)).tolist()
            stems = rng.choice(LETTERS, (len(rows), 5))
            pattern = " %.5g" * dim + "\n"
            file.writelines(
                f"{stem.tobytes().decode()}{first + place}" + pattern % tuple(row)
                for place, (stem, row) in enumerate(zip(stems, rows, strict=True))
            )


def measure(path: Path) -> None:
    """In a process of its own: seconds and MB of opening, of a thousand words, of one search."""
    from polyseme.backends.static import open_static

    small = path.with_name("small.txt")
    small.write_text("a 1 2\nb 3 4\n")
    next(open_static(small, cache=False).embed([["a"]]))  # whatever is loaded at first use
    encoder, opening = watched(lambda: open_static(path))
    words = [encoder.table.word(row) for row in range(0, encoder.num_words, max(1, encoder.num_words // 1000))]
    _, embedding = watched(lambda: next(encoder.embed([words])))
    _, searching = watched(lambda: encoder.nearest(words[0]))
    print(json.dumps([encoder.num_words, encoder.dim, opening, embedding, searching]))


def watched(work: Callable[[], Any]) -> tuple[Any, list[float]]:
    """What it gives; its seconds, those of the processor, and the MB that it adds."""
    before, begun, busy = resident(), time.perf_counter(), time.process_time()
    result = work()
    return result, [time.perf_counter() - begun, time.process_time() - busy, resident() - before]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=50)
    parser.add_argument("--file", type=Path, help="take this one")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        measure(args.measure)
        return
    with tempfile.TemporaryDirectory() as name:
        path = args.file or Path(name) / "vectors.txt"
        if not args.file:
            make(path, args.words, args.dim)
        size = path.stat().st_size / 1e6
        print(f"{size:,.0f} MB; seconds, seconds of the processor, MB added")
        print(f"{'':12}{'words':>10}{'dim':>5}{'open':>20}{'1000 words':>20}{'search':>20}")
        for run in ("first time", "again"):
            command = [sys.executable, __file__, "--measure", str(path)]
            environment = {**os.environ, "POLYSEME_CACHE": name}
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
            words, dim, *figures = json.loads(done.stdout)
            columns = "".join(f"{wall:>8.2f}{busy:>7.2f}{added:>5.0f}" for wall, busy, added in figures)
            print(f"{run:12}{words:>10,}{dim:>5}{columns}", flush=True)


if __name__ == "__main__":
    main()
