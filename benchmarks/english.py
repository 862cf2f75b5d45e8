"""Everything that the English model's card claims, measured on one folder.

    python benchmarks/english.py [MODEL] --data ../shared --json english.json --card docs/models/english.md
    python benchmarks/english.py MODEL --only perplexity wikitext --device cuda
    python benchmarks/english.py MODEL --only pos wsd --threads 2 --json english.json

Each part goes into the JSON when it is done, beside what is there of the same model, so a run that was stopped goes on
with --only. The full softmax over 100,000 words takes half an hour on two cores and seconds on a GPU; --documents
measures the first so many documents only, and the table says so. Without MODEL the one that ships is measured.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import english_texts as texts
import numpy as np
import torch
from english_table import FIGURES, LEANINGS, insert, leanings_table, table
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import polyseme
from polyseme.analysis.layers.probe import ProbeSettings, probe
from polyseme.analysis.senses.sense_tagged import find_sets, read_inventory, read_tagged
from polyseme.analysis.senses.wic import read_wic, wic
from polyseme.analysis.senses.wsd import disambiguate
from polyseme.analysis.words.similarity import read_pairs, similarity
from polyseme.analysis.words.spelling import known_words, spelling
from polyseme.embedding.encoder import Encoder
from polyseme.files import atomic_write
from polyseme.formats import resolve_model_path
from polyseme.formats.native import CONFIG, MODEL, SOFTMAX, VOCABULARY
from polyseme.lm import Document, LanguageModel
from polyseme.lm.documents import number_documents
from polyseme.lm.perplexity import PerplexityMeter
from polyseme.text.conll import LabelSpec, read_labelled

OCCUPATIONS = (
    *("nurse", "secretary", "dancer", "teacher", "librarian", "writer", "cook"),
    *("doctor", "lawyer", "engineer", "soldier", "judge", "scientist", "farmer"),
)
INVERSE_PENALTY = 0.01  # of the POS probe: of 1, 0.1, 0.01 and 0.001 the best for layer 1 on the dev part
REPEATS = 5  # of what is timed
EXAMPLES = 5  # of made words that go into the JSON
STARTING = """
import sys, time, torch
begun = time.perf_counter()
import polyseme
elmo = polyseme.load(sys.argv[1])
opened = time.perf_counter()
list(elmo.embed([["I", "put", "my", "books", "in", "the", "bag", "."]]))
print(opened - begun, time.perf_counter() - opened)
"""


@dataclass(frozen=True)
class Subject:
    """What is measured, and with what."""

    model: Path
    data: Path
    device: str
    precision: str
    documents: int | None
    threads: int

    def open(self) -> Encoder:
        """Open the model; each part does so for itself, so that no part's cached words help another."""
        return polyseme.load(self.model, device=self.device, precision=self.precision)


def files(subject: Subject) -> dict[str, Any]:
    sizes = {path.name: path.stat().st_size for path in sorted(subject.model.iterdir())}
    return {"total": sum(sizes.values()), "files": sizes}


def held_out(subject: Subject) -> dict[str, Any]:
    return measure(subject, islice(texts.held_out(subject.data), subject.documents))


def wikitext(subject: Subject) -> dict[str, Any]:
    return measure(subject, islice(texts.wikitext(subject.data), subject.documents))


def measure(subject: Subject, documents: islice[Document]) -> dict[str, Any]:
    """Perplexity with fresh and with carried state, in one reading."""
    model = LanguageModel.load(subject.model, device=subject.device)
    measures = {"fresh": PerplexityMeter(model, carried=False), "carried": PerplexityMeter(model, carried=True)}
    for window in number_documents(documents, model.window):
        reader = model.scorer(window.words)
        for one in measures.values():
            one.add(window, reader)
    results = {name: asdict(one.result()) for name, one in measures.items()}
    return {"known_words": len(model.vocabulary), "documents_asked": subject.documents, **results}


