"""Results of speed.py as Markdown tables, to be read in a terminal or put into docs/performance.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

NAMES = {
    "exact": "polyseme, fp32",
    "int8": "polyseme, int8",
    "torch": "polyseme, plain torch",
    "allennlp": "AllenNLP 2.10.1",
    "allennlp-sorted": "AllenNLP, sorted by length",
    "minilm": "all-MiniLM-L6-v2",
    "bert-base": "BERT-base size",
}
GROWTH = {
    "length": "words a sentence",
    "word_budget": "word_budget",
    "words": "words in all, cold start",
    "threads": "threads",
}
Row = dict[str, Any]


def report(results: dict[str, Any]) -> str:
    """All tables there are results for."""
    parts = [describe(results), speed_table(results), latency_table(results), *scaling_tables(results)]
    parts += [f"Not measured: {line}" for line in results["skipped"]]
    parts += [f"Failed: {line}" for line in results["failed"]]
    return "\n\n".join(filter(None, parts))


def describe(results: dict[str, Any]) -> str:
    """What was measured, where and when."""
    machine, text = results["machine"], results["text"]
    rates = ", ".join(f"{name.replace('_', ' ')} {rate:,.0f}" for name, rate in machine["rates"].items())
    return (
        f"{results['date']}, commit {results['commit']}, {machine['name']}, {machine['threads']} threads of "
        f"{machine['cores']} cores, Python {machine['python']}, torch {machine['torch']}, load {machine['load']:.1f}.\n"
        f"{text['name']}: {text['sentences']:,} sentences, {text['words']:,} words, {text['distinct']:,} distinct.\n"
        f"Large products, billions of operations a second: {rates}.\n"
        f"Memory with no model open: {machine['imports_mib']:.0f} MiB."
    )


def speed_table(results: dict[str, Any]) -> str:
    """Words a second, ratios, memory."""
    rows, base = results["rows"], results["base"]
    if not rows:
        return ""
    others = [name for name in ("minilm", "bert-base") if find(rows, name)]
    header = ["", "model", "file", "words/s", f"× {NAMES[base]}", *(f"× {NAMES[name]}" for name in others)]
    header += ["of the matrix rate", "peak MiB", "first opened in", "runs"]
    lines = [
        [
            NAMES[row["subject"]],
            row["size"],
            row["file"],
            f"{row['words_per_second']:,.0f}",
            ratio(row, find(rows, base, row["size"])),
            *(ratio(row, find(rows, name)) for name in others),
            f"{row['share']:.0%}" if row.get("share") else "",
            f"{row['peak_mib']:,.0f}",
            f"{row['opened_in']:.1f} s",
            str(len(row["runs"])),
        ]
        for row in rows
    ]
    return table(header, lines)


def latency_table(results: dict[str, Any]) -> str:
    """Milliseconds for one sentence."""
    rows = [row for row in results["rows"] if row.get("latency")]
    header = ["one sentence, ms", "model", "words", "cold", "95 %", f"× {NAMES[results['base']]}", "warm", "95 %"]
    lines = []
    for row in rows:
        base = find(rows, results["base"], row["size"])
        for length, cold in row["latency"]["cold"].items():
            warm = row["latency"].get("warm", {}).get(length)
            theirs = base and base["latency"]["cold"].get(length)
            line = [NAMES[row["subject"]], row["size"], length, *milliseconds(cold)]
            line.append(f"{theirs['median_ms'] / cold['median_ms']:.1f}" if theirs else "")
            lines.append([*line, *milliseconds(warm)])
    return table(header, lines) if lines else ""


def scaling_tables(results: dict[str, Any]) -> Iterable[str]:
    """Words a second against one thing at a time, a column a model."""
    series = results.get("scaling") or []
    for kind, title in GROWTH.items():
        if any(one[kind] for one in series):
            header = [title, *(f"{one['size']}, {'int8' if one['subject'] == 'int8' else 'fp32'}" for one in series)]
            steps = zip(*(one[kind] for one in series), strict=True)
            lines = [[f"{cells[0]['value']:,}", *(growth_cell(kind, cell) for cell in cells)] for cells in steps]
            yield table(header, lines)


def growth_cell(kind: str, cell: Row) -> str:
    speed = f"{cell['words_per_second']:,.0f}"
    return f"{speed} ({cell['hit_rate']:.0%} known)" if kind == "words" else speed


def find(rows: Sequence[Row], subject: str, size: str | None = None) -> Row | None:
    """The first row of a subject."""
    return next((row for row in rows if row["subject"] == subject and size in (None, row["size"])), None)


def ratio(row: Row, base: Row | None) -> str:
    return f"{row['words_per_second'] / base['words_per_second']:.2f}" if base else ""


def milliseconds(found: Row | None) -> list[str]:
    return [f"{found['median_ms']:.1f}", f"{found['p95_ms']:.1f}"] if found else ["", ""]


def table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Markdown with its columns in line: words to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    numbers = [all(not cell or cell[0].isdigit() for cell in column) for column in zip(*lines, strict=True)]
    rule = ["-" * (width + 1) + (":" if number else "-") for width, number in zip(widths, numbers, strict=True)]
    shown = [
        " | ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(line, widths, numbers, strict=True)
        )
        for line in (header, *lines)
    ]
    return "\n".join([f"| {shown[0]} |", f"|{'|'.join(rule)}|", *(f"| {line} |" for line in shown[1:])])
