"""Generate out-of-vocabulary words from known ones: regular inflections and derivations, and misspellings.

*Forms* are regular English inflections and derivations, with their changes of spelling (``hazy``, ``haziness``;
``stun``, ``stunnable``). The other known forms of a word decide which affix it takes: a word whose ``-ed`` and ``-ing``
forms are known is a verb. *Misspellings* are one edit away from a word: a letter inserted, deleted or replaced, or two
neighbours swapped. No known word is ever generated.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

SHORTEST = 4  # letters of a base word
_BASE = re.compile(rf"[a-z]{{{SHORTEST},}}")
_CONSONANT_Y = re.compile(r"[^aeiou]y")
_DOUBLED = re.compile(r"(?:qu|[^aeiouy])*[aeiou][^aeiouwxy]")  # one syllable, a short vowel, one consonant: stun, quit
_BY_STRESS = re.compile(r".*[^aeiou][aeiou][^aeiouwxy]")  # for others the stress decides (begin, visit)
_ABSTRACT = ("ness", "ment", "tion", "sion", "ism", "ist", "ship", "hood", "ity", "ance", "ence")


@dataclass(frozen=True)
class GeneratedWord:
    """A generated word, the base word it comes from, and the rule."""

    word: str
    base: str
    rule: str


class WordLists(NamedTuple):
    """Known words: those that decide which affixes a word takes, and those that must not be generated."""

    known: Collection[str]
    seen: Collection[str]


def plural(word: str) -> str | None:
    """Regular plural: ``box``, ``boxes``; ``city``, ``cities``. None if no rule decides: ``hero``, ``leaf``."""
    if word.endswith(("o", "f", "fe")):
        return None
    if _CONSONANT_Y.fullmatch(word[-2:]):
        return f"{word[:-1]}ies"
    return word + ("es" if word.endswith(("s", "x", "z", "ch", "sh")) else "s")


def before_vowel(word: str, suffix: str) -> str | None:
    """Add a suffix that begins with a vowel: ``make``, ``making``; ``stun``, ``stunned``; ``carry``, ``carrier``."""
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
    """Add a suffix that begins with a consonant: ``hazy``, ``haziness``; ``gentle``, ``gently``."""
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
    """Whether a word is only a noun, so that no rule makes ``breaked``."""
    return not word.endswith("s") and plural(word) in known and before_vowel(word, "ing") not in known


def _is_abstract(word: str, known: Collection[str]) -> bool:
    return len(word) > 2 * SHORTEST and word.endswith(_ABSTRACT)


Applies = Callable[[str, Collection[str]], bool]
RULES: dict[str, tuple[Applies, Callable[[str], str | None]]] = {
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
    """Generate ``count`` inflected and derived forms, if there are enough; the rules take turns."""
    rng = random.Random(f"forms {seed}")
    bases = _usable(bases)
    by_rule = [_forms(rule, rng.sample(bases, len(bases)), lists) for rule in RULES]
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
    applies, make = RULES[rule]
    for base in bases:
        if applies(base, lists.known) and (form := make(base)) and form not in lists.seen:
            yield GeneratedWord(form, base, rule)


def generate_misspellings(bases: Sequence[str], lists: WordLists, count: int, seed: int) -> list[GeneratedWord]:
    """Generate ``count`` misspellings, if there are enough words, one per word; the four edits are equally likely."""
    rng = random.Random(f"misspellings {seed}")
    bases = _usable(bases)
    made: dict[str, GeneratedWord] = {}
    for base in rng.sample(bases, len(bases)):
        if len(made) == count:
            break
        rule = rng.choice(tuple(_EDITS))
        word = _EDITS[rule](base, rng)
        if word not in lists.seen and word != base:
            made.setdefault(word, GeneratedWord(word, base, rule))
    return list(made.values())


def _inserted(word: str, rng: random.Random) -> str:
    at = rng.randrange(len(word) + 1)
    return word[:at] + rng.choice(string.ascii_lowercase) + word[at:]


def _deleted(word: str, rng: random.Random) -> str:
    at = rng.randrange(len(word))
    return word[:at] + word[at + 1 :]


def _replaced(word: str, rng: random.Random) -> str:
    at = rng.randrange(len(word))
    return word[:at] + rng.choice(string.ascii_lowercase) + word[at + 1 :]


def _swapped(word: str, rng: random.Random) -> str:
    at = rng.randrange(len(word) - 1)
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


_EDITS: dict[str, Callable[[str, random.Random], str]] = {
    "insert": _inserted,
    "delete": _deleted,
    "replace": _replaced,
    "swap": _swapped,
}


def _usable(words: Sequence[str]) -> list[str]:
    return [word for word in words if _BASE.fullmatch(word)]
