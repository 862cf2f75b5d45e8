"""What parts of the training recipe are worth: the same text, the same time, one thing changed.

    python benchmarks/recipes.py TEXT --seconds 240 --recipes modern bilm-tf no-residual carried fresh

Every recipe gets so many seconds of training (evaluation not counted), with its schedule laid out to end then, by the
speed of its first steps. Perplexity is by the full softmax on all held-out text: each sentence by itself, and state
carried. At equal time, one that takes cheaper steps takes more of them. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import torch

from polyseme.lm import perplexity
from polyseme.training.loop.initial import new_model
from polyseme.training.loop.trainer import Trainer
from polyseme.training.settings import TrainSettings, change, parse_set, preset
from polyseme.training.shards.prepare import prepare
from polyseme.training.shards.store import Shards

FIRST_STEPS = 5
CHANGES = {
    "modern": [],
    "no-residual": ["model.lstm.residual=false"],
    "carried": ["training.fresh_rows=0.0"],
    "fresh": ["training.fresh_rows=1.0"],
    "window-20": ["training.window=20"],
    "window-64": ["training.window=64", "training.rows=32"],
    "rate-0.002": ["training.learning_rate=0.002"],
    "rate-0.008": ["training.learning_rate=0.008"],
    "full-softmax": ["loss.kind=full"],
    "adaptive": ["loss.kind=adaptive"],
    "adagrad": [
        "training.optimizer=adagrad", "training.learning_rate=0.2", "training.decay=none", "training.warm_up=0.0",
        "training.loss_factor=32.0", "training.clip=10.0",
    ],
}  # fmt: skip


def settings_of(name: str, args: argparse.Namespace) -> TrainSettings:
    """A recipe by name."""
    recipe = "bilm-tf" if name == "bilm-tf" else "modern"
    settings = preset(args.preset, torch.device(args.device).type, recipe)
    # The published recipe's vocabulary and sizes are not at issue: both predict the same words.
    loss = {"loss": {"words": args.words}}
    return change(change(settings, loss), parse_set([*CHANGES.get(name, []), *args.set]))


def run(name: str, shards: Shards, args: argparse.Namespace) -> dict[str, object]:
    settings = settings_of(name, args)
    device = torch.device(args.device)
    trainer = Trainer(new_model(settings, shards), shards, settings.loss, settings.training, device)
    trainer.steps = 1 << 40  # for a moment: no schedule yet
    first = min(trainer.take_step().seconds for _ in range(FIRST_STEPS))
    trainer.steps = max(FIRST_STEPS + 1, round(args.seconds / first))
    documents = list(shards.held_out_documents())
    curve, spent, next_look = [], FIRST_STEPS * first, args.seconds / args.looks
    while trainer.step < trainer.steps and spent < args.seconds:
        spent += trainer.take_step().seconds
        if spent >= next_look and spent < args.seconds:
            next_look += args.seconds / args.looks
            fresh = perplexity(trainer.model.language_model(), shards.held_out_documents(args.look_at))
            curve.append((round(spent, 1), fresh.both))
    model = trainer.model.language_model()
    fresh, carried = (perplexity(model, documents, carried=carried) for carried in (False, True))
    tokens = trainer.step * settings.training.rows * settings.training.window
    result = {"recipe": name, "steps": trainer.step, "tokens": tokens, "seconds": spent, "skipped": trainer.skipped}
    return {**result, "fresh": fresh.both, "carried": carried.both, "held out": fresh.tokens, "curve": curve}


def draw(results: list[dict[str, object]], path: Path) -> None:
    from matplotlib.figure import Figure
    from matplotlib.ticker import ScalarFormatter

    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.add_subplot(xlabel="seconds of training", ylabel="held-out perplexity", yscale="log")
    for result in results:
        points = [*result["curve"], (result["seconds"], result["fresh"])]
        axes.plot(*zip(*points, strict=True), marker="o", markersize=3, label=result["recipe"])
        axes.annotate(f"{result['fresh']:.0f}", points[-1], (4, 4), textcoords="offset points")
    axes.yaxis.set_major_formatter(ScalarFormatter())
    axes.yaxis.set_minor_formatter(ScalarFormatter())
    axes.grid(which="both", linewidth=0.3)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+")
    parser.add_argument("--recipes", nargs="+", default=["modern", "bilm-tf"], choices=["bilm-tf", *CHANGES])
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--words", type=int, default=30_000)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--looks", type=int, default=6, help="how often held-out text is looked at on the way")
    parser.add_argument("--look-at", type=int, default=5000, help="tokens of it")
    parser.add_argument("--set", action="append", default=[], metavar="TABLE.SETTING=VALUE", help="for all of them")
    parser.add_argument("--shards", type=Path, help="keep the text's shards there")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path, help="draw the curves")
    parser.add_argument("--join", nargs="*", type=Path, default=[], help="results of other runs to draw beside them")
    args = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        place = args.shards or Path(folder, "shards")
        for _ in prepare(args.texts, place):
            pass
        shards = Shards.open(place)
        print("| recipe | steps | tokens | seconds | fresh | carried |\n|---|---|---|---|---|---|")
        for name in args.recipes:
            begun = time.strftime("%H:%M")
            found = run(name, shards, args)
            results.append({**found, "begun": begun})
            shown = (found["recipe"], found["steps"], found["tokens"], round(found["seconds"]))
            print("|", " | ".join(map(str, shown)), f"| {found['fresh']:.1f} | {found['carried']:.1f} |", flush=True)
            if args.json:
                args.json.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    if args.plot:
        draw([*results, *(row for path in args.join for row in json.loads(path.read_text("utf-8")))], args.plot)


if __name__ == "__main__":
    main()
