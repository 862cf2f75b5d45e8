"""How fast a preset trains here, by taking a few steps."""

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
CPU_ROWS = 32  # fewer than in earnest: the step of a large model takes long enough


def tokens_per_second(size: str, device: str = "cpu") -> float:
    """Tokens that a preset reads in a second, on text that is made up but as repetitive as real one."""
    settings = preset(size, torch.device(device).type)
    if torch.device(device).type == "cpu":
        settings = replace(settings, training=replace(settings.training, rows=CPU_ROWS))
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "text.txt")
        text.write_text(_invented_text(), encoding="utf-8")
        for _ in prepare(text, Path(folder, "shards"), PrepareSettings(tokenized=True, held_out=0.0), workers=1):
            pass
        shards = Shards.open(Path(folder, "shards"))
        trainer = Trainer(new_model(settings, shards), shards, settings.loss, settings.training, torch.device(device))
        trainer.take_step()
        begun = time.perf_counter()
        for _ in range(STEPS):
            trainer.take_step()
        if device != "cpu":
            torch.cuda.synchronize(device)
        seconds = time.perf_counter() - begun
    return STEPS * settings.training.rows * settings.training.window / seconds


def _invented_text() -> str:
    """Lines of words that are the rarer the longer the list of them is, as words are."""
    chance = random.Random(0)
    words = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(1, 11))) for _ in range(30_000)]
    drawn = chance.choices(words, weights=[1 / (rank + 3) for rank in range(len(words))], k=TOKENS)
    return "".join(" ".join(drawn[first : first + 20]) + "\n" for first in range(0, TOKENS, 20))