def pos(subject: Subject) -> dict[str, Any]:
    folder = subject.data / "eval" / "pos-ud-ewt"
    train, test = (
        list(read_labelled(folder / f"en_ewt-ud-{part}.conllu.xz", LabelSpec())) for part in ("train", "test")
    )
    settings = ProbeSettings(control=False, inverse_penalty=INVERSE_PENALTY, device=subject.device)
    return {**asdict(probe(subject.open(), train, test, settings)), "inverse_penalty": INVERSE_PENALTY}


def wsd(subject: Subject) -> dict[str, Any]:
    folder = subject.data / "eval" / "wsd"
    senses = read_inventory(folder / "wordnet-3.0-index.sense.xz")
    sets = {name: list(read_tagged(path)) for name, path in find_sets([folder / "raganato"]).items()}
    return asdict(disambiguate(subject.open(), read_tagged(folder / "semcor.jsonl.xz"), sets, senses))


def words_in_context(subject: Subject) -> dict[str, Any]:
    train, test = (read_wic(subject.data / "eval" / "wic" / f"{part}.data.txt") for part in ("train", "dev"))
    return asdict(wic(subject.open(), train, test))


def rated_pairs(subject: Subject) -> dict[str, Any]:
    """Spearman correlation with people's ratings of word pairs, each word by itself."""
    files = sorted((subject.data / "eval" / "similarity").glob("*.txt"))
    return asdict(similarity(subject.open(), {path.stem.removeprefix("EN-"): read_pairs(path) for path in files}))


def sentiment(subject: Subject) -> dict[str, Any]:
    """Movie reviews by a logistic regression on the mean of the words' vectors, a layer at a time and all joined."""
    folder, embedder = subject.data / "eval" / "sentiment-sst", subject.open()
    splits = {name: _reviews(embedder, folder / f"stsa.binary.{name}") for name in ("train", "dev", "test")}
    features = splits["train"][0]
    choices = {**{str(layer): [layer] for layer in range(features.shape[1])}, "joined": list(range(features.shape[1]))}
    rows = []
    for name, layers in choices.items():
        (train, learnt), (dev, known), (test, answers) = (
            (vectors[:, layers].reshape(len(vectors), -1), labels) for vectors, labels in splits.values()
        )
        fits = [
            make_pipeline(StandardScaler(), LogisticRegression(C=penalty, max_iter=300)).fit(train, learnt)
            for penalty in (0.1, 0.01, 0.001, 0.0001)
        ]
        best = max(fits, key=lambda fit: fit.score(dev, known))
        rows.append({"layer": name, "dev": best.score(dev, known), "accuracy": best.score(test, answers)})
    return {"layers": rows}


def _reviews(embedder: Encoder, path: Path) -> tuple[np.ndarray, list[str]]:
    labels, texts = zip(*(line.split(" ", 1) for line in path.read_text("utf-8").splitlines()), strict=True)
    vectors = [array.mean(axis=1) for array in embedder.embed(text.split() for text in texts)]
    return np.stack(vectors), list(labels)


def made_words(subject: Subject) -> dict[str, Any]:
    embedder = subject.open()
    result = asdict(spelling(embedder, known_words(subject.model, embedder), texts.seen_words(subject.data)))
    for score in result["scores"]:
        answers, nearest = score.pop("answers"), result["nearest"]
        score["hits"] = [answer for answer in answers if 0 < answer["rank"] <= nearest][:EXAMPLES]
        score["misses"] = [answer for answer in answers if answer["rank"] > nearest][:EXAMPLES]
    return result


def leanings(subject: Subject) -> dict[str, Any]:
    """How likely "he" and "she" are as the one who has an occupation, given the words after the gap."""
    model = LanguageModel.load(subject.model, device=subject.device)
    found = {}
    for occupation in OCCUPATIONS:
        words = ["is", "an" if occupation[0] in "aeiou" else "a", occupation, "."]
        shares = dict(model.predict_previous(words, top=len(model.vocabulary)))
        found[occupation] = {word: shares.get(word, 0) + shares.get(word.title(), 0) for word in ("he", "she")}
    return {"occupations": found}


