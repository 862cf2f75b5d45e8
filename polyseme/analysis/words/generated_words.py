"""Words that nobody has written, made by rule and by lot: what a word list lacks and a spelling may still tell.

Two kinds. *Forms* are regular English inflections and derivations of known words, with their changes of spelling
(``hazy``, ``haziness``; ``stun``, ``stunnable``). Which affix goes with a word is told by the other forms of it that
are known: a word beside which ``-ed`` and ``-ing`` are known is a verb. *Misspellings* are one edit away from a word: a
letter put in, left out, replaced, or two neighbours swapped. Nothing that is known is ever made.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

SHORTEST = 4  # letters of a word that others are made from
_BASE = re.compile(rf"[a-z]{{{SHORTEST},}}")
_CONSONANT_Y = re.compile(r"[^aeiou]y")
_DOUBLED = re.compile(r"(?:qu|[^aeiouy])*[aeiou][^aeiouwxy]")  # one syllable, a short vowel, one consonant: stun, quit
_BY_STRESS = re.compile(r".*[^aeiou][aeiou][^aeiouwxy]")  # whether others double (begin, visit) the stress decides
_ABSTRACT = ("ness", "ment", "tion", "sion", "ism", "ist", "ship", "hood", "ity", "ance", "ence")


@dataclass(frozen=True)
class GeneratedWord:
    """A word that was made, the one it was made from, and by which rule."""

    word: str
    base: str
    rule: str


class WordLists(NamedTuple):
    """What is known of words: those that tell which forms a word has, and those that must not be made."""

    telling: Collection[str]
    seen: Collection[str]


def plural(word: str) -> str | None:
    """With -s: ``box``, ``boxes``; ``city``, ``cities``. None where no rule can tell: ``hero``, ``leaf``."""
    if word.endswith(("o", "f", "fe")):
        return None
    if _CONSONANT_Y.fullmatch(word[-2:]):
        return f"{word[:-1]}ies"
    return word + ("es" if word.endswith(("s", "x", "z", "ch", "sh")) else "s")


def before_vowel(word: str, suffix: str) -> str | None:
    """With a suffix that begins with a vowel: ``make``, ``making``; ``stun``, ``stunned``; ``carry``, ``carrier``."""
    if word.endswith("e"):
        return _after_e(word, suffix)
    if _CONSONANT_Y.fullmatch(word[-2:]) and suffix[0] != "i":
        return f"{word[:-1]}i{suffix}"
    if _DOUBLED.fullmatch(word):
        return word + word[-1] + suffix
    return None if _BY_STRESS.fullmatch(word) else word + suffix


def _after_e(word: str, suffix: str) -> str:
    if word.endswith("ie") and suffix[0] == "i":
        return f"{word[:-2]}y{suffix}"
    kept = word.endswith(("ee", "oe", "ye")) and suffix[0] != "e"
    soft = word.endswith(("ce", "ge")) and suffix[0] == "a"
    return word + suffix if kept or soft else word[:-1] + suffix


def before_consonant(word: str, suffix: str) -> str:
    """With a suffix that begins with a consonant: ``hazy``, ``haziness``; ``gentle``, ``gently``."""
    if suffix == "ly" and re.fullmatch(r"[^aeiou]le", word[-3:]):
        return f"{word[:-1]}y"
    if suffix == "ly" and word.endswith("ic"):
        return f"{word}ally"
    if suffix == "ly" and word.endswith("ll"):
        return f"{word}y"
    return f"{word[:-1]}i{suffix}" if _CONSONANT_Y.fullmatch(word[-2:]) else word + suffix


def _is_verb(word: str, known: Collection[str]) -> bool:
    return all(form in known for form in (before_vowel(word, "ed"), before_vowel(word, "ing"), plural(word)))


def _is_adjective(word: str, known: Collection[str]) -> bool:
    others = sum(form in known for form in (before_consonant(word, "ly"), before_consonant(word, "ness"), f"un{word}"))
    return others > 1 or (others == 1 and _has_comparative(word, known) and before_vowel(word, "est") in known)


def _has_comparative(word: str, known: Collection[str]) -> bool:
    return before_vowel(word, "er") in known


def _is_compared(word: str, known: Collection[str]) -> bool:
    return _has_comparative(word, known) and _is_adjective(word, known)


def _is_noun(word: str, known: Collection[str]) -> bool:
    """Nothing but a noun, so that no rule makes ``breaked``."""
    return not word.endswith("s") and plural(word) in known and before_vowel(word, "ing") not in known


def _is_abstract(word: str, known: Collection[str]) -> bool:
    return len(word) > 2 * SHORTEST and word.endswith(_ABSTRACT)


Belongs = Callable[[str, Collection[str]], bool]
RULES: dict[str, tuple[Belongs, Callable[[str], str | None]]] = {
    "-s": (_is_abstract, plural),
    "-ed": (_is_noun, lambda word: before_vowel(word, "ed")),
    "-less": (_is_noun, lambda word: before_consonant(word, "less")),
    "-er": (_is_verb, lambda word: before_vowel(word, "er")),
    "-able": (_is_verb, lambda word: before_vowel(word, "able")),
    "re-": (_is_verb, lambda word: f"re{word}"),
    "-est": (_is_compared, lambda word: before_vowel(word, "est")),
    "-ly": (_is_adjective, lambda word: before_consonant(word, "ly")),
    "-ness": (_is_adjective, lambda word: before_consonant(word, "ness")),
    "un-": (_is_adjective, lambda word: f"un{word}"),
}


def generate_forms(bases: Sequence[str], lists: WordLists, count: int, seed: int) -> list[GeneratedWord]:
    """So many forms of words, or as many as there are; each rule gives as many as the others while it has any."""
    lot = random.Random(f"forms {seed}")
    bases = _usable(bases)
    by_rule = [_forms(rule, lot.sample(bases, len(bases)), lists) for rule in RULES]
    made: dict[str, GeneratedWord] = {}
    while by_rule and len(made) < count:
        for rule in list(by_rule):
            one = next((form for form in rule if form.word not in made), None)
            if one is None:
                by_rule.remove(rule)
            elif len(made) < count:
                made[one.word] = one
    return list(made.values())


def _forms(rule: str, bases: Sequence[str], lists: WordLists) -> Iterator[GeneratedWord]:
    belongs, make = RULES[rule]
    for base in bases:
        if belongs(base, lists.telling) and (form := make(base)) and form not in lists.seen:
            yield GeneratedWord(form, base, rule)


def generate_misspellings(bases: Sequence[str], lists: WordLists, count: int, seed: int) -> list[GeneratedWord]:
    """So many misspellings, one of a word, or as many as there are words; the four edits are equally likely."""
    lot = random.Random(f"misspellings {seed}")
    bases = _usable(bases)
    made: dict[str, GeneratedWord] = {}
    for base in lot.sample(bases, len(bases)):
        if len(made) == count:
            break
        rule = lot.choice(tuple(_EDITS))
        word = _EDITS[rule](base, lot)
        if word not in lists.seen and word != base:
            made.setdefault(word, GeneratedWord(word, base, rule))
    return list(made.values())


def _inserted(word: str, lot: random.Random) -> str:
    at = lot.randrange(len(word) + 1)
    return word[:at] + lot.choice(string.ascii_lowercase) + word[at:]


def _deleted(word: str, lot: random.Random) -> str:
    at = lot.randrange(len(word))
    return word[:at] + word[at + 1 :]


def _replaced(word: str, lot: random.Random) -> str:
    at = lot.randrange(len(word))
    return word[:at] + lot.choice(string.ascii_lowercase) + word[at + 1 :]


def _swapped(word: str, lot: random.Random) -> str:
    at = lot.randrange(len(word) - 1)
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


_EDITS: dict[str, Callable[[str, random.Random], str]] = {
    "insert": _inserted,
    "delete": _deleted,
    "replace": _replaced,
    "swap": _swapped,
}


def _usable(words: Sequence[str]) -> list[str]:
    return [word for word in words if _BASE.fullmatch(word)]
