"""Peak memory of ``polyseme embed`` on a short and a long text, which must be about the same.

    python benchmarks/memory.py [--lines 10000 1000000] [--suffix .h5]

Lines of five words from a vocabulary of a thousand, through the tiny model that the tests carry. Prints one row a run.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MODEL = Path(__file__).parents[1] / "tests" / "fixtures" / "tiny"


def measure(lines: int, suffix: str) -> tuple[float, float]:
    """Seconds, and MiB at the peak, of one run in a process of its own."""
    words = [f"word{number}" for number in range(1000)]
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "text.txt").open("w") as text:
            text.writelines(" ".join(rng.choices(words, k=5)) + "\n" for _ in range(lines))
        command = ["embed", str(folder / "text.txt"), "-o", str(folder / f"vectors{suffix}"), "--model", str(MODEL)]
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-m", "polyseme", *command], check=True, capture_output=True)
        return time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, nargs="+", default=[10_000, 1_000_000], help="in rising order")
    parser.add_argument("--suffix", default=".h5")
    args = parser.parse_args()
    print(f"{'lines':>10}  {'peak MiB':>8}  {'seconds':>8}  words/s")
    for lines in args.lines:
        seconds, peak = measure(lines, args.suffix)
        print(f"{lines:>10,}  {peak:>8,.0f}  {seconds:>8,.1f}  {5 * lines / seconds:>7,.0f}", flush=True)


if __name__ == "__main__":
    main()