def start(subject: Subject) -> dict[str, Any]:
    """Seconds to open the model and for its first sentence, each time in a new process, torch's import aside."""
    runs = [
        [float(part) for part in _run(subject, "-c", STARTING, str(subject.model)).stdout.split()]
        for _ in range(REPEATS)
    ]
    load, first = (statistics.median(values) for values in zip(*runs, strict=True))
    return {"load": load, "first_sentence": first, "runs": runs, "threads": subject.threads}


def demo(subject: Subject) -> dict[str, Any]:
    """Seconds of the whole command, its picture too, in a new process."""
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(3):
            begun = time.perf_counter()
            _run(subject, "-m", "polyseme", "demo", "--model", str(subject.model), "--plot", f"{folder}/demo.png")
            seconds.append(time.perf_counter() - begun)
    return {"seconds": statistics.median(seconds), "runs": seconds, "threads": subject.threads}


def _run(subject: Subject, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"OMP_NUM_THREADS": str(subject.threads)}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True, env=environment)


PARTS: dict[str, Callable[[Subject], dict[str, Any]]] = {
    "files": files,
    "start": start,
    "demo": demo,
    "leanings": leanings,
    "spelling": made_words,
    "similarity": rated_pairs,
    "sentiment": sentiment,
    "wic": words_in_context,
    "pos": pos,
    "wsd": wsd,
    "wikitext": wikitext,
    "perplexity": held_out,
}


def processor() -> str:
    """The name of this machine's processor, as its system tells it."""
    told = Path("/proc/cpuinfo").read_text("utf-8") if Path("/proc/cpuinfo").exists() else ""
    names = [line.partition(":")[2].strip() for line in told.splitlines() if line.startswith("model name")]
    return f"{names[0] if names else platform.processor() or 'unknown'} ({platform.machine()})"


def identity(model: Path) -> str:
    """Which model it is: a hash of those of all that it computes with; a curve that goes with it may change."""
    if not (model / "manifest.json").exists():  # a transformer
        return hashlib.sha256((model / "model.safetensors").read_bytes()).hexdigest()
    listed = json.loads((model / "manifest.json").read_text("utf-8"))["files"]
    hashes = [listed[name]["sha256"] for name in (CONFIG, MODEL, SOFTMAX, VOCABULARY) if name in listed]
    return hashlib.sha256("".join(hashes).encode()).hexdigest()


def stored(path: Path, which: str) -> dict[str, Any]:
    """What has been measured of this very model; what was measured of another is left behind."""
    if path.exists() and (found := json.loads(path.read_text("utf-8"))).get("weights") == which:
        return found
    return {"weights": which, "parts": {}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?")
    parser.add_argument("--data", type=Path, default=Path("../shared"), help="laid out as DATA.md there says")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="some parts of it")
    parser.add_argument("--json", type=Path, default=Path("english.json"), help="where figures are kept")
    parser.add_argument("--card", type=Path, help="a Markdown page that gets the table, between its two markers")
    parser.add_argument("--documents", type=int, help="perplexity of the first so many documents only")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="float32", help="of embedding; int8 is twice as fast on a CPU")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    model = Path(resolve_model_path(args.model))
    subject = Subject(model, args.data, args.device, args.precision, args.documents, args.threads)
    which = identity(model)
    for name in args.only:
        begun = time.perf_counter()
        result = PARTS[name](subject)
        seconds = time.perf_counter() - begun
        how = {"seconds": round(seconds, 1), "device": args.device, "precision": args.precision}
        results = stored(args.json, which)  # again: another run may have added to it
        results["parts"][name] = {**how, "threads": args.threads, "processor": processor(), "result": result}
        with atomic_write(args.json) as file:
            file.write(json.dumps({**results, "model": model.name}, indent=2, ensure_ascii=False).encode() + b"\n")
        print(f"{name}: {seconds:.1f} s", file=sys.stderr, flush=True)
    results = stored(args.json, which)
    print(table(results))
    if args.card:
        insert(args.card, FIGURES, table(results))
        insert(args.card, LEANINGS, leanings_table(results))


if __name__ == "__main__":
    main()
