"""Training of bidirectional language models from raw text."""

from typing import TYPE_CHECKING

from polyseme.lazy import lazy_names

if TYPE_CHECKING:
    from polyseme.training.events import Evaluation, TrainFinished
    from polyseme.training.job import TrainJob
    from polyseme.training.loop.trainer import StepReport
    from polyseme.training.run import train

__all__ = [
    "Evaluation",
    "StepReport",
    "TrainFinished",
    "TrainJob",
    "train",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "Evaluation": "polyseme.training.events",
        "StepReport": "polyseme.training.loop.trainer",
        "TrainFinished": "polyseme.training.events",
        "TrainJob": "polyseme.training.job",
        "train": "polyseme.training.run",
    },
)
