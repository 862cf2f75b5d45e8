"""Small inputs of `polyseme report`: a folder of labelled data sets (``--data``) and task results (``--tasks``)."""

import json
import lzma
from itertools import product
from pathlib import Path
from typing import Any

SUBJECTS = ("I", "They")
VERBS = (("walk", "walked"), ("see", "saw"))
OBJECTS = ("the boat", "my old book")
SAME = ("put", "read")
AMBIGUOUS = ("bat", "bow", "crane", "draft", "mole", "pitch", "pool", "seal", "spring")
UPOS = {"the": "DET", "a": "DET", "my": "DET", "old": "ADJ", ".": "PUNCT", "yesterday": "ADV", "often": "ADV"}


def make_data(folder: Path) -> Path:
    """Write all data sets that the report uses."""
    _grammar(folder / "pos-ud-ewt")
    _names(folder / "ner-wnut17")
    _senses(folder / "wsd")
    _write(folder / "sentiment-sst/stsa.binary.train", _rated(40))
    _write(folder / "sentiment-sst/stsa.binary.test", _rated(20))
    for name in ("train", "dev"):
        lines = [f"bank\tN\t{2}-{3}\tby the bank we sat\tmoney in the bank" for _ in range(12)]
        _write(folder / f"wic/{name}.data.txt", lines)
        _write(folder / f"wic/{name}.gold.txt", ["T", "F"] * 6)
    for name in ("EN-WS-353-ALL.txt", "EN-SIMLEX-999.txt", "EN-MEN-TR-3k.txt"):
        _write(folder / "similarity" / name, ["boat ship 9", "boat letter 1", "house home 8", "book money 2"])
    articles = [
        f" = Boat {n} = \n\n The river bank of the {n} @-@ year old boat sat on it . He sat .\n" for n in range(4)
    ]
    _write(folder / "lm-wikitext103/wiki.valid.tokens", articles)
    return folder


def _grammar(folder: Path) -> None:
    for name, times in (("train", 2), ("dev", 1), ("test", 1)):
        blocks = []
        verbs = (*VERBS, *((verb, verb) for verb in SAME))
        for number, (subject, verb, thing, past) in enumerate(product(SUBJECTS, verbs, OBJECTS * times, (0, 1))):
            words = [subject, verb[past], *thing.split(), "yesterday" if past else "often", "."]
            rows = [_row(place, word, verb, past) for place, word in enumerate(words)]
            start = [f"# newdoc id = {number}"] if number % 5 == 0 else []
            blocks.append("\n".join([*start, *rows, "", ""]))
        text = "".join(blocks)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"en_ewt-ud-{name}.conllu.xz").write_bytes(lzma.compress(text.encode()))


def _row(place: int, word: str, verb: tuple[str, str], past: int) -> str:
    upos, feats, role = UPOS.get(word, "NOUN"), "_", "obj"
    if place == 0:
        upos, role = "PRON", "nsubj"
    elif place == 1:
        upos, role, feats = "VERB", "root", f"Tense={'Past' if past else 'Pres'}|VerbForm=Fin"
    lemma = verb[0] if place == 1 else word
    return "\t".join([str(place + 1), word, lemma, upos, "_", feats, "0", role, "_", "_"])


def _names(folder: Path) -> None:
    lines = []
    for place in ("Paris", "London", "Rome"):
        lines += [
            "We\tO",
            "saw\tO",
            f"{place}\tB-location",
            "<b>\tO",
            "",
            "Anna\tB-person",
            "Lee\tI-person",
            "sat\tO",
            "",
        ]
    _write(folder / "wnut17train.conll", lines)
    _write(folder / "emerging.test.annotated", lines[:18])


def _senses(folder: Path) -> None:
    river, money = "bank%1:17:01::", "bank%1:14:00::"
    records = []
    for word, number in product(("bank", *AMBIGUOUS), range(5)):
        for sense, text in (
            (river, f"water at the {word} and boat {number}"),
            (money, f"money in the {word} and loan {number}"),
        ):
            key = sense.replace("bank", word)
            records.append(json.dumps({"tokens": text.split(), "senses": [{"i": 3, "key": key}]}))
    (folder / "raganato/demo").mkdir(parents=True)
    (folder / "semcor.jsonl.xz").write_bytes(lzma.compress("\n".join(records).encode()))
    index = "".join(
        f"{key.replace('bank', word)} 0921356{rank} {rank} 25\n"
        for word in ("bank", *AMBIGUOUS)
        for rank, key in enumerate((river, money), start=1)
    )
    (folder / "wordnet-3.0-index.sense.xz").write_bytes(lzma.compress(index.encode()))
    wf = "<wf>{}</wf>".format
    instance = '<instance id="d0.s0.t0" lemma="bank" pos="NOUN">bank</instance>'
    sentence = f'<sentence id="d0.s0">{wf("loan")}{wf("at")}{wf("the")}{instance}</sentence>'
    _write(folder / "raganato/demo/demo.data.xml", [f'<corpus><text id="d0">{sentence}</text></corpus>'])
    _write(folder / "raganato/demo/demo.gold.key.txt", [f"d0.s0.t0 {money}"])


def _rated(count: int) -> list[str]:
    return [f"{n % 2} a {'good' if n % 2 else 'bad'} film number {n}" for n in range(count)]


def _write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", "utf-8")


def make_task_results(fingerprint: str = "mine", **scores: dict[str, list[float]]) -> dict[str, dict[str, Any]]:
    """Results of fitted tasks as `benchmarks/tasks.py` stores them, from scores by task, row and seed."""
    encoders = {"glove": []}
    return {
        f"{task}/{row}/{seed}": {
            "score": score,
            "encoders": encoders.get(row.partition("@")[0], [{"name": "elmo", "fingerprint": fingerprint}]),
            "mixes": {"input": [{"weights": [0.2, 0.5, 0.3], "gamma": 1.5}]} if row == "elmo" else {},
        }
        for task, rows in scores.items()
        for row, seeds in rows.items()
        for seed, score in enumerate(seeds)
    }
