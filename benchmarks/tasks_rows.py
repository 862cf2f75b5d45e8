"""What is compared: every row of the tables is the same model, fed with other contextual vectors.

All rows have GloVe vectors of 50 dimensions and the task's own character convolution.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from polyseme.embedding.layers import STRATEGIES

SHARES = (1, 3, 10, 30, 100)  # per cent of a training set
ABLATED = ("wnut17", "sst5")
BASE, ELMO = "glove", "elmo"
TUNED = ("sst5", "trec6")  # on the domain that the tuned model read, film reviews, and off it


class Row(NamedTuple):
    """One way to feed a model."""

    title: str
    encoder: str | None  # elmo, tuned, transformer, or nothing
    settings: dict[str, Any] = {}  # noqa: RUF012 - never changed


def _elmo(title: str, where: str = "input", **mix: Any) -> Row:
    return Row(title, "elmo", {"where": where, "mix": mix})


ROWS = {
    BASE: Row("GloVe 50d and characters", None),
    "layer-0": _elmo("+ context-free layer", layers="0"),
    "layer-1": _elmo("+ layer 1 only", layers="1"),
    "layer-2": _elmo("+ layer 2 only", layers="2"),
    "average": _elmo("+ equal mix", layers="average"),
    ELMO: Row("+ learned mix at the input", "elmo"),  # where the model takes it by default: pairs, at both ends
    "output": _elmo("+ learned mix at the output", "output"),
    "both": _elmo("+ learned mix at both", "both"),
    "gamma-1": _elmo("+ learned mix, γ fixed at 1", gamma="one"),
    "layer-norm": _elmo("+ learned mix, layer norm on", layer_norm="sentence"),
    "taglm": Row("+ TagLM: top layer between two LSTM layers", "elmo", {"where": "taglm", "layers": 2}),
    "elmo-fine-tuned": Row("+ learned mix, fine-tuned", "elmo", {"fine_tune": True}),
    "tuned": Row("+ learned mix of a model tuned on film reviews", "tuned"),
    **{f"bert-{name}": Row(f"+ transformer, {name}", "transformer", {"mix": {"layers": name}}) for name in STRATEGIES},
    "fine-tuned": Row(
        "+ transformer, fine-tuned", "transformer", {"fine_tune": True, "mix": {"layers": "weighted-sum-all"}}
    ),
}


class Unit(NamedTuple):
    """One fit."""

    task: str
    row: str
    seed: int
    share: int = 100

    @property
    def key(self) -> str:
        """Its name in the file of results."""
        return f"{self.task}/{self.row}{'' if self.share == 100 else f'@{self.share}%'}/{self.seed}"


def units(tasks: Sequence[str], seeds: int) -> Iterator[Unit]:
    """All fits: those of the bars first, then the ablation, then the curve of sample efficiency."""
    for row in (BASE, ELMO):
        yield from (Unit(task, row, seed) for task in tasks for seed in range(seeds))
    for task in ABLATED:
        rows = [row for row in ROWS if row not in (BASE, ELMO, "tuned")]
        yield from (Unit(task, row, seed) for row in rows for seed in range(seeds))
    yield from (Unit(task, "tuned", seed) for task in TUNED for seed in range(seeds))
    for share in SHARES[:-1]:
        yield from (Unit("wnut17", row, seed, share) for row in (BASE, ELMO) for seed in range(seeds))
