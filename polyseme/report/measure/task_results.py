"""Stored scores of fitted tasks (``--tasks FILE``): fitting takes hours, so the report reads scores and fits nothing.

The file is one JSON object. ``benchmarks/tasks.py`` writes it; it can also be written by hand. Every entry is one fit::

    {"wnut17/elmo/0": {"score": 0.42,
                       "encoders": [{"fingerprint": "cf903e..."}],
                       "mixes": {"input": [{"weights": [0.2, 0.5, 0.3], "gamma": 1.5}]}}}

The key is ``task/row/seed``, or ``task/row@30%/seed`` for a fit on 30 % of the training sentences.

* task: any name; ``wnut17``, ``conll2000``, ``ewt``, ``sst5``, ``trec6`` and ``sick`` are spelled out on the page.
* row: what the task model was given. ``glove``: word vectors alone, the baseline. ``elmo``: also a learned mix of all
  layers of the model. ``layer-0``, ``layer-1``, ``layer-2``, ``average``, ``gamma-1``, ``layer-norm``, ``output``,
  ``both``: other mixes of its layers. ``elmo-fine-tuned``, ``fine-tuned``: the ELMo or transformer trained along with
  the task. ``bert-last`` and the other ``bert-`` rows: a strategy of `polyseme.embedding.layers.STRATEGIES`.
  ``tuned``: as ``elmo``, with a model that `polyseme train --from` made of this one. Other rows are ignored.
* score: test-set score from 0 to 1 (F1 or accuracy). An entry without a score, a fit that failed, is ignored.
* encoders: the first one's ``fingerprint`` is that of the model (``polyseme.load(path).fingerprint()``). Only fits of
  the model under test are read, fits of the baseline, and fits of models tuned from it. Empty for the baseline.
* mixes (optional): the learned softmax weights of the layers and the scale γ.
* tuned_from, perplexities (row ``tuned``): the fingerprint of the model before tuning, and by text its perplexity
  ``[before, after]``; the text named ``held-out`` is unseen text of the domain.

All other fields are ignored.
"""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

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
REMEDY = "docs/report.md describes the file that --tasks takes"


def read_results(path: Path) -> dict[str, dict[str, Any]]:
    """Read and check a file of task results; the module docstring describes its format."""
    if path.is_dir():
        raise ConfigError(f"{path} is a folder; --tasks takes a JSON file of task results")
    try:
        results = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: expected JSON, and it is not: {error}; {REMEDY}") from error
    if not isinstance(results, dict):
        raise FormatError(f"{path}: expected a JSON object of results by name, got {results!s:.60}; {REMEDY}")
    for key, result in results.items():
        if expected := _fault(key, result):
            raise FormatError(f"{path}: {key}: expected {expected}, got {result!s:.60}; {REMEDY}")
    return results


def _fault(key: str, result: Any) -> str:  # noqa: ANN401 - anything that JSON holds
    """What was expected of an entry of the file and is not so; empty if the entry is valid."""
    if len(key.split("/")) != 3:
        return "a key of the form task/row/seed"
    if not isinstance(result, dict):
        return "an object with a score"
    if "score" not in result:
        return ""
    score, encoders, perplexities = result["score"], result.get("encoders", []), result.get("perplexities", {})
    mixes = result.get("mixes", {})
    first_mixes = mixes.get("input", []) if isinstance(mixes, dict) else None
    if not _is_number(score) or not 0 <= score <= 1:
        return "a score from 0 to 1"
    if not isinstance(encoders, list) or not all(isinstance(each, dict) and "fingerprint" in each for each in encoders):
        return "encoders as a list of objects with a fingerprint"
    if not isinstance(first_mixes, list) or not all(map(_is_mix, first_mixes)):
        return "mixes with an input list of objects with weights and gamma"
    if not isinstance(perplexities, dict) or not all(_are_numbers(each, 2) for each in perplexities.values()):
        return "perplexities as [before, after] by text"
    return "perplexities beside tuned_from" if "tuned_from" in result and not perplexities else ""


def _is_mix(value: Any) -> bool:  # noqa: ANN401 - anything that JSON holds
    return isinstance(value, dict) and _are_numbers(value.get("weights")) and _is_number(value.get("gamma"))


def _are_numbers(value: Any, count: int | None = None) -> bool:  # noqa: ANN401 - anything that JSON holds
    return isinstance(value, list) and all(map(_is_number, value)) and count in (None, len(value))


def _is_number(value: Any) -> bool:  # noqa: ANN401 - anything that JSON holds
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def results_of_model(results: dict[str, dict[str, Any]], fingerprint: str) -> Results:
    """Scores in per cent by task and row, of one model and of the baseline without it, and its learned mixes.

    If a model was tuned from it, also the perplexities before and after. An error if no fit is of this model.
    """
    scores: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    mixes: defaultdict[str, list[Any]] = defaultdict(list)
    perplexities: dict[str, list[float]] = {}
    own = 0
    for key in sorted(results):
        task, row, result = *key.split("/")[:2], results[key]
        encoder = result.get("encoders", [])[:1]  # word vectors, which every fit has beside the encoder, come after it
        of_model = any(each["fingerprint"] == fingerprint for each in encoder)
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
        raise ConfigError("The file of task results has no fits of this model (no entry has its fingerprint).")
    return {
        "scores": {task: dict(rows) for task, rows in scores.items()},
        "mixes": dict(mixes),
        "fits": own,
        "perplexities": perplexities,
    }


def mean(values: list[float]) -> float:
    """Mean score over random seeds."""
    return statistics.mean(values)


def difference(first: list[float], second: list[float]) -> tuple[float, float]:
    """Difference of two mean scores and its standard error over seeds, which is infinite for a single seed."""
    if min(len(first), len(second)) < 2:
        return mean(first) - mean(second), math.inf
    error = math.sqrt(statistics.variance(first) / len(first) + statistics.variance(second) / len(second))
    return mean(first) - mean(second), error


class TaskComparison(NamedTuple):
    """Scores of one task over random seeds, fitted in two ways."""

    task: str
    before: list[float]
    after: list[float]

    @property
    def gain(self) -> float:
        """Difference of the two mean scores, in points."""
        return mean(self.after) - mean(self.before)

    def __str__(self) -> str:
        error = difference(self.after, self.before)[1]
        margin = (
            f"two standard errors: {2 * error:.1f}" if math.isfinite(error) else "a single seed, so not significant"
        )
        return f"{task_title(self.task)} {self.gain:+.1f} points ({margin})"

    def row(self) -> tuple[str, str, str, str]:
        """Cells of a table: the task, both scores, and the gain."""
        scores = mean_and_deviation(self.before), mean_and_deviation(self.after)
        return task_title(self.task), *scores, f"{self.gain:+.1f}"


def compare_rows(scores: Mapping[str, Mapping[str, list[float]]], before: str, after: str) -> list[TaskComparison]:
    """Compare two rows of the results in every task that has both."""
    both = {task: rows for task, rows in scores.items() if rows.get(before) and rows.get(after)}
    return [TaskComparison(task, rows[before], rows[after]) for task, rows in both.items()]


def mean_and_deviation(values: list[float] | None) -> str:
    """Mean ± standard deviation over seeds as a table cell."""
    if not values:
        return "–"
    deviation = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{mean(values):.1f}{deviation}"


def task_title(task: str) -> str:
    """The name of a task in plain words."""
    return TITLES.get(task, task)
