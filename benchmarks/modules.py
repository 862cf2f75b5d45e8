"""How many modules a reader has to open to follow one job: those whose functions it calls.

    python benchmarks/modules.py [--list]

Runs four everyday jobs on tiny inputs, each once to warm up (imports are not counted) and once more under
`sys.setprofile`: `polyseme embed`, `polyseme train`, `polyseme tag fit`, and one request to `/v1/words`.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import polyseme
from polyseme.kernels import threads

PACKAGE = str(Path(polyseme.__file__).parent)
TESTS = Path(__file__).parent.parent / "tests"
TINY_MODEL = TESTS / "fixtures" / "tiny"
TRAIN_SETTINGS = [
    *("model.input.dim=8", "model.input.characters.dim=4", "model.input.characters.filters=[[1,4],[2,6]]"),
    *("model.input.characters.max_characters=20", "model.lstm.cells=12", "model.lstm.dim=8"),
    *("loss.words=50", "loss.samples=20", "loss.min_count=1"),
    *("training.rows=4", "training.window=5", "training.steps=4", "training.evaluations=1"),
]


class Recorder:
    """Collects the files whose functions are called while it is on, in all threads that start under it."""

    def __init__(self) -> None:
        self.files: set[str] = set()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call of one of our functions."""
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(PACKAGE) and frame.f_code.co_name != "<module>":
            self.files.add(name[len(PACKAGE) + 1 :])

    @contextlib.contextmanager
    def on(self) -> Iterator[None]:
        """Record this thread, and the threads that it starts: the pool of an earlier run is forgotten."""
        threads._pool.cache_clear()
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)


def run_command(*arguments: str | Path) -> None:
    from polyseme.cli import app

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        app(list(map(str, arguments)), standalone_mode=False)


def make_jobs(folder: Path) -> dict[str, Callable[[], None]]:
    text, running, columns = folder / "text.txt", folder / "running.txt", folder / "names.conll"
    text.write_text("He sat on the bank .\nShe put it there .\n" * 20)
    running.write_text("w1 w2 w3 w4 w5\nw3 w4 w5 w6\n\n" * 400)
    columns.write_text("Ada B-PER\nlives O\nin O\nRome B-LOC\n\n" * 40)
    train = ["--tokenized", "--workers", "1", *(part for setting in TRAIN_SETTINGS for part in ("--set", setting))]
    tag = ["--encoder", TINY_MODEL, "--held-out", "0.2", "--set", "fit.epochs=1", "--set", "fit.epoch_steps=1"]
    return {
        "embed": lambda: run_command("embed", text, "-o", folder / "out.npz", "--model", TINY_MODEL),
        "train": lambda: run_command("train", running, "-o", folder / "out", *train),
        "tag fit": lambda: run_command("tag", "fit", columns, "-o", folder / "out", *tag),
    }


def clean(folder: Path) -> None:
    for made in folder.glob("out*"):
        shutil.rmtree(made) if made.is_dir() else made.unlink()


def entered_by_request() -> set[str]:
    sys.path.insert(0, str(TESTS))
    from server_fixture import running
    from tiny_models import make_encoder

    from polyseme.serving.engine.catalogue import Catalogue, ServedModel

    recorder, body = Recorder(), {"sentences": [["He", "sat", "on", "the", "bank"]]}
    with recorder.on(), running(Catalogue([ServedModel("tiny", make_encoder())])) as server:
        assert server.post("/v1/words", body)[0] == 200
        assert server.post("/v1/neighbours", {"sentence": ["bank"], "position": 0})[0] == 200  # built in the background
        recorder.files.clear()
        assert server.post("/v1/words", body)[0] == 200
        return set(recorder.files)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="name the modules")
    listed = parser.parse_args().list
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["POLYSEME_CACHE"] = str(folder / "out-cache")
        found = {}
        for job, run in make_jobs(folder).items():
            run()
            clean(folder)
            recorder = Recorder()
            with recorder.on():
                run()
            clean(folder)
            found[job] = recorder.files
        found["/v1/words"] = entered_by_request()
    for job, files in found.items():
        print(f"{job:10} {len(files):3}")
        for file in sorted(files) if listed else []:
            print(f"           {file}")


if __name__ == "__main__":
    main()
