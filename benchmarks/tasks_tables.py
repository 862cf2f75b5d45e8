"""What tasks.py has stored, as tables and a picture in docs/tasks.md."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tasks_data import TASKS
from tasks_rows import ABLATED, BASE, ELMO, ROWS, SHARES, TUNED, Unit

MARKS = ("<!-- measured: written by benchmarks/tasks.py --tables -->", "<!-- end of measured -->")
PICTURE = "images/sample-efficiency.png"
Results = dict[str, dict[str, Any]]


def write_tables(results: Results, docs: Path) -> None:
    """Put what was measured where the page has room for it, and draw the curve."""
    page = docs / "tasks.md"
    before, rest = page.read_text("utf-8").split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    parts = [describe(results), gains(results), ablation(results), liked_layers(results), tuned(results)]
    if found(results, "wnut17", BASE, SHARES[0]):
        draw(results, docs / PICTURE)
        parts.append(efficiency(results))
    body = "\n\n".join(filter(None, parts))
    page.write_text(f"{before}{MARKS[0]}\n\n{body}\n\n{MARKS[1]}{after}", "utf-8")


def found(results: Results, task: str, row: str, share: int = 100) -> list[dict[str, Any]]:
    """The results of all seeds that there are."""
    name = Unit(task, row, 0, share).key.removesuffix("0")
    keys = [key for key in results if key.startswith(name) and key.removeprefix(name).isdecimal()]
    return [results[key] for key in sorted(keys) if "score" in results[key]]


def scores(results: Results, task: str, row: str, share: int = 100) -> list[float]:
    """In per cent, of all seeds."""
    return [100 * each["score"] for each in found(results, task, row, share)]


def spread(values: Sequence[float], digits: int = 1) -> str:
    """Mean and deviation."""
    if not values:
        return "–"
    beside = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.{digits}f}{beside}"


def describe(results: Results) -> str:
    """With what, where and when."""
    whole = [each for each in results.values() if "score" in each]
    encoders = {one["name"]: one["fingerprint"][:12] for each in whole for one in each["encoders"]}
    models = ", ".join(f"{name} ({print_})" for name, print_ in sorted(encoders.items()))
    dates = sorted({each["date"][:10] for each in whole})
    devices = sorted({each["device"] for each in whole})
    failed = [key for key, each in results.items() if "failed" in each]
    lines = [
        f"{' to '.join(dict.fromkeys((dates[0], dates[-1])))}: {len(whole)} fits on {' and '.join(devices)}, "
        f"{sum(each['seconds'] for each in whole) / 3600:.1f} hours of fits in all. Mean ± deviation over "
        f"{max(len(found(results, task, BASE)) for task in TASKS)} seeds; without a deviation, one seed. Several ran "
        f"at a time, so seconds are no measure of speed. Models and their fingerprints: {models}.",
        *([f"Failed: {', '.join(failed)}."] if failed else []),
    ]
    return re.sub(r"(.{1,118})(?: |$)", r"\1\n", " ".join(lines)).rstrip()


def gains(results: Results) -> str:
    """Every task without and with ELMo, and the mean gain."""
    rows, differences = [], []
    for name, task in TASKS.items():
        without, with_it = scores(results, name, BASE), scores(results, name, ELMO)
        if not without and not with_it:
            continue
        gain = statistics.mean(with_it) - statistics.mean(without) if without and with_it else math.nan
        differences += [] if math.isnan(gain) else [gain]
        seconds = [spread([each["seconds"] for each in found(results, name, row)], 0) for row in (BASE, ELMO)]
        said = "–" if math.isnan(gain) else f"{gain:+.1f}"
        rows.append([task.title, task.measure, spread(without), spread(with_it), said, *seconds])
    if differences:
        rows.append(["mean gain", "", "", "", f"{statistics.mean(differences):+.1f}", "", ""])
    header = ["", "", "without", "with ELMo", "gain", "seconds without", "seconds with"]
    return table(header, rows)


def ablation(results: Results) -> str:
    """Every row, for the tasks that have them all."""
    rows = [
        [row.title, *(spread(scores(results, task, name)) for task in ABLATED)]
        for name, row in ROWS.items()
        if name != "tuned" and any(found(results, task, name) for task in ABLATED)
    ]
    return table(["", *(f"{TASKS[task].title}, {TASKS[task].measure}" for task in ABLATED)], rows)


def liked_layers(results: Results) -> str:
    """The weights that the learned mix at the input came to, mean over the seeds."""
    rows, most = [], 0
    for name, task in TASKS.items():
        mixes = [each["mixes"]["input"][0] for each in found(results, name, ELMO)]
        if mixes:
            weights = [statistics.mean(each) for each in zip(*(mix["weights"] for mix in mixes), strict=True)]
            most = max(most, len(weights))
            gamma = statistics.mean(mix["gamma"] for mix in mixes)
            rows.append([task.title, *(f"{weight:.2f}" for weight in weights), f"{gamma:.2f}"])
    header = ["learned layer weights", *(f"s{number}" for number in range(most)), "γ"]
    return table(header, rows) if rows else ""


def tuned(results: Results) -> str:
    """What it is worth that the model reads on in a domain before it is used there; and the perplexities."""
    rows = [
        [TASKS[task].title, spread(scores(results, task, ELMO)), spread(scores(results, task, "tuned"))]
        for task in TUNED
        if found(results, task, "tuned")
    ]
    if not rows:
        return ""
    perplexities = found(results, TUNED[0], "tuned")[0]["perplexities"]
    for text, ends in perplexities.items():
        name = "held-out film reviews" if text == "held-out" else Path(text).stem
        rows.append([f"perplexity, {name}", *(f"{end:.1f}" for end in ends)])
    return table(["tuned on film reviews", "before", "after"], rows)


def efficiency(results: Results) -> str:
    """Scores by the share of the training set, and the picture."""
    rows = []
    for share in SHARES:
        if sizes := found(results, "wnut17", BASE, share):
            both = [spread(scores(results, "wnut17", row, share)) for row in (BASE, ELMO)]
            rows.append([f"{share} %", f"{sizes[0]['examples']:,}", *both])
    picture = f"![F1 on WNUT-17 by the size of the training set]({PICTURE})"
    return f"{table(['of WNUT-17', 'sentences', 'without', 'with ELMo'], rows)}\n\n{picture}"


def draw(results: Results, path: Path) -> None:
    """Both curves, with deviations as bars."""
    from polyseme.plots import COLOURS, LEGEND, new_figure, save_figure, tidy

    figure = new_figure(6.4, 4)
    axes = figure.subplots()
    for (row, label), colour in zip(((ELMO, "with ELMo"), (BASE, "GloVe and characters")), COLOURS, strict=False):
        values = {share: scores(results, "wnut17", row, share) for share in SHARES}
        shares = [share for share in SHARES if values[share]]
        means = [statistics.mean(values[share]) for share in shares]
        spreads = [statistics.stdev(values[share]) if len(values[share]) > 1 else 0 for share in shares]
        axes.errorbar(shares, means, spreads, color=colour, label=label, marker="o", capsize=3)
    axes.set_xscale("log")
    axes.set_xticks(SHARES, [f"{share} %" for share in SHARES])
    axes.set_xticks([], minor=True)
    axes.set_ylim(bottom=0)
    axes.legend(**LEGEND)
    tidy(axes, "WNUT-17: how much labelled text it takes", "of the training set", "F1")
    path.parent.mkdir(exist_ok=True)
    save_figure(figure, path)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows))
