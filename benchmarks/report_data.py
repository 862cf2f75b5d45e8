"""Derive the labelled text that ships in polyseme/report/data from the published data sets.

    python benchmarks/report_data.py --data EVAL

`polyseme/report/data/README.md` names the sources and their licences. What is taken depends on the files alone, never
on a model: whole documents, evenly spaced, until there are enough sentences. The verbs of claim 2 are rare, so all
other sentences of UD-EWT with one of them are added, as the file of the dev part. Columns that the report does not read
are emptied. The sentences of `two-meanings` were written by hand.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

HERE = Path(__file__).parent
SHARED = HERE.parent.parent / "shared" / "eval"
TARGET = HERE.parent / "polyseme/report/data"

EWT = {"train": 900, "dev": 0, "test": 800}  # sentences in whole documents
NAMES = {"dev": 900, "test": 900}
SUPERSENSES = 450  # sentences of each part
ARTICLES, LONGEST = 11_000, 2_000  # words in all, and of an article
SAME_IN_PAST = re.compile(
    r"\t(put|read|cut|set|hit)\t[^\t]*\tVERB\t[^\t]*\t[^\t]*Tense=(Past|Pres)\|VerbForm=Fin", re.I
)
UNUSED = (4, 6, 8, 9)  # xpos, head, deps, misc
NOUNS = """top act animal artifact attribute body cognition communication event feeling food group location motive
object person phenomenon plant possession process quantity relation shape state substance time"""
VERBS = """body change cognition communication competition consumption contact creation emotion motion perception
possession social stative weather"""  # WordNet's lexicographer files, 3 to 28 and 29 to 43
CATEGORIES = [*(f"noun.{name}" for name in NOUNS.split()), *(f"verb.{name}" for name in VERBS.split())]

Document = list[str]  # the blocks of its sentences


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SHARED)
    data = parser.parse_args().data
    rest: Document = []
    for part, count in EWT.items():
        documents = read_documents(data / f"pos-ud-ewt/en_ewt-ud-{part}.conllu.xz", grammar_row)
        kept = evenly_spaced(documents, count)
        if kept:
            store(f"pos-ud-ewt/en_ewt-ud-{part}.conllu.xz", kept)
        rest += [block for each in documents if each not in kept for block in each if SAME_IN_PAST.search(block)]
    store("pos-ud-ewt/en_ewt-ud-dev.conllu.xz", [rest])
    for part, count in NAMES.items():
        documents = read_documents(data / f"ner-uner/en_ewt-ud-{part}.iob2.xz", name_row, marks=False)
        store(f"ner-uner/en_ewt-ud-{part}.iob2.xz", evenly_spaced(documents, count))
    documents = read_supersenses(data / "wsd/semcor.jsonl.xz")
    store("supersenses/train.conll.xz", evenly_spaced(documents[::2], SUPERSENSES, longest=4))
    store("supersenses/test.conll.xz", evenly_spaced(documents[1::2], SUPERSENSES, longest=4))
    articles = short_articles(data / "lm-wikitext103/wiki.valid.tokens")
    write(TARGET / "lm-wikitext103/wiki.valid.tokens.xz", articles)


def evenly_spaced(documents: list[Document], count: int, longest: int | None = None) -> list[Document]:
    """Documents spread over the file with about ``count`` sentences, or the first ``longest`` sentences of each."""
    documents = [document[:longest] for document in documents]
    if not count:
        return []
    step = max(1.0, sum(map(len, documents)) / count)
    places = sorted({int(number * step) for number in range(int(len(documents) / step) + 1)})
    return [documents[place] for place in places if place < len(documents)]


def read_documents(path: Path, row: Callable[[list[str]], str], marks: bool = True) -> list[Document]:
    documents: list[Document] = []
    for block in lzma.decompress(path.read_bytes()).decode().split("\n\n"):
        lines = block.strip("\n").split("\n")
        new = next((line for line in lines if line.startswith("# newdoc")), None)
        rows = [row(line.split("\t")) for line in lines if line[:1].isdigit() and line.split("\t")[0].isdigit()]
        if not rows:
            continue
        if new or not documents:
            documents.append([])
        documents[-1].append("\n".join([*([new] if new and marks else []), *rows]))
    return documents


def grammar_row(fields: list[str]) -> str:
    return "\t".join("_" if place in UNUSED else field for place, field in enumerate(fields))


def name_row(fields: list[str]) -> str:
    return f"{fields[1]}\t{fields[2]}"


def read_supersenses(path: Path) -> list[Document]:
    """Documents of SemCor with WordNet's category of each noun and verb: ``noun.person``; names and the rest have O."""
    records = map(json.loads, lzma.decompress(path.read_bytes()).decode().splitlines())
    documents = []
    for _, group in groupby(records, key=lambda record: record["doc"]):
        documents.append(["\n".join(supersense_rows(record)) for record in group])
    return documents


def supersense_rows(record: dict[str, object]) -> Iterator[str]:
    labels = {}
    for tag in record["senses"]:
        digit, number = re.match(r".*%(\d):(\d+):", tag["key"]).groups()
        if digit in "12" and tag["pos"] != "NNP" and tag.get("n", 1) == 1:
            labels[tag["i"]] = CATEGORIES[int(number) - 3]
    for place, token in enumerate(record["tokens"]):
        for word in token.split("_") if len(token) > 1 else [token]:
            if word:
                yield f"{word}\t{labels.get(place, 'O') if '_' not in token else 'O'}"


def short_articles(path: Path) -> str:
    """The first short articles, because an interval over documents needs many of them."""
    articles = re.split(r"(?m)^(?= = [^=].*[^=] = \n)", path.read_text("utf-8"))
    kept: list[str] = []
    for article in (each for each in articles if 0 < len(each.split()) <= LONGEST):
        if sum(len(each.split()) for each in kept) < ARTICLES:
            kept.append(article)
    return "".join(kept)


def store(name: str, documents: list[Document]) -> None:
    blocks = [block for document in documents for block in document]
    write(TARGET / name, "\n\n".join(blocks) + "\n\n")
    print(
        f"{name}: {len(documents)} documents, {len(blocks)} sentences, {sum(b.count(chr(10)) + 1 for b in blocks)} rows"
    )


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    main()
