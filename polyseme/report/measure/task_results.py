"""Scores of fitted tasks, as ``benchmarks/tasks.py`` stored them: fits take hours, so they are read and not made here.

A result is known by ``task/row/seed`` or ``task/row@10%/seed`` and tells its score, the mixes it came to, and the
fingerprints of the encoders. Only results of the very model that is looked at are taken, the baseline's, and those of a
model that was tuned from it.
"""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

from polyseme.errors import ConfigError, FormatError
from polyseme.report.measure.measurement import Results

TASKS = "tasks"  # the name of these results among those of a model
BASE, MIXED, TUNED = "glove", "elmo", "tuned"
TITLES = {
    "wnut17": "names (WNUT-17)",
    "conll2000": "chunks (CoNLL-2000)",
    "ewt": "parts of speech (UD-EWT)",
    "sst5": "sentiment (SST-5)",
    "trec6": "questions (TREC-6)",
    "sick": "entailment (SICK)",
}
COMMAND = "python benchmarks/tasks.py --data DATA --model {model} --glove glove.6B.50d.txt"


def read_results(path: Path) -> dict[str, dict[str, Any]]:
    """All results of a file, by key."""
    if path.is_dir():
        raise ConfigError(f"{path} is a folder; --tasks takes the JSON file that benchmarks/tasks.py stores")
    try:
        results = json.loads(path.read_text("utf-8"))
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: is no text; expected JSON, as benchmarks/tasks.py stores it") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: is no JSON, as benchmarks/tasks.py stores it: {error}") from error
    if not isinstance(results, dict) or not all(isinstance(each, dict) for each in results.values()):
        raise FormatError(f"{path}: expected results by name, as benchmarks/tasks.py stores them")
    return results


def results_of(results: dict[str, dict[str, Any]], fingerprint: str) -> Results:
    """The scores, in per cent, by task and row, of one model and of the baseline without any; and its mixes.

    Of a model that was tuned from it also the perplexities before and after. Refused where there is none of this model.
    """
    scores: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    mixes: defaultdict[str, list[Any]] = defaultdict(list)
    perplexities: dict[str, list[float]] = {}
    own = 0
    for key in sorted(results):
        task, row, result = *key.split("/")[:2], results[key]
        first = result.get("encoders", [])[:1]  # word vectors, which stand beside every encoder, come after it
        of_model = any(encoder.get("fingerprint") == fingerprint for encoder in first)
        is_tuned = result.get("tuned_from") == fingerprint
        if "score" not in result or not (of_model or is_tuned or row.partition("@")[0] == BASE):
            continue
        if is_tuned:
            perplexities = result["perplexities"]
        own += of_model
        scores[task][row].append(100 * result["score"])
        if row == MIXED:
            mixes[task] += result.get("mixes", {}).get("input", [])[:1]
    if not own:
        raise ConfigError("The file of task results holds none of this model: its fingerprint is another.")
    return {
        "scores": {task: dict(rows) for task, rows in scores.items()},
        "mixes": dict(mixes),
        "fits": own,
        "perplexities": perplexities,
    }


def mean(values: list[float]) -> float:
    """Of all seeds."""
    return statistics.mean(values)


def difference(first: list[float], second: list[float]) -> tuple[float, float]:
    """How much more the first is, and the standard error of that over seeds; endless where there is one seed only."""
    if min(len(first), len(second)) < 2:
        return mean(first) - mean(second), math.inf
    error = math.sqrt(statistics.variance(first) / len(first) + statistics.variance(second) / len(second))
    return mean(first) - mean(second), error


def shown(values: list[float] | None) -> str:
    """Mean and deviation, for a table."""
    if not values:
        return "–"
    beside = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{mean(values):.1f}{beside}"


def title(task: str) -> str:
    """What people call a task."""
    return TITLES.get(task, task)
