"""Training speed of a preset on this machine, measured over a few steps."""

from __future__ import annotations

import random
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import torch

from polyseme.training.loop.initial import new_model
from polyseme.training.loop.trainer import Trainer
from polyseme.training.settings import preset
from polyseme.training.shards.prepare import PrepareSettings, prepare
from polyseme.training.shards.store import Shards

STEPS = 2
TOKENS = 1 << 15
CPU_ROWS = 32  # fewer than the preset, since one step of a large model takes long


def tokens_per_second(size: str, device: str = "cpu") -> float:
    """Measure the tokens per second that a preset trains on, with random text of Zipfian word frequencies."""
    settings = preset(size, torch.device(device).type)
    if torch.device(device).type == "cpu":
        settings = replace(settings, training=replace(settings.training, rows=CPU_ROWS))
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "text.txt")
        text.write_text(_random_text(), encoding="utf-8")
        for _ in prepare(text, Path(folder, "shards"), PrepareSettings(tokenized=True, held_out=0.0), workers=1):
            pass
        shards = Shards.open(Path(folder, "shards"))
        trainer = Trainer(new_model(settings, shards), shards, settings.loss, settings.training, torch.device(device))
        trainer.take_step()
        started = time.perf_counter()
        for _ in range(STEPS):
            trainer.take_step()
        if device != "cpu":
            torch.cuda.synchronize(device)
        seconds = time.perf_counter() - started
    return STEPS * settings.training.rows * settings.training.window / seconds


def _random_text() -> str:
    """Random text with Zipfian word frequencies, as natural text has them."""
    rng = random.Random(0)
    words = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(1, 11))) for _ in range(30_000)]
    drawn = rng.choices(words, weights=[1 / (rank + 3) for rank in range(len(words))], k=TOKENS)
    return "".join(" ".join(drawn[first : first + 20]) + "\n" for first in range(0, TOKENS, 20))
