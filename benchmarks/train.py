"""How many tokens a second training takes in, from shards to changed weights, and what the time goes into.

    python benchmarks/train.py TEXT... --shards FOLDER [--sizes small medium original] [--device cuda] [--json FILE]

Each size trains from its preset for the device (changed by --set) for some steps; the first are not counted. A token is
one word or sentence end, predicted in both directions. The recurrence alone (the library's LSTM over the same rows,
forward and back, nothing else) is measured in the same run: it is what everything else would have to hide behind.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch

from polyseme.kernels.reference import LstmState
from polyseme.model.reading import initial_state, read
from polyseme.training.loop.initial import new_model
from polyseme.training.loop.learner import DirectionRunner
from polyseme.training.loop.trainer import Trainer
from polyseme.training.settings import TrainSettings, change, parse_set, preset
from polyseme.training.shards.prepare import prepare
from polyseme.training.shards.store import Shards


def measure(size: str, shards: Shards, args: argparse.Namespace) -> dict[str, object]:
    device = torch.device(args.device)
    settings = change(preset(size, device.type), parse_set(["training.steps=10000", *args.set]))
    trainer = Trainer(new_model(settings, shards), shards, settings.loss, settings.training, device)
    for _ in range(args.first):
        report = trainer.take_step()
    report.loss  # noqa: B018 - wait for it
    started = time.perf_counter()
    for _ in range(args.steps):
        report = trainer.take_step()
    loss = report.loss
    seconds = (time.perf_counter() - started) / args.steps
    loop = settings.training
    found: dict[str, object] = {
        "size": size,
        "rows": loop.rows,
        "window": loop.window,
        "words": len(trainer.model.vocabulary),
        "samples": settings.loss.samples,
        "precision": loop.precision,
        "milliseconds": 1e3 * seconds,
        "tokens/s": loop.rows * loop.window / seconds,
        "LSTM alone, tokens/s": recurrence(trainer, settings, args.steps),
        "loss": loss,
        "skipped": report.skipped,
    }
    if device.type == "cuda":
        found["GiB"] = torch.cuda.max_memory_allocated() / 2**30
        if args.profile:
            found["profile"] = profile(trainer)
    return found


def recurrence(trainer: Trainer, settings: TrainSettings, steps: int) -> float:
    """Tokens a second of the LSTMs by themselves."""
    loop, bilm = settings.training, trainer.model.bilm
    parameter = next(bilm.parameters())
    kind = getattr(torch, loop.precision)
    inputs = torch.randn(loop.window, loop.rows, bilm.config.lstm.dim, device=parameter.device, dtype=kind)
    directions = DirectionRunner(parameter.device)
    reduced = torch.autocast(parameter.device.type, kind, enabled=kind != torch.float32)
    state: LstmState = initial_state(bilm, loop.rows)

    def work(way: int) -> None:
        ahead = inputs.clone().requires_grad_()
        with reduced:
            top, _ = read(bilm, way, ahead, state)
        top.backward(inputs)

    started = 0.0
    for number in range(steps + 3):
        if number == 3:
            _wait(parameter.device)
            started = time.perf_counter()
        bilm.zero_grad()
        directions.run(work)
    _wait(parameter.device)
    return loop.rows * loop.window * steps / (time.perf_counter() - started)


def profile(trainer: Trainer, steps: int = 5) -> list[tuple[str, float]]:
    """The kernels that take most, in milliseconds a step."""
    kinds = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=kinds) as seen:
        for _ in range(steps):
            trainer.take_step()
        torch.cuda.synchronize()
    spent = sorted(seen.key_averages(), key=lambda event: -event.self_device_time_total)
    return [(event.key[:90], event.self_device_time_total / 1e3 / steps) for event in spent[:25]]


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="*", help="only needed where --shards is not there yet")
    parser.add_argument("--shards", type=Path, required=True)
    parser.add_argument("--sizes", nargs="+", default=["small", "medium", "original"])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--first", type=int, default=20)
    parser.add_argument("--set", action="append", default=[], metavar="TABLE.SETTING=VALUE")
    parser.add_argument("--profile", action="store_true", help="show the kernels that take most")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if args.texts:
        for _ in prepare(args.texts, args.shards):
            pass
    shards, results = Shards.open(args.shards), []
    for size in args.sizes:
        results.append(measure(size, shards, args))
        for name, value in results[-1].items():
            shown = "\n".join(f"{ms:8.2f} ms  {key}" for key, ms in value) if name == "profile" else value
            print(f"{name}: {shown:,.2f}" if isinstance(shown, float) else f"{name}: {shown}", flush=True)
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
