"""What happens in a run, for whoever follows it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from polyseme.lm import Perplexity
from polyseme.training.loop.trainer import Report
from polyseme.training.settings import TrainSettings
from polyseme.training.shards.prepare import Preparing


@dataclass(frozen=True)
class Plan:
    """What is about to be done."""

    settings: TrainSettings
    steps: int
    first_step: int  # 0, or where an interrupted run goes on
    tokens: int  # of the training text
    held_out_tokens: int
    words: int  # of the vocabulary
    unknown: float  # share of the running words that are not in it
    parameters: int  # of the biLM
    head_parameters: int
    device: str
    processes: int


@dataclass(frozen=True)
class Evaluation:
    """How the model does on text that it does not learn from, by the full softmax."""

    step: int
    text: str  # which
    fresh: Perplexity  # each sentence by itself
    carried: Perplexity  # state carried through a document
    best: bool  # the best of the run so far, so the model was saved


@dataclass(frozen=True)
class Saved:
    """A checkpoint was written."""

    folder: Path
    step: int


@dataclass(frozen=True)
class Finished:
    """The run is over."""

    model: Path
    run: Path
    step: int
    best: float | None  # perplexity of the model, each sentence by itself


Event = Preparing | Plan | Report | Evaluation | Saved | Finished
