"""How fast text becomes token shards, with 1, 2, ... worker processes, and how much of it the main process does.

    python benchmarks/prepare.py TEXT... [--workers 1 2 16] [--tokenized]

One row for each number of workers: MB of text a second by the clock; MB for each second of processor time of all
processes together, which is what a core that has nothing else to do gets done; and the processor time of the main
process alone, which reads, decompresses, cuts, and puts the shards together. What it could do if the workers cost
nothing is the most that any number of them can reach. Other work on the machine lowers the first figure much, the
others less.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from polyseme.parallel import number_of_workers
from polyseme.training.shards.prepare import PrepareSettings, prepare


class Run(NamedTuple):
    """What one run took."""

    megabytes: float
    seconds: float
    main: float  # seconds of processor time
    workers: float


def measure(paths: list[str], workers: int, settings: PrepareSettings) -> Run:
    with tempfile.TemporaryDirectory() as folder:
        started, worked, others = time.perf_counter(), time.process_time(), _children()
        *_, report = prepare(paths, Path(folder) / "shards", settings, workers)
        took = time.perf_counter() - started, time.process_time() - worked, _children() - others
        return Run(report.bytes_read / 1e6, *took)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+")
    parser.add_argument("--workers", type=int, nargs="+", default=sorted({1, 2, number_of_workers(None, None)}))
    parser.add_argument("--tokenized", action="store_true")
    args = parser.parse_args()
    print(f"{'workers':>7}  {'MB':>6}  {'MB/s':>5}  {'MB/s a core':>11}  {'main seconds':>12}  main at most MB/s")
    for workers in args.workers:
        size, seconds, own, others = measure(args.texts, workers, PrepareSettings(tokenized=args.tokenized))
        most = f"{size / own:>17.1f}" if workers > 1 else f"{'does all':>17}"
        speeds = f"{size / seconds:>5.1f}  {size / (own + others):>11.2f}"
        print(f"{workers:>7}  {size:>6.1f}  {speeds}  {own:>12.2f}  {most}", flush=True)


if __name__ == "__main__":
    main()
