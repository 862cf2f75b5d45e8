"""``python -m polyseme.training``: ``polyseme train`` where there is nothing but torch, numpy and safetensors."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from polyseme.errors import PolysemeError
from polyseme.training.events import EventFormatter, announce_stop, describe_interruption
from polyseme.training.loop.distributed import is_leader
from polyseme.training.run import TrainFinished, TrainJob, TrainPlan, train
from polyseme.training.settings import PRESETS, RECIPES, merge_tables, parse_set, read_settings
from polyseme.training.signals import GracefulStop


def main() -> None:
    """Train, and print a line now and then."""
    arguments = _parser().parse_args()
    try:
        changes = merge_tables(read_settings(arguments.config) if arguments.config else {}, parse_set(arguments.set))
        if arguments.tokenized:
            changes = merge_tables(changes, {"data": {"tokenized": True}})
        job = TrainJob(
            arguments.texts,
            arguments.output,
            arguments.preset,
            arguments.recipe,
            changes,
            arguments.device,
            arguments.resume,
            arguments.overwrite,
            arguments.start_from,
            arguments.extend_vocabulary,
            tuple(arguments.also_evaluate),
            arguments.workers,
        )
        run(job)
    except PolysemeError as error:
        _say(f"error: {' '.join(str(error).split())}")
        sys.exit(2)
    except KeyboardInterrupt:
        _say("interrupted")
        sys.exit(130)


def run(job: TrainJob) -> None:
    """Go through a run, printing."""
    formatter, event = EventFormatter(), None
    with GracefulStop(announce_stop) as stop:
        for event in train(job, lambda: stop.requested):
            stop.defer = stop.defer or isinstance(event, TrainPlan)
            line = formatter.format(event)
            if line and is_leader():
                _say(line)
    if not isinstance(event, TrainFinished):
        if is_leader():
            _say(describe_interruption(job.run))
        sys.exit(130)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m polyseme.training", description="Raw text in, a language model out.")
    parser.add_argument("texts", nargs="+", help="files, folders, patterns, or - for standard input")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the model's folder")
    parser.add_argument("--preset", choices=PRESETS, help="else what suits the text and the device")
    parser.add_argument("--recipe", choices=RECIPES, default="modern")
    parser.add_argument("--config", type=Path, help="a TOML or JSON file of settings")
    parser.add_argument("--set", action="append", default=[], metavar="TABLE.SETTING=VALUE")
    parser.add_argument("--tokenized", action="store_true", help="a sentence a line, words apart by spaces")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--overwrite", action="store_true")
    parser.add_argument("--from", dest="start_from", type=Path, help="a model to go on from")
    parser.add_argument("--extend-vocabulary", action="store_true")
    parser.add_argument("--also-evaluate", action="append", default=[], metavar="TEXT")
    parser.add_argument("--workers", type=int)
    return parser


if __name__ == "__main__":
    main()
