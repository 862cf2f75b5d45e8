"""What contextual vectors are worth: six tasks with and without, the paper's ablation in small, sample efficiency.

    python benchmarks/tasks.py --data EVAL --model ELMO --glove glove.6B.50d.txt --transformer MINILM [--device cuda]
    python benchmarks/tasks.py --tables         # writes docs/tasks.md and its picture from what was measured

Each fit is known by its task, row and seed. Its result is stored as soon as it is there, so that a run that was
interrupted goes on; what failed is tried again, and ``--again`` measures all anew. Fits need torch, numpy and
safetensors (and transformers for a transformer) and nothing else; ``--workers`` runs several at a time, on one GPU too.
``--only wnut17/input`` takes those whose names begin so. A result tells score, settings, seconds, device, and the
fingerprints of the models.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import functools
import json
import multiprocessing
import os
import platform
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from tasks_rows import ROWS, Unit, units

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "tasks.json"
SHARED = HERE.parent.parent / "shared" / "eval"


def main() -> None:
    args = parse_arguments()
    if args.tables:
        from tasks_tables import write_tables

        write_tables(json.loads(args.results.read_text("utf-8")), HERE.parent / "docs")
        return
    results = json.loads(args.results.read_text("utf-8")) if args.results.exists() else {}
    todo = [unit for unit in chosen(args) if args.again or "score" not in results.get(unit.key, {})]
    if args.list:
        print("\n".join(unit.key for unit in todo))
        return
    begun = time.monotonic()
    for number, (unit, result) in enumerate(run_all(todo, args), start=1):
        results[unit.key] = result
        store(results, args.results)
        score = f"{100 * result['score']:.2f}" if "score" in result else result["failed"]
        passed = time.monotonic() - begun
        print(f"{number}/{len(todo)} {unit.key}: {score}, {result['seconds']:.0f} s, {passed:.0f} s in all", flush=True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SHARED, help="the folder with ner-wnut17, sentiment-sst, ...")
    parser.add_argument("--model", help="an ELMo model [default: the one that ships]")
    parser.add_argument("--glove", type=Path, default=Path("glove.6B.50d.txt"))
    parser.add_argument("--transformer", help="a transformer's folder; without it its rows are left out")
    parser.add_argument("--tuned", help="the model after `polyseme train --from` on film reviews; likewise")
    parser.add_argument("--tasks", nargs="+", default=["wnut17", "conll2000", "ewt", "sst5", "trec6", "sick"])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="fits whose names begin so")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=1, help="fits at a time, each a process")
    parser.add_argument("--threads", type=int, default=1, help="of each process")
    parser.add_argument("--cache", type=Path, help="where vectors are kept [default: the user's cache]")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="model.cells=100, fit.rate=0.002")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--again", action="store_true", help="also what is there already")
    parser.add_argument("--list", action="store_true", help="say which fits there would be")
    parser.add_argument("--tables", action="store_true", help="write docs/tasks.md from the results, and fit nothing")
    return parser.parse_args()


def chosen(args: argparse.Namespace) -> list[Unit]:
    found = [unit for unit in units(args.tasks, args.seeds) if unit.task in args.tasks]
    absent = [name for name in ("transformer", "tuned") if not getattr(args, name)]
    found = [unit for unit in found if ROWS[unit.row].encoder not in absent]
    return [unit for unit in found if not args.only or unit.key.startswith(tuple(args.only))]


def run_all(todo: list[Unit], args: argparse.Namespace) -> Iterator[tuple[Unit, dict[str, Any]]]:
    """Each fit's result as it comes; one that fails says why and holds up nobody."""
    if args.workers == 1:
        yield from ((unit, attempt(unit, args)) for unit in todo)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(args.workers, context) as pool:
        running = {pool.submit(attempt, unit, args): unit for unit in todo}
        for done in as_completed(running):
            yield running[done], done.result()


