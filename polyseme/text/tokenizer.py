"""Tokenizer: raw text to sentences of words with character offsets: ``text[start:end] == word``, always.

Words are split as in the Penn Treebank, because most labelled corpora are: ``ca n't``, ``John 's`` (the 1B
Word corpus of the published ELMo models has ``can 't``; to match that, pass word lists). Hyphenated words,
numbers, abbreviations, URLs and emoji stay whole. French and Italian elision ends at its apostrophe (``l' homme``);
any other apostrophe stays inside (``O'Brien``, ``ng'ombe``, ``м'яч``). Runs of dots, of ``!`` and ``?``, and of one
ruling character (``----``) are one word.

Choices worth knowing:

- One newline is a space (text wrapped at 80 columns stays whole); a blank line always ends a sentence.
- Scripts without spaces: a Han character is a word, and so is a run of katakana or of hiragana (the particle を
  apart); Thai, Lao, Khmer and Burmese are split at spaces only. If you have a segmenter, pass word lists instead.
- Nothing is normalised. White space, control characters, and invisible characters that stand outside a word
  (zero-width space, byte order mark, direction marks) separate words and belong to none; every other character,
  even a lone surrogate, is in exactly one word.
- Time is linear in the length of any text: what looks ahead or back does so over a bounded stretch, or over one that no
  other match looks at. Sentences are found lazily, one at a time.

Two regular expressions do the work: one finds where sentences may end, the other finds the words of a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple
from unicodedata import category


class TokenizedSentence(NamedTuple):
    """Tokenised sentence: its words, and the character span of each in the text."""

    words: list[str]
    spans: list[tuple[int, int]]


def tokenize(text: str) -> Iterator[TokenizedSentence]:
    """Tokenise raw text into sentences with character spans, lazily; a text without words gives nothing."""
    find_words = _word_pattern().finditer
    for start, end in _sentence_spans(text):
        spans = [match.span() for match in find_words(text, start, end)]
        if spans:
            yield TokenizedSentence([text[first:last] for first, last in spans], spans)


def tokenize_words(text: str) -> Iterator[list[str]]:
    """Tokenise raw text into sentences without character spans, twice as fast as `tokenize`."""
    find_words = _word_pattern().findall
    for start, end in _sentence_spans(text):
        if words := find_words(text, start, end):
            yield words


# Sentences


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


# A name or a number follows these, so they never end a sentence.
_TITLES = _listed(
    "Mr Mrs Ms Dr Prof St Gen Sen Rep Gov Lt Col Capt Sgt Maj Cmdr Adm Rev Hon Pres Messrs MM Mme Mlle Hr Fr Sr "
    "Sra Srta Dra Ud Uds Mt Ft vs Vs al cf Cf Fig Figs fig Eq Eqs eq pp Vol vol ca approx Dept Univ Nr nr vgl Vgl "
    "bzw sog гр им ул стр рис тов проф"
)
# These end a sentence only where a word follows that often begins one.
_ABBREVIATIONS = _listed(
    "Inc Corp Co Cos Ltd Bros Jr etc est Est Ave Blvd Rd Jan Feb Apr Aug Sept Sep Oct Nov Dec Tel tel ext Ph.D Ed "
    "Eds eds Calif Mass Conn Penn Ariz Fla Ala Tenn Minn Mich Wis Colo Okla usw inkl др"
)
_STARTERS = _listed(
    "The A An In On At He She It They We I You But And This That These Those There When While If As For However "
    "Also Its His Her Their My Our Your What Why How Who Where After Before Since Although Though So Then To With "
    "From By Some Many Most One Or Please Thanks Yes Here Let Do Is Are"
)
_MONTHS = _listed(
    "Januar Jänner Februar März April Mai Juni Juli August September Oktober November Dezember "
    "január február március április május június július augusztus szeptember október november december"
)
_INITIAL = "[A-Za-zÀ-ÖØ-ÞΑ-ΩА-ЯЁІЇЄ]"

_ALONE = "。！？｡．"  # end a sentence even where no space follows
_FINAL = ".!?…‼⁇⁈⁉؟۔।॥։།༎።፧፨។៕။᠃᠉⸮"
_CLOSERS = r"\"'”’»›)\]}〉》」』】〕〗）］｝"
_OPENERS = r"\"'“”‘’„‚«»‹›(\[{¿¡〈《「『【（<*_–—-"
_AFTER = rf"[{_FINAL}{_ALONE}]*(?: [.!?]+)*[{_CLOSERS}]*(?:(?:[“«‹]|[ \u00a0\u202f]»)(?!\w))?"
_MAY_END = re.compile(
    rf"\n\s*\n|\u2029\s*|[{_ALONE}]{_AFTER}"  # ends: a paragraph, or marks that no space need follow
    rf"|(?P<mark>[{_FINAL}](?=[\s{_FINAL}{_ALONE}{_CLOSERS}“«‹]|\Z){_AFTER})(?=[\s{_OPENERS}]*(?P<next>\w*))"
)
_PERIOD = re.compile(r"\.[^.!?…]*")
_LAST_WORD = re.compile(r"(?:.*[^\w.&-])?(?P<word>.*)", re.DOTALL)
_ABBREVIATED = re.compile(rf"{_INITIAL}|[^\W\d_]\..*")


def _sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in _MAY_END.finditer(text):
        if match["mark"] is None or _ends_sentence(text, start, match):
            end = match.end()
            yield start, end
            start = end
    yield start, len(text)


def _ends_sentence(text: str, start: int, match: re.Match[str]) -> bool:
    end = match.end()
    if end == len(text):
        return True
    if not text[end].isspace():
        return False
    mark, following = match.groups()
    if mark == "." or _PERIOD.fullmatch(mark):
        return _period_ends_sentence(text, start, match.start(), following)
    return not following[:1].islower()  # "What?" he said.


def _period_ends_sentence(text: str, start: int, period: int, following: str) -> bool:
    before = text[max(start, period - 12) : period]  # no abbreviation is longer
    found = _LAST_WORD.fullmatch(before)
    word = found["word"] if found else ""
    if word in _TITLES or (word == "No" and following.isdigit()):
        return False
    if word in _ABBREVIATIONS or _ABBREVIATED.fullmatch(word):
        return following in _STARTERS
    if word.isdigit() and len(word) < 3 and following in _MONTHS:
        return False  # Am 3. Oktober
    if word.isdigit() and period - start < 12 and before.strip() == word:
        return False  # the number of a list's item
    # Before a small letter, a short word is likely an abbreviation that the lists lack; a long one is careless writing.
    return not following[:1].islower() or (len(word) > 3 and word.islower() and word != "cent")


# Words

_HAN = "⺀-⿟々-〇〡-〩㐀-䶿一-鿿\uf900-\ufaff\U00020000-\U0003ffff"
_KATAKANA = "ァ-ヺー-ヿㇰ-ㇿｦ-ﾟ"
_HIRAGANA = "ぁ-ゑん-ゖゝ-ゟ"  # all but the particle を
_KANA = f"{_KATAKANA}{_HIRAGANA}を"
_LETTER = rf"[^\W\d_{_HAN}{_KANA}]"  # of a script that writes spaces
_ALNUM = rf"[^\W_{_HAN}{_KANA}]"
_CLITIC = r"['’](?:[sSmMdD]|ll|LL|re|RE|ve|VE)(?!\w)"
_ELISION = r"(?i:[cdjlmnstvy]|(?:jus|lors|puis|quoi)?qu|(?:de|a|da|ne|su|co|que|be)ll|un|quest|gl|anch|sant)['’]"
_NO_WORD = r"\s\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff"
_URL_TAIL = rf"[^{_NO_WORD}<>\"“”«»\u3000-\u9fff\uff00-\uffef]*(?<![.,;:!?'’)\]}}…*])"
_EMOJI = (
    "[\U0001f000-\U0001faff☀-➿⌀-⏿⬀-⯿←-⇿‼⁉™ℹ©®Ⓜ〰〽㊗㊙]"
    "[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]*[\U000e0020-\U000e007f]*"  # style, skin tone, the letters of regional flags
)
_INSIDE = "|".join(
    (
        rf"['’]?[-‐‑](?={_ALNUM})",  # mid-October, jack-o'-lantern
        rf"(?<![가-힣])(?!{_CLITIC})['’](?={_ALNUM})",  # O'Brien, ng'ombe
        r"(?<=[A-Za-z0-9])\.(?=[a-z0-9])|(?<=[A-Z])\.(?=[A-Z])",  # a.txt, U.S.A
        r"(?<=\d)[.,:/٫٬](?=\d)",  # 1,000.50, 10:30, 1/2
        rf"_+(?={_ALNUM})|(?<=[lL])·(?=[lL])",  # snake_case, col·lecció
        r"(?<=[A-Z])&(?=[A-Z])",  # AT&T
        r"(?<=[א-ת])[\"״׳](?=[א-ת])",  # צה"ל
    )
)


@cache
def _word_pattern() -> re.Pattern[str]:
    """Regular expression of a word: an alternation whose first match wins; built on first use, which takes a while."""
    mark = rf"[{_marks()}\u200c\u200d\u00ad]"  # and invisible joiners, non-joiners and soft hyphens inside a word
    run = rf"{_ALNUM}+(?:{mark}+{_ALNUM}*)*"
    begun = rf"[^\W{_HAN}{_KANA}]"  # before an address: it would have begun there
    address = rf"(?<!{begun}|-)(?<!{begun}\.)(?:(?<!\w)|(?=[!-~]{{3}}))"
    letters_and_digits = (
        rf"(?=\w[\w.]{{1,5}}\.)(?:{_abbreviations()}|No(?=\. ?\d))\.(?!\w)",
        rf"(?<!{_LETTER}\.{_LETTER}\.)(?:{_LETTER}\.){{2,}}(?:-{run})*(?!\w)",  # U.S., e.g., U.S.-led
        rf"{_INITIAL}\.(?=\s+\S)",  # J. K. Rowling; a letter that ends the sentence keeps no period
        r"[A-Za-z]+?(?=[nN]['’][tT](?!\w))|[nN]['’][tT](?!\w)",  # ca n't
        rf"(?=\w{{1,6}}['’]){_ELISION}(?=[^\W\d_]{{2}}|[àèéêîôùyaÀÈÉYA](?!\w))",
        rf"{run}(?:(?:{_INSIDE}){run})*",
    )
    alternatives = (
        rf"[A-Za-z]+(?=[ ,;!?)\n])|{_LETTER}+(?=[\s,。，]|\Z)|[,;.。！？](?=\s|\Z)",  # most words, at once
        r"[0-9#*]\ufe0f?\u20e3",  # keycaps
        rf"[{_HAN}]{mark}*|[{_KATAKANA}]+|を|[{_HIRAGANA}ー]+",
        rf"(?:https?|ftp|file)://{_URL_TAIL}|www\.{_URL_TAIL}",
        rf"(?=[\w-]){address}(?:[\w-]{{1,63}}\.){{1,8}}[a-z]{{2,24}}/{_URL_TAIL}",
        rf"(?=[\w.+-]){address}(?<!\+)[\w.+-]{{1,64}}@[\w-]{{1,63}}(?:\.[\w-]{{1,63}})+",
        rf"(?={_ALNUM})(?:{'|'.join(letters_and_digits)})",
        rf"(?<=\w){_CLITIC}|{_CLITIC}(?!['’])|['’](?:em|til|cause|tis|twas|n['’]?|\d0s)(?!\w)",
        r"[@#][^\W\d]\w*|\.\d+|&(?:[a-z]{2,6}|#\d{1,6});",
        r"(?<!\w)(?:[:;=][-o^'’]?[)(\]\[DPpO3/\\|*](?![\w/])|<3(?!\w)|\^_*\^|-_+-)",  # :-)
        r"\.{2,}|…+|[!?]{2,}|''|``|--+|==+|\*\*+|__+|~~+|##+|\+\++|<<+|>>+|\$\$+",
        rf"[\U0001f1e6-\U0001f1ff]{{2}}|{_EMOJI}(?:\u200d{_EMOJI})*",
        rf"[^{_NO_WORD}]{mark}*",
    )
    return re.compile(rf"(?=\S)(?:{'|'.join(alternatives)})")  # white space, then, fails at once


def _abbreviations() -> str:
    """Abbreviations as an alternation, grouped by first letter: trying all of them one by one takes long."""
    grouped = groupby(sorted(_TITLES | _ABBREVIATIONS), key=itemgetter(0))
    return "|".join(f"{first}(?:{'|'.join(re.escape(word[1:]) for word in words)})" for first, words in grouped)


def _marks() -> str:
    r"""Unicode's combining marks, as the inside of a character class: ``\w`` matches none of them."""
    marks = [code for code in (*range(0x300, 0x1E900), *range(0xE0100, 0xE01F0)) if category(chr(code))[0] == "M"]
    known = set(marks)
    firsts = [code for code in marks if code - 1 not in known]
    lasts = [code for code in marks if code + 1 not in known]
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in zip(firsts, lasts, strict=True))
