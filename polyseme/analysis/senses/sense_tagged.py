"""Sense-tagged corpora and the sense inventory: SemCor, the unified all-words test sets, WordNet's ``index.sense``.

A sense has WordNet's sense key, ``bank%1:17:01::``: the lemma, a number for the part of speech, and which sense.
Multiword units (``took_place``) are split, since models read words; a tag then covers several of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from polyseme.errors import FormatError, InputError
from polyseme.text.corpus import explain_read_errors, open_bytes, open_text

Lemma = tuple[str, str]  # with its part of speech: n, v, a or r

_BY_DIGIT = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}  # 5 is a satellite adjective
_BY_NAME = {"NOUN": "n", "VERB": "v", "ADJ": "a", "ADV": "r"}
_MARKS = re.compile(
    r"\((?:a|p|ip)\)"
)  # syntactic markers of adjectives: left in some keys of SemCor, never in WordNet's


@dataclass(frozen=True)
class Tag:
    """A sense tag: a word or multiword unit with its sense keys, any of which the annotators allow."""

    lemma: Lemma
    first: int
    last: int  # the place after its last word
    keys: tuple[str, ...]
    name: str = ""


@dataclass(frozen=True)
class TaggedSentence:
    """A sentence with sense tags on some of its words."""

    words: tuple[str, ...]
    tags: tuple[Tag, ...]


class Inventory:
    """The sense inventory: all senses, and which one WordNet lists first.

    Args:
        ranks: For each key the number of the sense among those of its lemma, from 1.
    """

    def __init__(self, ranks: Mapping[str, int]) -> None:
        self.ranks = ranks
        self._first: dict[Lemma, str] = {}
        for key, rank in ranks.items():
            lemma = lemma_of(key)
            if lemma not in self._first or rank < ranks[self._first[lemma]]:
                self._first[lemma] = key

    def __contains__(self, key: str) -> bool:
        return key in self.ranks

    def first_sense(self, lemma: Lemma) -> str | None:
        """The sense that WordNet lists first, usually the most frequent one."""
        return self._first.get(lemma)


def lemma_of(key: str) -> Lemma:
    """The lemma and part of speech in a sense key."""
    lemma, _, rest = key.partition("%")
    if not lemma or rest[:1] not in _BY_DIGIT:
        raise FormatError(f"{key!r} is not a sense key; expected one like 'bank%1:17:01::'")
    return lemma, _BY_DIGIT[rest[0]]


def read_inventory(path: str | Path) -> Inventory:
    """Read WordNet's ``index.sense``: on each line a sense key, its synset, its number and its count."""
    ranks: dict[str, int] = {}
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            fields = line.split()
            if len(fields) != 4 or "%" not in fields[0] or not fields[2].isdigit():
                raise FormatError(f"{path}: line {number} is not a line of WordNet's index.sense: {line!r:.60}")
            ranks[fields[0]] = int(fields[2])
    if not ranks:
        raise FormatError(f"{path}: no senses in there; expected WordNet's index.sense")
    return Inventory(ranks)


def read_tagged(path: str | Path) -> Iterator[TaggedSentence]:
    """Read a sense-tagged corpus: JSON lines, or ``X.data.xml`` with its keys beside it in ``X.gold.key.txt``."""
    return _read_xml(Path(path)) if ".xml" in Path(path).suffixes else _read_lines(Path(path))


def find_sets(paths: Iterable[str | Path]) -> dict[str, Path]:
    """Find test sets by name: each ``X.data.xml``, or all below a folder.

    The set ``ALL`` repeats the others, so it is left out where they are present.
    """
    found: dict[str, Path] = {}
    for path in map(Path, paths):
        inside = sorted(path.rglob("*.data.xml")) if path.is_dir() else [path]
        if not inside:
            raise InputError(f"{path}: no test set below this folder; expected NAME.data.xml and NAME.gold.key.txt")
        found.update((file.name.split(".")[0], file) for file in inside)
    return {name: path for name, path in found.items() if name != "ALL" or len(found) == 1}


def check_gold(sentences: Iterable[TaggedSentence], inventory: Inventory, name: str) -> None:
    """Refuse a test set with sense keys that the inventory does not have."""
    keys = [key for sentence in sentences for tag in sentence.tags for key in tag.keys]
    unknown = [key for key in keys if key not in inventory]
    if not keys:
        raise InputError(f"{name}: no word in this set has a sense tag")
    if unknown:
        raise FormatError(
            f"{name}: {len(unknown):,} of {len(keys):,} sense keys are not in the inventory, such as {unknown[0]!r}; "
            "use the same version of WordNet for both"
        )


