"""The README's table: the model that ships beside all-MiniLM-L6-v2 and the published figures of the original ELMo.

    python benchmarks/comparison.py              # print the table
    python benchmarks/comparison.py --write      # put it into README.md, and the speeds into docs/performance.md

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
    """The row of speeds."""
    found = {name: f"{round(rate, -1):,.0f}" for name, rate in rates(results).items()}
    ours = f'{found["exact"]}; {found["int8"]} with `precision="int8"`'
    return f"words per second on one core ({processor(results)})", ours, found["minilm"], "–"


def processor(results: dict[str, Any]) -> str:
    """The processor's name without marks."""
    name = results["machine"]["name"].replace("(R)", "").replace(" Processor @", "")
    return name.partition(" (")[0]


def rates(results: dict[str, Any]) -> dict[str, float]:
    """Words per second of processor time with one thread, which is what one idle core does."""
    return {row["subject"]: row["words_per_cpu_second"] for row in results["rows"] if row["file"] != "HDF5"}


def speed_table() -> str:
    """The speeds with their ratios, in Markdown."""
    results = read(RESULTS / "speed-english.json")
    found, machine, words = rates(results), results["machine"], results["text"]
    titles = {"minilm": "all-MiniLM-L6-v2, fp32", "exact": "the English model, fp32", "int8": "the English model, int8"}
    rows = [
        f"| {title} | {round(found[name], -1):,.0f} | {found[name] / found['minilm']:.1f} |"
        for name, title in titles.items()
    ]
    where = f"{results['date'][:10]}, {processor(results)}, {machine['threads']} thread, {words['name']}"
    return "\n".join([f"| {where} | words per second | × MiniLM |", "|---|--:|--:|", *rows])


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


PAGES = {"README.md": ("comparison", table), "docs/performance.md": ("speed", speed_table)}


def insert(page: str, place: str, text: str) -> str:
    """A page with a table between the marks of its place."""
    begin, end = f"<!-- {place}: written by benchmarks/comparison.py -->", f"<!-- end of {place} -->"
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    if not rest or not after:
        raise SystemExit(f"the page has no place for the {place}: the lines {begin} and {end}")
    return f"{before}{begin}\n\n{text}\n\n{end}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the tables into the pages")
    if parser.parse_args().write:
        for name, (place, make) in PAGES.items():
            page = ROOT / name
            page.write_text(insert(page.read_text("utf-8"), place, make()), "utf-8")
    print(table())


if __name__ == "__main__":
    main()
