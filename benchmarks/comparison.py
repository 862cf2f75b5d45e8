"""The README's table: the model that ships beside all-MiniLM-L6-v2 and the published figures of the original ELMo.

    python benchmarks/comparison.py               # print the table
    python benchmarks/comparison.py --readme      # and put it into README.md

Nothing is measured here. The figures are those of docs/models/english.json (benchmarks/english.py), of the other files
in benchmarks/results, and, with their sources, of `comparison.json` there. After a new model, measure again:

    python benchmarks/speed.py --sizes english --subjects exact int8 minilm --threads 1 \
        --json benchmarks/results/speed-english.json
    polyseme probe english --train en_ewt-ud-dev.conllu.xz --test en_ewt-ud-test.conllu.xz --inverse-penalty 0.01 \
        --no-control --json benchmarks/results/probe-english.json        # probe-minilm.json: the same with MiniLM
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
MARKS = ("<!-- comparison: written by benchmarks/comparison.py -->", "<!-- end of comparison -->")
WITHOUT_SEMEVAL2007 = "ALL but semeval2007"  # as in the ELMo paper
Row = tuple[str, str, str, str]  # what, the model that ships, MiniLM, ELMo


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text("utf-8"))


def table() -> str:
    """All rows, in Markdown."""
    title = ("", "polyseme's English model", "all-MiniLM-L6-v2", "ELMo (2018), published")
    rows = [title, ("---",) * 4, *rows_of_table()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def rows_of_table() -> list[Row]:
    told = read(RESULTS / "comparison.json")
    card = read(ROOT / "docs" / "models" / "english.json")["parts"]
    tasks = read(RESULTS / "tasks.json")
    size = f"{card['files']['result']['total'] / 1e6:.0f} MB, with its language model"
    return [
        ("size of the files", size, megabytes(told["minilm"]["bytes"]), megabytes(told["elmo"]["bytes"])),
        speed(read(RESULTS / "speed-english.json")),
        ("names: WNUT-17, F1", *fits(tasks, "wnut17"), "–"),
        ("parts of speech: UD-EWT, linear probe, %", *map(probe, ("english", "minilm")), "–"),
        ("word senses: all-words WSD, F1", senses(card), told["minilm"]["wsd"], told["elmo"]["wsd"]),
        ("sentiment: SST-5, accuracy, %", *fits(tasks, "sst5"), told["elmo"]["sst5"]),
        ("word similarity: SimLex-999, Spearman's ρ", told["english"]["simlex"], told["minilm"]["simlex"], "–"),
    ]


def megabytes(size: int) -> str:
    return f"{size / 1e6:.0f} MB"


def speed(results: dict[str, Any]) -> Row:
    """Words per second of processor time with one thread, which is what one idle core does."""
    rows = [row for row in results["rows"] if row["file"] != "HDF5"]
    found = {row["subject"]: f"{round(row['words_per_cpu_second'], -1):,.0f}" for row in rows}
    ours = f'{found["exact"]}; {found["int8"]} with `precision="int8"`'
    return "words per second on one CPU core", ours, found["minilm"], "–"


def fits(tasks: dict[str, Any], task: str) -> tuple[str, str]:
    """Mean and deviation over seeds: a learned mix of all layers, of ours and of MiniLM."""
    return spread(tasks, f"{task}/elmo/"), spread(tasks, f"{task}/bert-weighted-sum-all/")


def spread(tasks: dict[str, Any], key: str) -> str:
    scores = [100 * fit["score"] for name, fit in tasks.items() if name.startswith(key)]
    return f"{statistics.mean(scores):.1f} ± {statistics.stdev(scores):.1f}"


def probe(name: str) -> str:
    """The best single layer."""
    layers = [row for row in read(RESULTS / f"probe-{name}.json")["layers"] if row["layer"] != "joined"]
    return f"{100 * max(row['accuracy'] for row in layers):.1f}"


def senses(card: dict[str, Any]) -> str:
    layers = [method for method in card["wsd"]["result"]["methods"] if method["layer"] is not None]
    scores = [score["f1"] for layer in layers for score in layer["scores"] if score["name"] == WITHOUT_SEMEVAL2007]
    return f"{100 * max(scores):.1f}"


def insert(page: str) -> str:
    """A page with the table between its marks."""
    before, _, rest = page.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    if not rest or not after:
        raise SystemExit(f"the page has no place for the table: the lines {' and '.join(MARKS)}")
    return f"{before}{MARKS[0]}\n\n{table()}\n\n{MARKS[1]}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readme", action="store_true", help="put the table into README.md")
    readme = ROOT / "README.md"
    if parser.parse_args().readme:
        readme.write_text(insert(readme.read_text("utf-8")), "utf-8")
    print(table())


if __name__ == "__main__":
    main()