def attempt(unit: Unit, args: argparse.Namespace) -> dict[str, Any]:
    begun = time.monotonic()
    try:
        return measure(unit, args)
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}", "seconds": time.monotonic() - begun}


def measure(unit: Unit, args: argparse.Namespace) -> dict[str, Any]:
    """Fit one model, and see how good it is on the test set."""
    import torch
    from tasks_data import read_task

    torch.set_num_threads(args.threads)
    begun = time.monotonic()
    split = read_task(unit.task, args.data, unit.share)
    model = make_model(unit, args)
    first = None
    for report in model.fitting(*split.train, dev=split.dev):
        first = first or time.monotonic()
        if report.score:
            print(f"  {unit.key} {report.epoch} {report.loss:.3f} {100 * report.score.value:.2f}", flush=True)
    ended = time.monotonic()
    scores = model.evaluate(*split.test)
    about = [source.describe() for source in (*model.encoders_, *model.word_encoders_)]
    return {
        **(tuning(args) if ROWS[unit.row].encoder == "tuned" else {}),
        "score": scores.main.value,
        "measure": scores.main.name,
        "dev": model.best_score_,
        "best_epoch": model.best_epoch_,
        "epochs": report.epoch,
        "seconds": ended - begun,
        "learning_seconds": ended - (first or begun),
        "examples": len(split.train[0]),
        "mixes": {place: [dataclasses.asdict(mix) for mix in some] for place, some in model.mixes().items()},
        "settings": dataclasses.asdict(model.settings_),
        "fit": dataclasses.asdict(model.fit_settings_),
        "encoders": [{name: source[name] for name in ("name", "fingerprint")} for source in about],
        "device": describe_device(args.device, args.threads),
        "torch": torch.__version__,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
    }


def tuning(args: argparse.Namespace) -> dict[str, Any]:
    """Which model was tuned, and the perplexities before and after, by text."""
    from polyseme.report.claims.claim_07_fine_tuning import read_tuning

    perplexities = {Path(text).name: ends for text, ends in read_tuning(Path(args.tuned)).items()}
    return {"tuned_from": opened(args.model, args.device).fingerprint(), "perplexities": perplexities}


def make_model(unit: Unit, args: argparse.Namespace) -> Any:
    """A model as a row wants it, with its defaults but for what the row and --set change."""
    import tasks_data

    from polyseme import Classifier, Pairs, Tagger
    from polyseme.model.config import from_dict
    from polyseme.tasks.features.feature_cache import FeatureCache
    from polyseme.tasks.parameters import merged, parse_settings

    kind = {"tagger": Tagger, "classifier": Classifier, "pairs": Pairs}[tasks_data.TASKS[unit.task].model]
    row = ROWS[unit.row]
    changes = parse_settings(args.set, ["model", "fit"])
    own = merged(merged(dataclasses.asdict(kind.settings_kind()), row.settings), changes["model"])
    fitting = merged(merged(dataclasses.asdict(kind.default_fit), {"seed": unit.seed}), changes["fit"])
    path = {"elmo": args.model, "tuned": args.tuned, "transformer": args.transformer}.get(row.encoder or "")
    return kind(
        opened(path, args.device) if row.encoder else None,
        words=opened(str(args.glove), args.device),
        settings=from_dict(kind.settings_kind, own, "model"),
        fit_settings=from_dict(type(kind.default_fit), fitting, "fit"),
        cache=FeatureCache(args.cache, budget=48 << 30),
        device=args.device,
    )


@functools.lru_cache(maxsize=4)
def opened(path: str | None, device: str) -> Any:
    import polyseme

    return polyseme.load(path, device=device) if path else polyseme.load(device=device)


def describe_device(device: str, threads: int) -> str:
    if device.startswith("cuda"):
        import torch

        return torch.cuda.get_device_name(device)
    return f"{platform.processor() or platform.machine()}, {threads} of {os.cpu_count()} cores"


def store(results: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", "utf-8")
    unfinished.replace(path)


if __name__ == "__main__":
    main()
