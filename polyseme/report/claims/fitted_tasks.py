"""Text, chart and table about tasks that the report fits on the spot, for the claims that rest on them."""

from __future__ import annotations

from collections.abc import Sequence

from polyseme.report.measure.fits.word_tasks import TASKS
from polyseme.report.measure.measurement import Results
from polyseme.report.measure.statistics import mean_interval
from polyseme.report.page.content import Block, Paragraph, Table, list_words, points

FITTED = tuple(TASKS)
NAMED_ROW = tuple[str, str]  # what the page calls a row, and its key


def list_differences(tasks: Sequence[Results], pair: str) -> str:
    """The difference of two rows in each task, for running text."""
    found = [(task["title"], task["difference"][pair]) for task in tasks]
    return "; ".join(f"{title} {points(each['value'], each['interval'])}" for title, each in found)


def mean_difference(tasks: Sequence[Results], pair: str) -> tuple[float, float, float]:
    """Mean difference of two rows over tasks, and its 95 % confidence interval."""
    found = [task["difference"][pair] for task in tasks]
    return mean_interval([each["value"] for each in found], [each["error"] for each in found])


def difference_blocks(tasks: Sequence[Results], before: NAMED_ROW, after: NAMED_ROW) -> list[Block]:
    """A table of two rows of each task, and how the tasks were fitted."""
    pair = f"{after[1]} {before[1]}"
    rows = []
    for task in tasks:
        low, high = task["difference"][pair]["interval"]
        scores = [f"{task['score'][key]:.1f}" for _, key in (before, after)]
        rows.append((task["title"], *scores, f"{low:+.1f} to {high:+.1f}".replace("-", "−")))
    sizes = list_words(sorted({str(task["train"]) for task in tasks}))
    return [
        Table(
            ("task", before[0], after[0], "difference"),
            tuple(rows),
            "Accuracy in %, for names F1, and the 95 % interval of the difference.",
        ),
        Paragraph(
            "The tasks are fitted on the spot: a linear classifier sees the vectors of a word and of its two "
            f"neighbours. It learns from {sizes} sentences and is tested on others. *Kinds of meaning* are WordNet's "
            "categories of nouns and verbs: person, act, food, motion and so on."
        ),
    ]
