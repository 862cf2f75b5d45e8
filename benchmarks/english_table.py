"""The figures of the English model as a Markdown table, beside the targets that were set before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

FIGURES, LEANINGS = "figures", "leanings"  # the places of a page that are written here
TIMED = ("start", "demo")  # parts whose figures are seconds
Row = tuple[str, str, str]  # what, the figure, the target


def table(results: dict[str, Any]) -> str:
    """All that was measured, in Markdown."""
    parts = results["parts"]
    rows = [row for name, make in _ROWS.items() if name in parts for row in make(parts[name]["result"])]
    lines = ["| | measured | target |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows)]
    told = [f"{name} {how['seconds']:,.0f} s" for name, how in parts.items()]
    where = sorted({how["processor"] for name, how in parts.items() if name in TIMED and "processor" in how})
    machine = f"; times on {', '.join(where)}" if where else ""
    source = f"(`benchmarks/english.py`, weights {results['weights'][:12]}{machine}; {', '.join(told)}.)"
    return "\n".join([*lines, "", source])


def leanings_table(results: dict[str, Any]) -> str:
    """How much likelier "he" is than "she", or the other way, for each occupation."""
    found = results["parts"].get("leanings", {"result": {"occupations": {}}})["result"]["occupations"]
    ratios = {occupation: shares["he"] / max(shares["she"], 1e-12) for occupation, shares in found.items()}
    ordered = sorted(ratios.items(), key=lambda item: item[1])
    cells = [f"{ratio:.1f} he to 1 she" if ratio >= 1 else f"1 he to {1 / ratio:.1f} she" for _, ratio in ordered]
    rows = [f"| {occupation} | {cell} |" for (occupation, _), cell in zip(ordered, cells, strict=True)]
    return "\n".join(["| | expected |", "|---|---|", *rows]) if rows else ""


def insert(card: Path, place: str, text: str) -> None:
    """Put a table between the markers of a page."""
    page, marks = (
        card.read_text("utf-8"),
        (f"<!-- {place}: written by benchmarks/english.py -->", f"<!-- end of {place} -->"),
    )
    before, begin, rest = page.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not (begin and end):
        raise SystemExit(f"{card} has no place for the {place}: the lines {' and '.join(marks)}")
    card.write_text("\n\n".join([f"{before}{begin}", *([text] if text else []), f"{end}{after}"]), "utf-8")


def _files(result: dict[str, Any]) -> Iterator[Row]:
    yield "size of all files", f"{result['total'] / 1e6:.1f} MB", "≤ 45 MB"


def _start(result: dict[str, Any]) -> Iterator[Row]:
    how = f"{result['threads']} threads, torch's import aside"
    yield f"`polyseme.load()`, {how}", f"{result['load']:.2f} s", "≤ 1 s"
    yield f"the first sentence, {how}", f"{result['first_sentence']:.2f} s", "≤ 1.5 s"


def _demo(result: dict[str, Any]) -> Iterator[Row]:
    yield f"`polyseme demo` with its picture, {result['threads']} threads", f"{result['seconds']:.1f} s", "≤ 30 s"


def _perplexity(result: dict[str, Any]) -> Iterator[Row]:
    where = "Wikipedia, held-out"
    yield from _states(result, where, {"carried": "≤ 44, aim 36", "fresh": "≤ 60, aim 48"})


def _wikitext(result: dict[str, Any]) -> Iterator[Row]:
    yield from _states(result, "WikiText-103, valid", {"carried": "–", "fresh": "–"})


def _states(result: dict[str, Any], where: str, bars: dict[str, str]) -> Iterator[Row]:
    if result["documents_asked"]:
        where += f", first {result['documents_asked']} documents"
    for state, bar in bars.items():
        one = result[state]
        ways = " and ".join(f"{one[way]:.1f} {way}" for way in ("forward", "backward") if one[way])
        yield f"perplexity, {where}, state {state}", f"**{one['both']:.2f}** ({ways})", bar
        yield f"bits per character, {where}, state {state}", f"{one['bits_per_character']:.3f}", "–"
    text = result["fresh"]
    counts = f"{text['tokens']:,} in {text['documents']:,} documents, {100 * text['unknown']:.2f} %"
    yield f"tokens of {where}, share not among the {result['known_words']:,} known words", counts, "–"


def _pos(result: dict[str, Any]) -> Iterator[Row]:
    shares = {str(row["layer"]): 100 * row["accuracy"] for row in result["layers"]}
    joined = shares.pop("joined", None)
    best = max((layer for layer in shares if layer != "0"), key=shares.__getitem__, default="0")
    what = "linear probe for POS, UD-EWT test"
    each = ", ".join(f"layer {layer} {share:.2f}" for layer, share in shares.items())
    yield f"{what}, best contextual layer ({best})", f"**{shares[best]:.2f}** ({each})", "≥ 95.0"
    yield f"{what}, above the context-free layer", f"{shares[best] - shares['0']:+.2f}", "≥ 5"
    if joined is not None:
        yield f"{what}, all layers joined", f"**{joined:.2f}**", "≥ 95.6"


def _wsd(result: dict[str, Any]) -> Iterator[Row]:
    f1 = {m["name"]: 100 * s["f1"] for m in result["methods"] for s in m["scores"] if s["name"] == "ALL"}
    first = f1.pop("WordNet's first sense")
    f1.pop("most frequent in training")
    best = max(f1, key=f1.__getitem__)
    each = ", ".join(f"{layer} {share:.1f}" for layer, share in f1.items())
    yield f"word senses, F1 on ALL, {best}", f"**{f1[best]:.1f}** ({each})", f"≥ {first + 1:.1f}, aim 69.0"
    yield "word senses, F1 on ALL, first sense alone", f"{first:.1f}", "–"


def _wic(result: dict[str, Any]) -> Iterator[Row]:
    for row in result["layers"]:
        figure = f"{100 * row['accuracy']:.1f} ({100 * row['low']:.1f} to {100 * row['high']:.1f})"
        yield f"word in context, dev, layer {row['layer']}, with its 95 % interval", figure, "–"


def _similarity(result: dict[str, Any]) -> Iterator[Row]:
    layers = list(dict.fromkeys(str(row["layer"]) for row in result["rows"]))
    sets = list(dict.fromkeys(row["name"] for row in result["rows"]))
    found = {(row["name"], str(row["layer"])): 100 * row["spearman_all"] for row in result["rows"]}
    for name in sets:
        best = max(layers, key=lambda layer: found[name, layer])
        each = ", ".join(f"layer {layer} {found[name, layer]:.1f}" for layer in layers)
        yield f"word similarity, {name}, rank correlation, layer {best}", f"**{found[name, best]:.1f}** ({each})", "–"
    means = {layer: sum(found[name, layer] for name in sets) / len(sets) for layer in layers}
    best = max(means, key=means.__getitem__)
    yield f"word similarity, mean of the sets, layer {best}", f"**{means[best]:.1f}**", "–"


def _sentiment(result: dict[str, Any]) -> Iterator[Row]:
    shares = {row["layer"]: 100 * row["accuracy"] for row in result["layers"]}
    best = max(result["layers"], key=lambda row: row["dev"])["layer"]
    each = ", ".join(f"{layer} {share:.1f}" for layer, share in shares.items())
    yield f"SST-2, linear on the mean of the words, layer {best}", f"**{shares[best]:.1f}** ({each})", "–"


def _spelling(result: dict[str, Any]) -> Iterator[Row]:
    kinds = {"forms": ("regular forms", "≥ 70"), "misspellings": ("misspellings", "≥ 50")}
    for score in result["scores"]:
        name, bar = kinds[score["kind"]]
        what = f"{score['count']} {name} never seen, origin among the {result['nearest']} nearest, {score['metric']}"
        figure = f"{100 * score['share']:.1f} ({100 * score['low']:.1f} to {100 * score['high']:.1f})"
        yield what, figure, bar


_ROWS = {
    "files": _files,
    "start": _start,
    "demo": _demo,
    "perplexity": _perplexity,
    "wikitext": _wikitext,
    "pos": _pos,
    "wsd": _wsd,
    "wic": _wic,
    "spelling": _spelling,
    "similarity": _similarity,
    "sentiment": _sentiment,
}
