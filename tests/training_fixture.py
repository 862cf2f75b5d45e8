"""A text, shards and settings so small that a run takes a second."""

import random
from pathlib import Path

import torch

from polyseme.model.config import BiLMConfig, CharCnnConfig, InputConfig, LstmConfig
from polyseme.training.loop.initial import new_model
from polyseme.training.loop.trainer import Trainer
from polyseme.training.run import TrainJob
from polyseme.training.settings import LoopSettings, LossSettings, TrainSettings, merge_tables
from polyseme.training.shards.prepare import PrepareSettings, prepare
from polyseme.training.shards.store import Shards

MODEL = BiLMConfig(
    InputConfig(8, CharCnnConfig(dim=4, filters=((1, 4), (2, 6), (3, 8)), max_characters=20)),
    LstmConfig(12, 8, cell_clip=None, output_clip=None),
)
# The same as nested tables, for the command line.
TABLES = {
    "model": {
        "input": {"dim": 8, "characters": {"dim": 4, "filters": [[1, 4], [2, 6], [3, 8]], "max_characters": 20}},
        "lstm": {"cells": 12, "dim": 8},
    },
    "loss": {"words": 50, "samples": 20, "min_count": 1},
    "training": {"rows": 4, "window": 5, "steps": 12, "evaluations": 2, "held_out_tokens": 200},
}


def write_text(path: Path, sentences: int = 300, seed: int = 0) -> Path:
    """Sentences in which a word says what the next one is."""
    rng = random.Random(seed)
    lines = []
    for number in range(sentences):
        first = rng.randrange(30)
        lines.append(" ".join(f"w{(first + 7 * place) % 30}" for place in range(rng.randrange(1, 12))))
        if number % 10 == 9:
            lines.append("")
    path.write_text("\n".join(lines) + "\n")
    return path


def make_shards(folder: Path, shard_tokens: int = 1 << 20, sentences: int = 300) -> Shards:
    text = write_text(folder / "text.txt", sentences)
    settings = PrepareSettings(tokenized=True, max_sentence=20, shard_tokens=shard_tokens, held_out=0.05)
    for _ in prepare(text, folder / "shards", settings, workers=1):
        pass
    return Shards.open(folder / "shards")


def settings_of(**loop) -> TrainSettings:
    values = {"rows": 4, "window": 5, "steps": 12, "dropout": 0.2, "forget": 0.1} | loop
    return TrainSettings(MODEL, loss=LossSettings(words=50, samples=20, min_count=1), training=LoopSettings(**values))


def make_trainer(shards: Shards, settings: TrainSettings, device: str = "cpu", **more) -> Trainer:
    model = new_model(settings, shards)
    return Trainer(model, shards, settings.loss, settings.training, torch.device(device), **more)


def make_job(folder: Path, name: str = "model", **changes) -> TrainJob:
    text = folder / "text.txt"
    if not text.exists():
        write_text(text)
    tables = merge_tables(TABLES, {"data": {"tokenized": True, "held_out": 0.1}, **changes.pop("changes", {})})
    return TrainJob(str(text), folder / name, changes=tables, workers=1, **changes)