def _read_lines(path: Path) -> Iterator[TaggedSentence]:
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                tokens, tagged = _record(line)
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise FormatError(
                    f"{path}: line {number} is not a tagged sentence: {line!r:.60}; expected JSON "
                    'like {"tokens": ["He", "sat"], "senses": [{"i": 1, "key": "sit%2:35:00::"}]}'
                ) from error
            words, starts = _split_units(tokens)
            tags = [_tag(path, number, starts, *fields) for fields in tagged]
            yield TaggedSentence(tuple(words), tuple(tags))


def _record(line: str) -> tuple[list[str], list[tuple[int, int, str]]]:
    """The tokens of a line, and its tags: first token, number of tokens, sense key."""
    record = json.loads(line)
    if not isinstance(record["tokens"], list):
        raise TypeError("tokens are a list")
    tagged = [(int(tag["i"]), int(tag.get("n", 1)), str(tag["key"])) for tag in record["senses"]]
    return [str(token) for token in record["tokens"]], tagged


def _tag(path: Path, line: int, starts: list[int], token: int, count: int, joined: str) -> Tag:
    if not 0 <= token < token + count < len(starts):
        raise FormatError(f"{path}: line {line} has a tag for token {token}, but {len(starts) - 1} tokens")
    keys = _split_keys(joined)
    try:
        lemma = lemma_of(keys[0])
    except FormatError as error:
        raise FormatError(f"{path}: line {line}: {error}") from None
    return Tag(lemma, starts[token], starts[token + count], keys)


def _split_keys(joined: str) -> tuple[str, ...]:
    """The sense keys of one tag: SemCor writes two as ``year%1:28:02::;1:28:01::``."""
    first, *others = joined.split(";")
    lemma = first.partition("%")[0]
    keys = [first, *(other if "%" in other else f"{lemma}%{other}" for other in others)]
    return tuple(_MARKS.sub("", key) for key in keys)


def _read_xml(path: Path) -> Iterator[TaggedSentence]:
    gold = _read_gold(path)
    with explain_read_errors(path), open_bytes(path) as stream:
        try:
            for _, element in ElementTree.iterparse(stream):
                if element.tag == "sentence":
                    yield _sentence(path, element, gold)
                    element.clear()
        except ElementTree.ParseError as error:
            raise FormatError(f"{path}: not the XML of a sense-tagged corpus: {error}") from error


def _sentence(path: Path, element: ElementTree.Element, gold: Mapping[str, tuple[str, ...]]) -> TaggedSentence:
    tokens = list(element)
    words, starts = _split_units([token.text or "" for token in tokens])
    tags = []
    for number, token in enumerate(tokens):
        if token.tag != "instance":
            continue
        name, lemma, pos = (token.get(field, "") for field in ("id", "lemma", "pos"))
        if pos not in _BY_NAME or not lemma:
            raise FormatError(
                f"{path}: instance {name!r} needs a lemma and a pos of {', '.join(_BY_NAME)}; got {pos!r}"
            )
        if name not in gold:
            raise FormatError(f"{path}: instance {name!r} has no key in {_gold_path(path).name}")
        tags.append(Tag((lemma.lower(), _BY_NAME[pos]), starts[number], starts[number + 1], gold[name], name))
    return TaggedSentence(tuple(words), tuple(tags))


def _read_gold(path: Path) -> dict[str, tuple[str, ...]]:
    with open_text(_gold_path(path)) as lines:
        fields = [line.split() for line in lines if line.strip()]
    return {name: tuple(keys) for name, *keys in fields}


def _gold_path(path: Path) -> Path:
    return path.with_name(f"{path.name.split('.')[0]}.gold.key.txt")


def _split_units(tokens: list[str]) -> tuple[list[str], list[int]]:
    """Split multiword units at ``_`` and spaces: all words, and the place where each token starts, then the end."""
    words: list[str] = []
    starts = [0]
    for token in tokens:
        words += token.replace("_", " ").split() or [token.strip() or "_"]
        starts.append(len(words))
    return words, starts
